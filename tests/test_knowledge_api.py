"""Knowledge over REST: bases, documents, searching, for their owner and nobody else."""

from __future__ import annotations

import json
import uuid
from urllib.parse import urlsplit

import pytest

from klerai.accounts.models import Person
from retrieval.models import Chunk, Document, KnowledgeBase
from tests.harness.doors import Visitor, by_key, by_session
from tests.people import make_alice
from tests.serving import run_command
from tests.uploading import DEFAULT, GUIDE, added, listed, read, send, shared_base, shared_document

BASES = "/api/knowledge-bases"
HOSTILE = [
    "../../etc/passwd",
    "<img src=x onerror=alert(1)>.md",
    'a"b\r\nSet-Cookie: x=1.txt',
    "\u202egpj.exe.md",
    "🦦" * 120,
]


def code(response: object) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]  # type: ignore[attr-defined]


def made(there: Visitor, name: str = "Team handbook") -> dict[str, object]:
    response = there.post(BASES, {"name": name})
    assert response.status_code == 201, response.text
    found: dict[str, object] = response.json()
    return found


def test_a_knowledge_base_gets_a_slug_from_its_name(server: str) -> None:
    with by_key(server) as alice:
        assert made(alice) == {"slug": "team-handbook", "name": "Team handbook", "shared": False}
        assert made(alice)["slug"] == "team-handbook-2"
        assert made(alice, "  Ärzte  &\tPflege ")["slug"] == "arzte-pflege"
        assert made(alice, "知识 🦦") == {"slug": "knowledge-base", "name": "知识 🦦", "shared": False}
        assert made(alice, "default_kb")["slug"] == "default_kb-2"
        given = alice.post(BASES, {"name": "Law", "slug": "paragraphs"}).json()
        assert (given["slug"], alice.post(BASES, {"slug": "only-a-slug"}).json()["name"]) == (
            "paragraphs",
            "only-a-slug",
        )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "Law", "slug": "no spaces"}, "slug"),
        ({"name": "Law", "slug": "default_kb"}, "slug"),
    ],
)
def test_a_name_that_cannot_be_is_refused_by_its_field(server: str, body: dict[str, str], field: str) -> None:
    with by_key(server) as alice:
        refused = alice.post(BASES, body)
        assert code(refused) == (400, "invalid")
        assert field in refused.json()["error"]["fields"]


def test_own_knowledge_bases_stand_before_shared_ones_a_page_at_a_time(server: str) -> None:
    shared = [shared_base().slug for _ in range(2)]
    with by_session(server) as alice, by_key(server) as charlie:
        mine = [str(made(alice, f"Number {number}")["slug"]) for number in range(3)]
        made(charlie, "Not hers")
        seen: list[dict[str, object]] = []
        address: str | None = f"{BASES}?limit=2"
        while address:
            page = alice.get(address).json()
            assert set(page) == {"results", "next"}
            seen += page["results"]
            address = page["next"] and "{0.path}?{0.query}".format(urlsplit(page["next"]))
        slugs = [str(one["slug"]) for one in seen]
        assert slugs[:3] == mine[::-1]
        assert set(shared) <= set(slugs[3:])
        assert all(one["shared"] for one in seen[3:])
        assert len(slugs) == len(set(slugs))
        assert code(alice.get(f"{BASES}?limit=0")) == (400, "invalid")


def test_a_knowledge_base_is_renamed_and_deleted_with_all_that_is_in_it(server: str) -> None:
    with by_key(server) as alice:
        base = f"{BASES}/{made(alice)['slug']}"
        document = added(alice, base=base)
        renamed = alice.http.patch(base, json={"name": "Handbook"})
        assert (
            renamed.json() == {"slug": "team-handbook", "name": "Handbook", "shared": False} == alice.get(base).json()
        )
        assert alice.http.delete(base).status_code == 204
        assert code(alice.get(base)) == code(alice.get(f"{base}/documents")) == (404, "not_found")
        assert not Document.objects.filter(pk=document).exists()
        assert not Chunk.objects.filter(document=document).exists()


def test_an_uploaded_file_is_queued_then_ready_in_the_shape_that_was_promised(server: str) -> None:
    with by_key(server) as alice:
        base = f"{BASES}/{made(alice)['slug']}"
        response = send(alice, ("guide.md", GUIDE), ("notes.txt", "Otters swim."), base=base)
        assert response.status_code == 202
        guide, notes = response.json()["documents"]
        assert guide == {"id": guide["id"], "status": "queued"}
        waiting = {"external_id": "", "status": "queued", "progress": 0, "error": None, "chunks": 0}
        assert listed(alice, f"{base}/documents") == [
            {**waiting, "id": notes["id"], "title": "notes.txt", "bytes": 12},
            {**waiting, "id": guide["id"], "title": "guide.md", "bytes": len(GUIDE)},
        ]
        read(guide["id"])
        one = alice.get(f"{base}/documents/{guide['id']}").json()
        chunks = Chunk.objects.filter(document=guide["id"]).count()
        assert (
            one
            == listed(alice, f"{base}/documents")[1]
            == {
                **waiting,
                "id": guide["id"],
                "title": "guide.md",
                "bytes": len(GUIDE),
                "status": "ready",
                "progress": 100,
                "chunks": chunks,
            }
        )


