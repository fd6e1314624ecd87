"""Small real files, and a knowledge base to put them into."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Iterable, Sequence

import docx
import pypdf

from klerai.accounts.models import Person
from retrieval.ingestion.accept import accept_upload
from retrieval.ingestion.pipeline import process
from retrieval.models import DEFAULT_SLUG, Chunk, Document


def taken_in(person: Person, name: str, data: bytes | str) -> Document:
    """The document as it is once it has been processed, whatever became of it."""
    whole = data.encode() if isinstance(data, str) else data
    accepted = accept_upload(person, DEFAULT_SLUG, name, pieces_of(whole))
    return processed(accepted)


def processed(document: Document) -> Document:
    asyncio.run(process(document.pk))
    return Document.objects.get(pk=document.pk)


def pieces_of(data: bytes, size: int = 70_000) -> Iterable[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def chunks_of(document: Document) -> list[Chunk]:
    return list(document.chunks.order_by("position"))


def sections_of(document: Document) -> list[str]:
    return [chunk.section for chunk in chunks_of(document)]


def seen(document: Document) -> list[tuple[int, int, str, str, int | None]]:
    """Everything about a document's passages but their numbers in the database."""
    return [(chunk.start, chunk.end, chunk.section, chunk.text, chunk.page) for chunk in chunks_of(document)]


def prose(words: int, about: str = "credits") -> str:
    """Sentences of ten words, each of its own."""
    return " ".join(f"Sentence {number} says eight words about {about} again today." for number in range(words // 10))


def word_file(*, headings: Sequence[str] = ("Rates",), rows: Sequence[Sequence[str]] = ()) -> bytes:
    document = docx.Document()
    document.add_heading("Handbook", 0)
    for heading in headings:
        document.add_heading(heading, 2)
        document.add_paragraph(prose(80, about=heading.lower()))
        document.add_paragraph("First point", style="List Bullet")
    if rows:
        table = document.add_table(rows=0, cols=len(rows[0]))
        for row in rows:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def pdf_file(pages: Sequence[str], *, outline: Sequence[tuple[str, int]] = (), password: str = "") -> bytes:
    """A line of a page's text is a line on the page."""
    writer = pypdf.PdfWriter(io.BytesIO(_plain_pdf([_drawn(page) for page in pages])))
    for title, page in outline:
        writer.add_outline_item(title=title, page_number=page)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def pdf_of_stream(stream: bytes, more: bytes = b"") -> bytes:
    """A page whose content is this stream; `more` goes into the stream's dictionary."""
    return _plain_pdf([stream], more=more)


def zip_file(members: dict[str, bytes], *, packed: bool = True) -> bytes:
    out = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def changed_zip(data: bytes, members: dict[str, bytes]) -> bytes:
    """The archive with these members in the place of its own."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    return zip_file(kept | members)


def _drawn(text: str) -> bytes:
    lines = [line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in text.split("\n")]
    shown = " T* ".join(f"({line}) Tj" for line in lines)
    return f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET".encode("latin-1")


def _plain_pdf(streams: Sequence[bytes], *, more: bytes = b"") -> bytes:
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, stream in enumerate(streams):
        fonts = "/Resources << /Font << /F1 3 0 R >> >>"
        page = f"/Parent 2 0 R /MediaBox [0 0 612 792] {fonts} /Contents {5 + 2 * number} 0 R"
        objects.append(f"<< /Type /Page {page} >>".encode())
        objects.append(b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(stream), more, stream))
    out, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + trailer
