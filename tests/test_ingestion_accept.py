"""Taking files in: duplicates, new versions, names, limits, and what is gone when a document is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpRequest
from django.test import RequestFactory
from procrastinate.contrib.django.models import ProcrastinateJob

from klerai.accounts.models import Person
from retrieval.errors import FileTooLarge, NoSuchKnowledgeBase
from retrieval.ingestion.accept import Outcome, accept, accept_upload, delete_document, retry_document
from retrieval.ingestion.originals import MOST_BYTES, PIECE_BYTES, original_pieces
from retrieval.ingestion.uploads import accept_files
from retrieval.knowledge import written
from retrieval.models import DEFAULT_SLUG, Chunk, Document, IndexedChunk, OriginalPiece, Term, Window
from retrieval.search import search
from tests.documents import chunks_of, pieces_of, processed, prose, seen, taken_in
from tests.people import make_alice, make_charlie


@pytest.fixture
def alice(database: object) -> Person:
    return make_alice()


def jobs_of(document: Document) -> int:
    return ProcrastinateJob.objects.filter(args__document_id=str(document.pk)).count()


def found(person: Person, words: str) -> list[str]:
    return [passage.text for passage in asyncio.run(search(person, words)).passages if words in passage.text]


def test_a_file_is_queued_in_the_transaction_that_stores_it(alice: Person) -> None:
    document = accept_upload(alice, DEFAULT_SLUG, "a.txt", [b"some ", b"words"])
    assert (document.status, document.bytes, jobs_of(document)) == ("queued", 10, 1)
    with transaction.atomic():
        lost = accept_upload(alice, DEFAULT_SLUG, "b.txt", [b"other words"])
        transaction.set_rollback(True)
    assert jobs_of(lost) == 0
    assert not Document.objects.filter(pk=lost.pk).exists()


def test_the_original_comes_back_byte_for_byte(alice: Person) -> None:
    data = os.urandom(2 * PIECE_BYTES + 7)
    document = accept_upload(alice, DEFAULT_SLUG, "noise.bin", pieces_of(data))
    pieces = list(original_pieces(document))
    assert (b"".join(pieces), len(pieces)) == (data, 3)


def test_unchanged_content_costs_nothing(alice: Person) -> None:
    first = taken_in(alice, "a.md", f"# Rates\n\n{prose(400)}")
    again = accept(written(alice), "a.md", [f"# Rates\n\n{prose(400)}".encode()])
    assert (again.outcome, again.document.pk, again.document.status) == (Outcome.UNCHANGED, first.pk, "ready")
    assert jobs_of(first) == 1
    assert OriginalPiece.objects.filter(document__knowledge_base__owner=alice).count() == 1


def test_the_same_content_under_another_name_is_another_document(alice: Person) -> None:
    assert taken_in(alice, "a.txt", prose(20)).pk != taken_in(alice, "b.txt", prose(20)).pk


def test_a_new_version_takes_the_place_of_the_old_one_at_once(alice: Person) -> None:
    old = taken_in(alice, "a.txt", prose(400, "walruses"))
    accepted = accept(written(alice), "a.txt", [prose(20, "herons").encode()])
    assert (accepted.outcome, accepted.document.pk) == (Outcome.REPLACED, old.pk)
    assert found(alice, "walruses"), "until the new one is ready"
    processed(accepted.document)
    assert not found(alice, "walruses")
    assert found(alice, "herons")
    assert b"".join(original_pieces(old)) == prose(20, "herons").encode()


def test_a_new_version_that_cannot_be_read_leaves_the_old_one_to_be_found(alice: Person) -> None:
    taken_in(alice, "a.txt", prose(20, "walruses"))
    broken = taken_in(alice, "a.txt", bytes(1_000))
    assert (broken.status, "version before" in broken.error) == ("failed", True)
    assert found(alice, "walruses")


def test_a_version_that_came_while_another_was_read_wins(alice: Person) -> None:
    document = accept_upload(alice, DEFAULT_SLUG, "a.txt", [prose(20, "walruses").encode()])
    accept_upload(alice, DEFAULT_SLUG, "a.txt", [prose(20, "herons").encode()])
    assert [chunk.text for chunk in chunks_of(processed(document))] == [prose(20, "herons")]


def test_files_of_one_name_that_arrive_together_become_one_document(alice: Person) -> None:
    base = written(alice)
    with ThreadPoolExecutor(4) as together:
        list(together.map(lambda number: accept(base, "a.txt", [prose(10 * number).encode()]), range(1, 5)))
    assert base.documents.count() == 1


def test_a_document_is_deleted_with_all_that_was_made_of_it(alice: Person) -> None:
    kept = taken_in(alice, "kept.txt", prose(400, "walruses"))
    before = seen(kept)
    document = taken_in(alice, "gone.txt", prose(400, "herons"))
    keys = [chunk.pk for chunk in chunks_of(document)]
    herons = Term.objects.filter(knowledge_base=document.knowledge_base, lexeme="heron")
    assert herons.exists()
    delete_document(document)
    delete_document(document)
    for rows in (
        Chunk.objects.filter(pk__in=keys),
        *(m.objects.filter(chunk__in=keys) for m in (Window, IndexedChunk)),
        herons,
    ):
        assert not rows.exists()
    assert not OriginalPiece.objects.filter(document=document.pk).exists()
    assert not found(alice, "herons")
    assert seen(kept) == before
    assert found(alice, "walruses")


def test_a_document_that_failed_can_be_tried_again(alice: Person) -> None:
    failed = taken_in(alice, "a.bin", bytes(100))
    again = retry_document(failed)
    assert (again.status, again.error, jobs_of(failed)) == ("queued", "", 2)
    assert retry_document(again).status == "queued"
    assert jobs_of(failed) == 2


def test_a_file_that_failed_and_comes_again_is_tried_again(alice: Person) -> None:
    failed = taken_in(alice, "a.bin", bytes(100))
    assert accept_upload(alice, DEFAULT_SLUG, "a.bin", [bytes(100)]).status == "queued"
    assert jobs_of(failed) == 2


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a\0b\r\nSet-Cookie: x.txt", "a b Set-Cookie: x.txt"),
        ("\u202etxt.exe", "txt.exe"),
        ("..", "Untitled"),
        ("", "Untitled"),
        ("/", "Untitled"),
        ("\ud800.txt", ".txt"),
        ("👩‍👩‍👧 Grüße.pdf", "👩‍👩‍👧 Grüße.pdf"),
        ("<img src=x onerror=alert(1)>.txt", "<img src=x onerror=alert(1)>.txt"),
        ("x" * 300 + ".docx", "x" * 194 + "….docx"),
        ("x" * 5_000, "x" * 199 + "…"),
    ],
)
def test_a_hostile_name_becomes_a_harmless_title(alice: Person, name: str, title: str) -> None:
    document = taken_in(alice, name, prose(20))
    assert (document.title, document.status) == (title, "ready")
    assert len(document.source) <= 300
    assert ".." not in document.source


def test_long_names_that_begin_alike_are_two_documents(alice: Person) -> None:
    assert taken_in(alice, "x" * 400 + "1", prose(20)).pk != taken_in(alice, "x" * 400 + "2", prose(30)).pk


def test_a_stranger_writes_into_their_own_knowledge_base_only(alice: Person) -> None:
    document = taken_in(alice, "a.txt", prose(20, "walruses"))
    charlie = make_charlie()
    theirs = taken_in(charlie, "a.txt", prose(20, "walruses"))
    assert theirs.pk != document.pk
    assert theirs.knowledge_base_id != document.knowledge_base_id
    with pytest.raises(NoSuchKnowledgeBase):
        accept_upload(charlie, "alices-own", "a.txt", [b"words"])


def upload(*files: tuple[str, bytes], field: str = "file") -> HttpRequest:
    data = {field: [SimpleUploadedFile(name, data) for name, data in files], "note": "words"}
    return RequestFactory().post("/", data)


def test_a_request_may_bring_several_files(alice: Person) -> None:
    data = os.urandom(3 * PIECE_BYTES)
    accepted = accept_files(alice, DEFAULT_SLUG, upload(("a.txt", b"words"), ("b.bin", data), ("a.txt", b"words")))
    assert [each.outcome for each in accepted] == ["added", "added", "unchanged"]
    assert b"".join(original_pieces(accepted[1].document)) == data


def test_a_request_without_files_brings_none(alice: Person) -> None:
    assert accept_files(alice, DEFAULT_SLUG, upload(("a.txt", b"words"), field="other")) == []
    request = RequestFactory().post("/", b"--x\r\nnonsense", content_type="multipart/form-data; boundary=x")
    assert accept_files(alice, DEFAULT_SLUG, request) == []
    assert accept_files(alice, DEFAULT_SLUG, RequestFactory().post("/", b"{}", content_type="application/json")) == []
    assert not written(alice).documents.exists()


@pytest.mark.thorough
def test_a_file_over_the_limit_is_refused_with_all_that_came_with_it(alice: Person) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(PIECE_BYTES)

    with pytest.raises(FileTooLarge, match=r"100 MB"):
        accept_upload(alice, DEFAULT_SLUG, "endless.bin", endless())
    files = upload(("a.txt", b"words"), ("large.bin", bytes(MOST_BYTES + 1)))
    with pytest.raises(FileTooLarge):
        accept_files(alice, DEFAULT_SLUG, files)
    assert not written(alice).documents.exists()