def test_a_file_that_cannot_be_read_says_why_and_is_tried_again_or_thrown_away(server: str) -> None:
    with by_session(server) as alice:
        document = added(alice, "broken.pdf", b"%PDF-1.7 nonsense")
        address = f"{DEFAULT}/documents/{document}"
        failed = alice.get(address).json()
        assert (failed["status"], failed["chunks"]) == ("failed", 0)
        assert failed["error"].startswith("The PDF")
        again = alice.post(f"{address}/retry")
        assert (again.status_code, again.json()["status"], again.json()["error"]) == (202, "queued", None)
        assert alice.http.delete(address).status_code == 204
        assert code(alice.get(address)) == code(alice.http.delete(address)) == (404, "not_found")


def test_an_upload_without_a_file_or_as_json_is_refused(server: str) -> None:
    with by_key(server) as alice:
        nothing = alice.http.post(f"{DEFAULT}/documents", files=[("other", ("a.txt", b"a"))])
        assert code(nothing) == (400, "invalid")
        assert list(nothing.json()["error"]["fields"]) == ["file"]
        assert code(alice.post(f"{DEFAULT}/documents", {"file": "a"})) == (415, "unsupported")
        assert not Document.objects.filter(knowledge_base__owner=alice.person).exists()


def test_documents_are_listed_newest_first_a_page_at_a_time(server: str) -> None:
    with by_key(server) as alice:
        base = f"{BASES}/{made(alice)['slug']}"
        sent = [send(alice, (f"{number}.txt", f"Otter {number}"), base=base) for number in range(5)]
        ids = [response.json()["documents"][0]["id"] for response in sent]
        first = alice.get(f"{base}/documents?limit=3").json()
        second = alice.get("{0.path}?{0.query}".format(urlsplit(first["next"]))).json()
        assert [one["id"] for one in (*first["results"], *second["results"])] == ids[::-1]
        assert second["next"] is None


def test_the_original_comes_back_byte_for_byte_and_only_to_be_saved(server: str) -> None:
    data = b"\xef\xbb\xbf<script>alert(1)</script>" + bytes(range(256)) * 5_000
    with by_session(server) as alice:
        document = send(alice, ("naïve <b>.html", data)).json()["documents"][0]["id"]
        got = alice.get(f"{DEFAULT}/documents/{document}/original")
        assert got.content == data
        assert got.headers["content-disposition"].startswith("attachment; filename")
        assert (got.headers["x-content-type-options"], got.headers["content-type"]) == (
            "nosniff",
            "application/octet-stream",
        )
        assert got.headers["content-security-policy"] == "sandbox"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_harmless_as_title_and_as_file_name(server: str, name: str) -> None:
    with by_key(server) as alice:
        made_of = send(alice, (name, "Otters."))
        assert made_of.status_code == 202, made_of.text
        document = made_of.json()["documents"][0]["id"]
        title = alice.get(f"{DEFAULT}/documents/{document}").json()["title"]
        assert not set(title) & set("\r\n\x00\u202e/\\")
        original = alice.get(f"{DEFAULT}/documents/{document}/original")
        assert original.status_code == 200
        assert "set-cookie" not in original.headers


def addresses(slug: str, document: str) -> list[tuple[str, str]]:
    base = f"{BASES}/{slug}"
    return [
        ("GET", base),
        ("PATCH", base),
        ("DELETE", base),
        ("GET", f"{base}/documents"),
        ("POST", f"{base}/documents"),
        ("GET", f"{base}/documents/{document}"),
        ("DELETE", f"{base}/documents/{document}"),
        ("POST", f"{base}/documents/{document}/retry"),
        ("GET", f"{base}/documents/{document}/original"),
        ("GET", f"{base}/search?q=otters"),
    ]


def asked(there: Visitor, method: str, path: str) -> tuple[int, str]:
    body = {"files": [("file", ("a.txt", b"a"))]} if path.endswith("/documents") else {"json": {"name": "Mine"}}
    response = there.http.request(method, path, **(body if method != "GET" else {}))
    return response.status_code, response.text


def test_a_stranger_meets_the_same_nothing_at_every_address(server: str) -> None:
    with by_key(server) as alice, by_key(server) as charlie, by_session(server, charlie.person) as browser:
        slug = str(made(alice, f"Secret {uuid.uuid4().hex[:8]}")["slug"])
        document = added(alice, base=f"{BASES}/{slug}")
        nothing = addresses(f"{slug}x", str(uuid.uuid4()))
        for (method, hers), (_, missing) in zip(addresses(slug, document), nothing, strict=True):
            for stranger in (charlie, browser):
                assert asked(stranger, method, hers) == asked(stranger, method, missing)
                assert asked(stranger, method, hers)[0] == 404, (method, hers)
        for method, path in addresses("default_kb", document):
            if document in path:
                assert asked(charlie, method, path)[0] == 404, (method, path)
        assert alice.get(f"{BASES}/{slug}/documents/{document}").json()["status"] == "ready"
        assert "Secret" not in charlie.get(BASES).text
        assert GUIDE.splitlines()[2] not in charlie.get(f"{DEFAULT}/search?q=otters").text


