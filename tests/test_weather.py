"""O5: the weather by the tool, through a question without a model, and every way in which it may not be told."""

from __future__ import annotations

import pytest

from chat.strategies.spoken_weather import place_in
from tests.fakes.open_meteo_server import OpenMeteoFake, place
from tests.fakes.outside import Step
from tests.harness.doors import by_key
from tests.harness.frames import of_type
from tests.harness.soundness import nothing_breaks

VIENNA = """Weather in Vienna, Austria, at 2026-11-20 10:00 local time, Europe/Paris:

- Now: overcast, 7.4 °C, feels like 4.9 °C, humidity 81 %, precipitation 0.0 mm, wind 11.2 km/h.
- Friday, 20 November: overcast, 4.0 °C to 9.1 °C, 10 % chance of rain or snow.
- Saturday, 21 November: light rain, 5.2 °C to 10.0 °C, 60 % chance of rain or snow.
- Sunday, 22 November: thunderstorm with heavy hail, 3.1 °C to 8.0 °C.
- Weather data by Open-Meteo.com, CC BY 4.0.

*Answered without a model: looked up by the weather tool.*"""


def told(server: str, question: str) -> tuple[str, int]:
    """The answer without a model, and what it cost."""
    with nothing_breaks(), by_key(server) as alice:
        answer = alice.answer(question)
    return answer["response"], answer["credits_used"]


def test_the_weather_is_told_with_its_units_and_costs_a_tool_call(server: str, open_meteo_fake: OpenMeteoFake) -> None:
    assert told(server, "What’s the weather like in Vienna?") == (VIENNA, 5 + 2)
    search, forecast = open_meteo_fake.requests
    assert (search.path, search.params["name"], search.params["language"]) == ("/v1/search", "Vienna", "en")
    assert (forecast.params["latitude"], forecast.params["longitude"]) == ("48.21", "16.37")
    assert forecast.params["timezone"] == "auto"


def test_the_same_place_is_asked_about_once_in_some_minutes_whoever_asks(
    server: str, open_meteo_fake: OpenMeteoFake
) -> None:
    first = told(server, "Weather in Oslo")
    assert told(server, "weather in oslo today?") == first
    assert len(open_meteo_fake.requests) == 2


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Weather in Paris", "Weather in Paris, Île-de-France, France"),
        ("Weather in Paris", "There are other places of this name: Paris, Texas, United States."),
        ("Weather in Paris, Texas", "Weather in Paris, Texas, United States"),
        ("Weather in Paris, us", "Weather in Paris, Texas, United States"),
        ("Weather in Paris, USA", "Weather in Paris, Texas, United States"),
        ("Weather in Springfield", "several places called “Springfield”: Springfield, Missouri, United States; Spring"),
        ("Weather in Springfield, Illinois", "Weather in Springfield, Illinois, United States"),
        ("Weather in Nowhereville", "No place called “Nowhereville” is known. Check the spelling"),
        ("Weather in Paris, Atlantis", "No place called “Paris” in Atlantis is known."),
    ],
)
def test_the_place_that_is_meant_is_named_or_asked_for(
    server: str, open_meteo_fake: OpenMeteoFake, question: str, words: str
) -> None:
    text, credits = told(server, question)
    assert words in text
    assert credits == (7 if "Weather in" in words or "other places" in words else 5)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([Step(429)] * 2, "Open-Meteo wants fewer requests for now. Go on without it."),
        ([Step(500), Step(503)], "Open-Meteo has a fault (HTTP 503). Go on without it."),
        ([Step(400)], "Open-Meteo refused the request: No."),
        ([Step(is_cut=True)] * 2, "Open-Meteo cannot be reached. Go on without it."),
        ([Step(is_stalled=True)], "Open-Meteo did not answer within 4.5 seconds. Go on without it."),
        ([Step(body="<html>Hello</html>")], "Open-Meteo gave an answer that cannot be read. Go on without it."),
        ([Step(body=[1])], "Open-Meteo gave an answer that cannot be read. Go on without it."),
    ],
    ids=["429", "5xx", "400", "cut", "stall", "html", "list"],
)
def test_what_goes_wrong_is_told_and_not_charged(
    server: str, open_meteo_fake: OpenMeteoFake, steps: list[Step], words: str
) -> None:
    open_meteo_fake.script(*steps)
    with nothing_breaks(), by_key(server) as alice:
        frames = alice.events("Weather in Vienna")
    (end,) = of_type(frames, "tool_call_result")
    assert end.data["summary"] == words
    assert (end.data["ok"], frames[-1].data["receipt"]["credits"]) == (False, 5)


def test_what_is_not_measured_is_left_out_and_an_unknown_sky_is_given_by_its_code(
    server: str, open_meteo_fake: OpenMeteoFake
) -> None:
    open_meteo_fake.current = {"temperature_2m": None, "apparent_temperature": None, "weather_code": 42}
    open_meteo_fake.places = [place("Null", 1, 2, code="XX", country="Nowhere")]
    text, _ = told(server, "Weather in Null")
    assert "- Now: weather code 42, humidity 81 %, precipitation 0.0 mm, wind 11.2 km/h." in text


def test_places_off_the_earth_are_no_places(server: str, open_meteo_fake: OpenMeteoFake) -> None:
    open_meteo_fake.places = [place("Beyond", 91, 2, code="XX", country="Nowhere"), {"name": "Beyond"}]
    text, credits = told(server, "Weather in Beyond")
    assert "No place called “Beyond” is known." in text
    assert credits == 5


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What is the weather in Vienna?", "Vienna"),
        ("weather for New York right now", "New York"),
        ("Please tell me the weather in St. Pölten tomorrow, please.", "St. Pölten"),
        ("What will the forecast be for Rio de Janeiro this week?", "Rio de Janeiro"),
        ("How's the weather in Paris, Texas for the next three days", "Paris, Texas"),
        ("What does the handbook say about bad weather in Vienna?", None),
        ("What is the weather?", None),
        ("what is " * 3_000 + "in X", None),
    ],
)
def test_a_question_names_a_place_or_is_none_about_the_weather(question: str, named: str | None) -> None:
    assert place_in(question) == named
