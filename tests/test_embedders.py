"""One suite over every embedder, through the real SDK and real HTTP; the services are fakes at the wire."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from pytest_django import Settings

from klerai.env import BadSetting, Environment
from retrieval.embedders.asking import Patience
from retrieval.embedders.base import Embedder
from retrieval.embedders.choosing import embedder_by_settings, embedder_named, reranker_by_settings
from retrieval.embedders.gemini import Gemini
from retrieval.embedders.kinds import chosen_embedder
from retrieval.embedders.ollama import Ollama
from retrieval.embedders.voyage import Voyage, rerank
from retrieval.embedders.wordllama import WordLlama
from retrieval.errors import EmbedderFailed
from tests.fakes.embedding import KEY
from tests.fakes.gemini_server import GeminiFake
from tests.fakes.ollama_server import OllamaFake
from tests.fakes.outside import OK, OutsideFake, Step
from tests.fakes.voyage_server import VoyageFake
from tests.people import make_person, sign_in

AT_ONCE = Patience(first_wait_seconds=0, longest_wait_seconds=0)
IMPATIENT = Patience(timeout_seconds=0.2, attempts=2, first_wait_seconds=0, longest_wait_seconds=0)
VENDORS = ("voyage", "gemini", "ollama")
MAKERS: dict[str, Callable[[Patience], Embedder]] = {
    "voyage": lambda patience: Voyage(model="voyage-3-large", patience=patience),
    "gemini": lambda patience: Gemini(patience=patience),
    "ollama": lambda patience: Ollama(patience=patience),
    "wordllama": lambda patience: WordLlama(),
}
DIMENSIONS = {"voyage": 1024, "gemini": 768, "ollama": 768, "wordllama": 256}
ODD_TEXTS = ["", " \n", "∑ ∂ ✓", "🎉🎉", "a\x00b", "half \ud800", "x" * 100_000, "田中さんにあげて下さい"]


@dataclass(slots=True)
class Service:
    """A fake and what asks it."""

    kind: str
    fake: OutsideFake

    def embedder(self, patience: Patience = AT_ONCE) -> Embedder:
        return MAKERS[self.kind](patience)


@pytest.fixture(params=VENDORS)
def service(request: pytest.FixtureRequest) -> Service:
    return Service(request.param, request.getfixturevalue(f"{request.param}_fake"))


@pytest.fixture(params=list(MAKERS))
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param in VENDORS:
        request.getfixturevalue(f"{request.param}_fake")
    return MAKERS[request.param](AT_ONCE)


async def test_vectors_are_of_unit_length_and_of_the_dimension_the_name_says(embedder: Embedder) -> None:
    kind, *_, dimension = embedder.name.split("/")
    vectors = [await embedder.embed("apples"), *await embedder.batch_embed(["pears", "plums"])]
    assert embedder.dimension == DIMENSIONS[kind] == int(dimension)
    assert all(vector.shape == (embedder.dimension,) and vector.dtype == np.float32 for vector in vectors)
    assert np.allclose([np.linalg.norm(vector) for vector in vectors], 1, atol=1e-5)


async def test_any_number_of_texts_comes_back_in_their_order(embedder: Embedder) -> None:
    texts = [f"text number {number} of many" for number in range(301)]
    vectors = await embedder.batch_embed(texts)
    again = await embedder.batch_embed(texts[::-1])
    assert len(vectors) == 301
    assert np.allclose(vectors, again[::-1], atol=1e-5)
    assert np.allclose(vectors[250], (await embedder.batch_embed([texts[250]]))[0], atol=1e-5)
    assert await embedder.batch_embed([]) == []


async def test_a_question_lies_near_the_passage_that_answers_it(embedder: Embedder) -> None:
    question = await embedder.embed("when are the daily credits given again")
    near, far = await embedder.batch_embed(
        ["the daily credits are given again at midnight", "a cat sleeps on some warm windowsill"]
    )
    assert question @ near > question @ far + 0.1


async def test_text_without_meaning_has_a_vector_too(embedder: Embedder) -> None:
    vectors = [*await embedder.batch_embed(ODD_TEXTS), *[await embedder.embed(text) for text in ODD_TEXTS]]
    assert np.isfinite(vectors).all()
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_an_embedder_serves_one_event_loop_after_another(embedder: Embedder) -> None:
    first, second = (asyncio.run(embedder.embed("apples")) for _ in range(2))
    assert np.allclose(first, second)


async def test_questions_and_passages_are_told_apart_on_the_wire(service: Service) -> None:
    await service.embedder().embed("apples")
    await service.embedder().batch_embed(["apples"])
    asked, stored = service.fake.requests
    match service.kind:
        case "voyage":
            assert (asked.body["input_type"], stored.body["input_type"]) == ("query", "document")
            assert stored.body["output_dimension"] == 1024
        case "gemini":
            (query,), (document,) = asked.body["requests"], stored.body["requests"]
            assert (query["taskType"], document["taskType"]) == ("RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT")
        case _:
            assert asked.body["input"] == ["search_query: apples"]
            assert stored.body["input"] == ["search_document: apples"]


async def test_requests_stay_within_what_the_service_takes(service: Service) -> None:
    await service.embedder().batch_embed(["short"] * 200 + ["word " * 3_900] * 30)
    sizes = [len(seen.body.get("input") or seen.body["requests"]) for seen in service.fake.requests]
    assert sum(sizes) == 230
    assert max(sizes) <= {"voyage": 128, "gemini": 100, "ollama": 16}[service.kind]
    if service.kind == "voyage":
        assert max(sum(map(len, seen.body["input"])) for seen in service.fake.requests) <= 300_000


@pytest.mark.parametrize("trouble", [Step(wrong="count"), Step(wrong="nan"), Step(429), Step(500), Step(503)], ids=repr)
async def test_trouble_that_passes_is_not_noticed(service: Service, trouble: Step) -> None:
    right = await service.embedder().batch_embed(["apples", "pears"])
    service.fake.script(trouble, trouble)
    assert np.allclose(await service.embedder().batch_embed(["apples", "pears"]), right)
    assert len(service.fake.requests) == 4


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated:DeprecationWarning")  # the SDK's own words for it
async def test_an_answer_cut_off_is_asked_for_again(service: Service) -> None:
    service.fake.script(Step(is_cut=True), OK)
    assert len(await service.embedder().batch_embed(["apples"])) == 1
    assert len(service.fake.requests) == 2


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (Step(wrong="count"), "gave 1 vectors for 2 texts"),
        (Step(wrong="nan"), "not finite"),
        (Step(wrong="dimension"), "of dimension"),
        (Step(wrong="form"), "cannot be read"),
        (Step(429), "Try again in a minute."),
        (Step(500), "has a fault (HTTP 500)"),
    ],
    ids=repr,
)
async def test_trouble_that_stays_is_told_in_a_sentence(service: Service, trouble: Step, words: str) -> None:
    service.fake.script(*[trouble] * 3)
    with pytest.raises(EmbedderFailed) as failed:
        await service.embedder().batch_embed(["apples", "pears"])
    assert words in str(failed.value)
    assert str(failed.value).endswith(".")
    assert len(service.fake.requests) == 3


async def test_a_service_that_says_nothing_is_given_up(service: Service) -> None:
    service.fake.script(*[Step(is_stalled=True)] * 4)
    for asking in (service.embedder(IMPATIENT).embed("apples"), service.embedder(IMPATIENT).batch_embed(["apples"])):
        with pytest.raises(EmbedderFailed, match=r"did not answer within 0\.2 seconds"):
            await asking


async def test_a_service_that_is_not_there_is_named_with_its_setting(service: Service, settings: Settings) -> None:
    name = f"{service.kind.upper()}_BASE_URL"
    setattr(settings, name, "http://127.0.0.1:9/v1")
    with pytest.raises(EmbedderFailed, match=f"cannot be reached. Check {name}"):
        await service.embedder().embed("apples")


@pytest.mark.parametrize("kind", ["voyage", "gemini"])
async def test_a_key_that_is_refused_is_named_by_its_setting_and_never_shown(
    kind: str, request: pytest.FixtureRequest, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    fake: OutsideFake = request.getfixturevalue(f"{kind}_fake")
    setattr(settings, f"{kind.upper()}_API_KEY", f"invalid-{KEY}")
    with caplog.at_level(logging.DEBUG), pytest.raises(EmbedderFailed, match=f"{kind.upper()}_API_KEY") as failed:
        await MAKERS[kind](AT_ONCE).embed("apples")
    assert KEY not in f"{failed.value!r} {failed.value.__cause__!r} {caplog.text}"
    assert len(fake.requests) == 1


async def test_gemini_is_asked_again_when_it_wishes_but_not_hours_later(gemini_fake: GeminiFake) -> None:
    gemini_fake.script(Step(429, wait=86_400), Step(429, wait=0))
    patience = Patience(first_wait_seconds=60, longest_wait_seconds=0.01)
    assert len(await Gemini(patience=patience).batch_embed(["apples"])) == 1


async def test_ollama_is_given_the_time_to_load_its_model(ollama_fake: OllamaFake) -> None:
    ollama_fake.load_seconds = 0.3
    assert (await Ollama(patience=AT_ONCE).embed("apples")).shape == (768,)


async def test_a_model_that_was_never_pulled_says_how_to_pull_it(ollama_fake: OllamaFake) -> None:
    ollama_fake.pulled.clear()
    with pytest.raises(EmbedderFailed, match="Run `ollama pull nomic-embed-text`"):
        await Ollama(patience=AT_ONCE).embed("apples")


async def test_rerank_scores_passages_in_their_own_order(voyage_fake: VoyageFake) -> None:
    scores = await rerank("daily credits reset", ["a cat", "credits reset daily", "", "credits"], patience=AT_ONCE)
    assert scores == pytest.approx([0, 1, 0, 1 / 3])
    assert voyage_fake.requests[0].body["model"] == "rerank-2.5"
    assert await rerank("anything", []) == []


async def test_rerank_that_fails_says_so(voyage_fake: VoyageFake) -> None:
    voyage_fake.script(*[Step(500)] * 3)
    with pytest.raises(EmbedderFailed, match="Voyage AI has a fault"):
        await rerank("daily credits", ["a cat"], patience=AT_ONCE)


async def test_wordllama_gives_what_its_package_gives() -> None:
    import wordllama

    folder = Path(str(find_spec("wordllama").origin)).parent  # type: ignore[union-attr]
    package = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    texts = ["How do daily credits reset?", "def main(): return 42", "Zürich, 12.5 %"]
    assert np.allclose(await WordLlama().batch_embed(texts), package.embed(texts, norm=True), atol=1e-5)


def test_wordllama_is_loaded_once_however_many_threads_ask() -> None:
    vectors: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: vectors.append(asyncio.run(WordLlama().embed("apples")).tobytes()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(vectors) == 4
    assert len(set(vectors)) == 1


@pytest.mark.parametrize(
    ("environment", "chosen"),
    [
        ({}, "wordllama"),
        ({"VOYAGE_API_KEY": "k", "GEMINI_API_KEY": "k"}, "voyage"),
        ({"GEMINI_API_KEY": "k"}, "gemini"),
        ({"OLLAMA_BASE_URL": "http://127.0.0.1:11434"}, "wordllama"),
        ({"KLERAI_EMBEDDER": "ollama"}, "ollama"),
        ({"KLERAI_EMBEDDER": "none", "VOYAGE_API_KEY": "k"}, "none"),
    ],
    ids=str,
)
def test_the_embedder_follows_the_keys(environment: dict[str, str], chosen: str) -> None:
    assert chosen_embedder(Environment(environment)) == chosen


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"KLERAI_EMBEDDER": "voyage"}, "VOYAGE_API_KEY"),
        ({"KLERAI_EMBEDDER": "gemini"}, "GEMINI_API_KEY"),
        ({"KLERAI_EMBEDDER": "word2vec"}, "KLERAI_EMBEDDER"),
        ({"VOYAGE_API_KEY": "pa-…"}, "VOYAGE_API_KEY"),
    ],
    ids=str,
)
def test_a_choice_that_cannot_work_stops_the_start(environment: dict[str, str], name: str) -> None:
    with pytest.raises(BadSetting, match=name):
        chosen_embedder(Environment(environment))


def test_a_knowledge_base_finds_its_embedder_by_name(voyage_fake: VoyageFake, settings: Settings) -> None:
    for name in ("voyage/voyage-3.5/1024", "wordllama/l2_supercat/256", "ollama/nomic-embed-text/768"):
        embedder = embedder_named(name)
        assert embedder is not None
        assert embedder.name == name
    for name in ("gemini/gemini-embedding-001/768", "voyage/voyage-3.5/512", "wordllama/other/64", "", "word/x/y"):
        assert embedder_named(name) is None
    settings.EMBEDDER = "none"
    assert embedder_named("wordllama/l2_supercat/256") is None


def test_the_settings_say_which_embedder_and_reranker_there_is(settings: Settings) -> None:
    settings.EMBEDDER = "none"
    assert embedder_by_settings() is None
    assert reranker_by_settings() is None
    settings.EMBEDDER, settings.VOYAGE_API_KEY = "voyage", "k"
    embedder = embedder_by_settings()
    assert embedder is not None
    assert embedder.name == "voyage/voyage-3-large/1024"
    assert reranker_by_settings() is not None


def test_the_set_up_page_says_how_is_searched_and_what_a_key_would_add(settings: Settings) -> None:
    alice = sign_in(make_person())
    page = alice.get("/setup/").text
    assert "WordLlama, on this machine and without a key." in page
    assert "VOYAGE_API_KEY" in page
    settings.EMBEDDER, settings.VOYAGE_API_KEY = "voyage", KEY
    page = alice.get("/setup/").text
    assert "Voyage AI, voyage-3-large." in page
    assert KEY not in page
    settings.EMBEDDER = "none"
    assert "By keyword only" in alice.get("/setup/").text