def test_nobody_gets_in_without_a_login(server: str) -> None:
    with by_key(server) as alice, by_key(server) as nobody:
        document = added(alice)
        del nobody.http.headers["authorization"]
        for method, path in (("GET", BASES), ("POST", BASES), *addresses("default_kb", document)):
            assert asked(nobody, method, path)[0] == 401, (method, path)


def test_a_session_needs_its_token_to_write(server: str) -> None:
    with by_session(server) as alice:
        del alice.http.headers["x-csrftoken"]
        assert code(send(alice, ("a.txt", "a"))) == (403, "forbidden")
        assert Document.objects.filter(knowledge_base__owner=alice.person).count() == 0


def test_a_shared_knowledge_base_is_read_by_everyone_and_written_by_nobody_here(server: str) -> None:
    base = shared_base()
    document = str(shared_document(base).pk)
    with by_key(server) as alice:
        for method, path in addresses(base.slug, document):
            status, text = asked(alice, method, path)
            if method == "GET":
                assert status == (404 if path.endswith("/original") else 200), path
            else:
                assert (status, json.loads(text)["error"]["code"]) == (403, "forbidden"), path
        assert Document.objects.filter(pk=document, status="ready").exists()
        assert alice.get(f"{DEFAULT}/documents/{document}").json()["id"] == document, "as a search in it finds it"
        assert document not in {one["id"] for one in listed(alice, f"{DEFAULT}/documents?limit=100")}


def test_what_is_written_to_the_default_one_is_the_persons_own(server: str) -> None:
    with by_key(server) as alice, by_key(server) as charlie:
        added(alice)
        assert KnowledgeBase.objects.get(owner=alice.person).slug == "default_kb"
        assert alice.get(BASES).json()["results"][0]["slug"] == "default_kb"
        assert listed(alice)[0]["title"] == "guide.md"
        assert "guide.md" not in {one["title"] for one in listed(charlie)}


def test_a_search_answers_in_the_shape_that_was_promised(server: str) -> None:
    with by_key(server) as alice:
        slug = made(alice)["slug"]
        document = added(alice, base=f"{BASES}/{slug}")
        answer = alice.get(f"{BASES}/{slug}/search", params={"q": "where do otters sleep", "limit": 3}).json()
        assert set(answer) == {"results", "degraded"}
        best = answer["results"][0]
        assert {"document", "text", "section", "start", "end", "ranks", "scores"} <= set(best)
        assert best["document"] == {"id": document, "external_id": "", "title": "guide.md"}
        assert GUIDE[best["start"] : best["end"]] == best["text"]
        for part in ("ranks", "scores"):
            assert set(best[part]) == {"keyword", "vector", "fused", "reranked"}
        assert (best["ranks"]["keyword"], best["ranks"]["fused"], best["ranks"]["reranked"]) == (1, 1, None)


@pytest.mark.parametrize(
    "query", ["", "q=", "q=%20", "q=a&limit=0", "q=a&limit=101", "q=a&limit=x", f"q={'x' * 2_001}", "q=%00"]
)
def test_a_search_that_cannot_be_is_refused(server: str, query: str) -> None:
    with by_key(server) as alice:
        refused = alice.get(f"{DEFAULT}/search?{query}")
        assert code(refused) == (400, "invalid")
        assert set(refused.json()["error"]["fields"]) <= {"q", "limit"}


def test_the_schema_names_every_address(server: str) -> None:
    with by_key(server) as alice:
        paths = alice.get("/api/schema/?format=json").json()["paths"]
    at = "/api/knowledge-bases/{slug}"
    for path in ("", "/documents", "/documents/{document_id}", "/documents/{document_id}/retry", "/search"):
        assert at + path in paths
    assert "multipart/form-data" in paths[f"{at}/documents"]["post"]["requestBody"]["content"]


@pytest.mark.thorough
def test_the_command_and_the_endpoint_agree_to_the_digit(server: str) -> None:
    with by_key(server) as alice:
        added(alice)
        params = {"q": "otters in rivers", "limit": 5}
        answer = alice.get(f"{DEFAULT}/search", params=params).json()
    done = run_command("search", params["q"], "--json", "--user", _email(alice.person))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == answer


def _email(person: Person) -> str:
    return str(person.email)


def test_fifty_tenants_find_their_own_canary_and_no_other(server: str) -> None:
    """A few here; the scenario with all of them stands with the ingestion."""
    canaries = {make_alice(): f"canary{uuid.uuid4().hex[:10]}" for _ in range(3)}
    for person, word in canaries.items():
        with by_key(server, person) as there:
            added(there, "canary.txt", f"The word of the day is {word}. Otters.")
    for person, word in canaries.items():
        with by_key(server, person) as there:
            for query in ("word of the day otters", *canaries.values()):
                text = there.get(f"{DEFAULT}/search", params={"q": query, "limit": 20}).text
                assert not any(other in text for other in canaries.values() if other != word)
