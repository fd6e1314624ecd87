"""`manage.py ingest`: files, folders and corpora, here and now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from klerai.accounts.models import Person
from retrieval.models import Document, KnowledgeBase
from tests.documents import chunks_of, pdf_file, prose, sections_of, seen, word_file
from tests.people import make_alice, make_charlie
from tests.serving import run_command

NAUGHTY = [
    "undefined",
    "-1E+02",
    "٠١٢٣٤٥٦٧٨٩",
    "\u200b\u180e\ufeff\u2060 hidden",
    "Ω≈ç√∫˜µ≤≥÷",
    "田中さんにあげて下さい",
    "👾 🙇 💁 🙅 🙆 🙋 🙎 🙍",
    "👩‍👩‍👧‍👦 👨🏿‍🚀 🇺🇸🇷🇺",
    "مُنَاقَشَةُ سُبُلِ اِسْتِخْدَامِ اللُّغَةِ",
    "\u202atest\u202a \u2066test\u2067",
    "Ṱ̺̺̕o͞ ̷i̲̬͇̪͙n̝̗͕v̟̜̘̦͟o̶̙̰̠kè͚̮̺̪̹̱̤",
    "<script>alert(0)</script>",
    "1;DROP TABLE users",
    "$HOME %s %d {0} {{x}}",
    "../../../etc/passwd%00",
    "```\nunclosed",
    "# not | a\n|---|---|",
]


@pytest.fixture
def alice(database: object) -> Person:
    return make_alice()


def ingest(*paths: Path, user: Person | None, kb: str = "docs") -> int:
    try:
        call_command("ingest", *map(str, paths), kb=kb, user=user and user.email)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def documents_in(person: Person | None, kb: str = "docs") -> dict[str, Document]:
    found = Document.objects.filter(knowledge_base=KnowledgeBase.objects.get(owner=person, slug=kb))
    return {document.external_id or document.source: document for document in found}


def corpus(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_a_folder_is_taken_in_with_its_names(alice: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside.txt"
    outside.write_text("secret")
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name, data in {
        "a.md": f"# A\n\n{prose(30)}".encode(),
        "sub/b.docx": word_file(),
        "sub/c.pdf": pdf_file([prose(30)]),
        ".hidden.txt": b"hidden",
        ".git/config": b"hidden",
        "torn.pdf": b"%PDF-1.7 torn",
    }.items():
        (folder / name).write_bytes(data)
    (folder / "link.txt").symlink_to(outside)
    (folder / "inner.md").symlink_to(folder / "a.md")

    assert ingest(folder, user=alice) == 1
    out = capsys.readouterr().out.splitlines()
    assert sorted(documents_in(alice)) == ["a.md", "inner.md", "sub/b.docx", "sub/c.pdf", "torn.pdf"]
    assert documents_in(alice)["sub/b.docx"].title == "b.docx"
    assert out[0] == "added      a.md: 1 passage"
    assert [line for line in out if line.startswith("failed")] == [
        "failed     torn.pdf: The PDF is damaged and cannot be read. Print it to a new PDF and upload that."
    ]
    assert out[-1].startswith("Added 4, replaced 0, unchanged 0, failed 1; 4 passages in ")


def test_what_is_unchanged_is_left_and_what_changed_is_replaced(
    alice: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(prose(30))
    (tmp_path / "b.txt").write_text(prose(30))
    assert ingest(tmp_path, user=alice) == 0
    before = documents_in(alice)
    (tmp_path / "b.txt").write_text(prose(40, "herons"))
    assert ingest(tmp_path, user=alice) == 0
    after = documents_in(alice)
    assert {name: document.pk for name, document in before.items()} == {n: d.pk for n, d in after.items()}
    assert before["a.txt"].updated_at == after["a.txt"].updated_at
    assert after["b.txt"].text == prose(40, "herons")
    assert "Added 0, replaced 1, unchanged 1, failed 0" in capsys.readouterr().out


def test_a_corpus_is_a_document_a_line(alice: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": f"d{number}", "title": f"Title {number}", "text": prose(30, f"x{number}")} for number in range(300)]
    rows[9]["title"] = "Input/output\n\u202etables"
    path = corpus(
        tmp_path / "c.jsonl", *rows, {"id": "own", "title": "Own", "text": "# Own\n\n## Deep\n\n" + prose(80)}
    )
    assert ingest(path, user=alice) == 0
    found = documents_in(alice)
    assert (len(found), found["d7"].title, found["d7"].text) == (301, "Title 7", prose(30, "x7"))
    assert sections_of(found["d7"]) == ["Title 7"]
    assert sections_of(found["own"]) == ["Own › Deep"]
    assert found["d9"].title == sections_of(found["d9"])[0] == "Input/output tables"
    capsys.readouterr()

    rows[7]["text"], rows[8]["title"] = prose(20, "herons"), "Another"
    assert ingest(corpus(path, *rows), user=alice) == 0
    assert "Added 0, replaced 2, unchanged 298, failed 0" in capsys.readouterr().out
    after = documents_in(alice)
    assert (after["d7"].pk, after["d7"].text) == (found["d7"].pk, prose(20, "herons"))
    assert [chunk.text for chunk in chunks_of(after["d7"])] == [prose(20, "herons")]
    assert after["d9"].updated_at == found["d9"].updated_at


def test_lines_that_are_no_rows_are_named(alice: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = corpus(
        tmp_path / "c.jsonl", "{", "", [1], {"text": "no id"}, {"id": "x" * 301, "text": ""}, {"id": 5, "text": "five"}
    )
    assert ingest(path, user=alice) == 1
    out = capsys.readouterr().out
    assert "failed     c.jsonl, line 1: This is not JSON." in out
    assert "line 4: “id” must be" in out
    assert list(documents_in(alice)) == ["5"]


def test_odd_texts_of_a_corpus_come_back_as_they_were(alice: Person, tmp_path: Path) -> None:
    rows = [{"id": str(number), "title": "", "text": text} for number, text in enumerate(NAUGHTY)]
    assert ingest(corpus(tmp_path / "c.jsonl", *rows), user=alice) == 0
    for number, text in enumerate(NAUGHTY):
        document = documents_in(alice)[str(number)]
        assert document.text == text
        assert "".join(chunk.text for chunk in chunks_of(document)).split() == text.split()


def test_the_later_of_two_rows_with_one_id_wins(alice: Person, tmp_path: Path) -> None:
    path = corpus(tmp_path / "c.jsonl", {"id": "a", "text": "first"}, {"id": "a", "text": "second"})
    assert ingest(path, user=alice) == 0
    assert documents_in(alice)["a"].text == "second"


@pytest.mark.thorough
def test_a_corpus_that_was_killed_half_way_is_whole_after_a_second_run(alice: Person, tmp_path: Path) -> None:
    rows = [{"id": f"d{number}", "title": "", "text": prose(30, f"x{number}")} for number in range(260)]
    path = corpus(tmp_path / "c.jsonl", *rows)
    killed = run_command(
        "ingest", str(path), "--kb", "docs", "--user", alice.email, KLERAI_FAILPOINT="corpus_batch_stored"
    )
    assert (killed.returncode, len(documents_in(alice))) == (-9, 256)
    assert ingest(path, user=alice) == 0
    charlie = make_charlie()
    assert ingest(path, user=charlie) == 0
    mine, undisturbed = documents_in(alice), documents_in(charlie)
    assert {name: seen(document) for name, document in mine.items()} == {n: seen(d) for n, d in undisturbed.items()}


def test_without_a_person_everybody_reads_it(database: object, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(prose(30))
    assert ingest(tmp_path / "a.txt", user=None, kb="shared-shelf") == 0
    assert list(documents_in(None, "shared-shelf")) == ["a.txt"]
    KnowledgeBase.objects.get(owner=None, slug="shared-shelf").delete()  # everybody would find it


@pytest.mark.parametrize(
    "arguments",
    [[], ["no-such-file"], [".", "--kb", "no slug"], [".", "--kb", "x" * 65], [".", "--user", "nobody@example.org"]],
)
def test_bad_usage_is_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("ingest", *arguments)
    assert refused.value.returncode in {1, 2}


@pytest.mark.thorough
def test_bad_usage_exits_with_2(database: object) -> None:
    assert run_command("ingest", "no-such-file").returncode == 2
