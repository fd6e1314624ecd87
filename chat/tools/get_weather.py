"""Tells the weather at a place, now and in the next days (seed 002)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from chat.tools.base import ToolContext, ToolFailure, ToolOutput
from chat.tools.open_meteo import Place, Weather, places_named, weather_at
from chat.tools.outside import OutsideFault

MOST_LISTED = 6
FAR_LARGER = 3  # times the people of the next place of the name: then it is the one that is meant
CREDIT = "Weather data by Open-Meteo.com, CC BY 4.0."
_COUNTRIES = {"UK": "GB", "USA": "US", "ENGLAND": "GB"}
_SKIES = {
    0: "clear",
    **{1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "fog with rime"},
    **{51: "light drizzle", 53: "drizzle", 55: "dense drizzle", 56: "freezing drizzle", 57: "dense freezing drizzle"},
    **{61: "light rain", 63: "rain", 65: "heavy rain", 66: "freezing rain", 67: "heavy freezing rain"},
    **{71: "light snow", 73: "snow", 75: "heavy snow", 77: "snow grains"},
    **{80: "light showers", 81: "showers", 82: "violent showers", 85: "snow showers", 86: "heavy snow showers"},
    **{95: "thunderstorm", 96: "thunderstorm with hail", 99: "thunderstorm with heavy hail"},
}


@dataclass(frozen=True, slots=True)
class GetWeather:
    """By Open-Meteo, without a key. It asks two addresses of the operator's, so it fetches nothing else."""

    name: str = "get_weather"
    description: str = (
        "Tells the current weather and the forecast of up to 16 days at a place, with units and local time. Give the "
        "place's name in English or its own language, with its region or country where there are several: “Paris, "
        "Texas”. Say where the figures come from."
    )
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {
                "place": {
                    "type": "string",
                    "minLength": 2,
                    "maxLength": 100,
                    "description": "A town or another place, such as “Vienna” or “Paris, Texas”.",
                },
                "country": {
                    "type": "string",
                    "maxLength": 60,
                    "description": "The country, by name or two letters, where the name alone is not clear.",
                },
                "days": {"type": "integer", "minimum": 1, "maximum": 16, "default": 3},
                "units": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"},
            },
            "required": ["place"],
            "additionalProperties": False,
        }
    )
    examples: tuple[str, ...] = ("What is the weather in Vienna?", "Will it rain in Oslo tomorrow?")
    category: str = "tool"
    contexts: tuple[str, ...] = ()
    reads_private: bool = False
    fetches: bool = False
    writes: bool = False

    def label(self, arguments: Mapping[str, Any]) -> str:
        return f"Look up the weather in {arguments.get('place', '')}"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput | ToolFailure:
        name, _, region = (part.strip() for part in str(arguments["place"]).partition(","))
        hints = [part.strip() for part in (*region.split(","), str(arguments.get("country") or "")) if part.strip()]
        try:
            places = _matching(await places_named(name), hints)
            if not places:
                return ToolFailure(_unknown(name, hints), is_retryable=True)
            place, others = _chosen(name, places)
            if place is None:
                return ToolFailure(_several(name, others), is_retryable=True)
            is_imperial = arguments.get("units") == "imperial"
            weather = await weather_at(place, days=int(arguments.get("days", 3)), is_imperial=is_imperial)
        except OutsideFault as fault:
            return fault.as_failure()
        return ToolOutput(_told(place, weather, others), f"{place.full_name}: {_now(weather)}")


def _matching(places: Sequence[Place], hints: Sequence[str]) -> list[Place]:
    """Those that lie in every region or country that is named."""
    return [place for place in places if all(_lies_in(place, hint) for hint in hints)]


def _lies_in(place: Place, hint: str) -> bool:
    code = _COUNTRIES.get(hint.upper(), hint.upper())
    return place.country_code == code or any(hint.casefold() == region.casefold() for region in place.regions)


def _chosen(name: str, places: Sequence[Place]) -> tuple[Place | None, list[Place]]:
    """The place that is meant, if one stands out, and the others that bear the name."""
    same = [place for place in places if place.name.casefold() == name.casefold()] or list(places[:1])
    first, *others = sorted(same, key=lambda place: -place.population)
    if others and first.population < FAR_LARGER * others[0].population:
        return None, [first, *others]
    if others and not first.population:
        return None, [first, *others]
    return first, others


def _unknown(name: str, hints: Sequence[str]) -> str:
    where = f" in {', '.join(hints)}" if hints else ""
    return f"No place called “{name}”{where} is known. Check the spelling, or name a larger town nearby."


def _several(name: str, places: Sequence[Place]) -> str:
    return f"There are several places called “{name}”: {_listed(places)}. Give the one that is meant with its region."


def _listed(places: Sequence[Place]) -> str:
    return "; ".join(dict.fromkeys(place.full_name for place in places[:MOST_LISTED]))


def _told(place: Place, weather: Weather, others: Sequence[Place]) -> str:
    zone = f", {weather.time_zone}" if weather.time_zone else ""
    lines = [f"Weather in {place.full_name}, at {weather.time.replace('T', ' ')} local time{zone}:"]
    lines.append(f"Now: {_now(weather)}.")
    lines += [f"{_day(day['date'])}: {_foretold(day, weather.units)}." for day in weather.days]
    if others:
        lines.append(f"There are other places of this name: {_listed(others)}.")
    return "\n".join([*lines, CREDIT])


def _now(weather: Weather) -> str:
    now, units = weather.now, weather.units
    feels = _figure(now, units, "apparent_temperature")
    parts = [
        _sky(now.get("weather_code")),
        _figure(now, units, "temperature_2m"),
        f"feels like {feels}" if feels else "",
        _named(now, units, "humidity", "relative_humidity_2m"),
        _named(now, units, "precipitation", "precipitation"),
        _named(now, units, "wind", "wind_speed_10m"),
    ]
    return ", ".join(filter(None, parts)) or "nothing is measured there"


def _foretold(day: Mapping[str, Any], units: Mapping[str, str]) -> str:
    low, high = (_figure(day, units, f"temperature_2m_{end}") for end in ("min", "max"))
    chance = _figure(day, units, "precipitation_probability_max")
    parts = [
        _sky(day.get("weather_code")),
        f"{low} to {high}" if low and high else low or high,
        f"{chance} chance of rain or snow" if chance else "",
    ]
    return ", ".join(filter(None, parts)) or "nothing is foretold"


def _named(values: Mapping[str, Any], units: Mapping[str, str], word: str, name: str) -> str:
    figure = _figure(values, units, name)
    return f"{word} {figure}" if figure else ""


def _figure(values: Mapping[str, Any], units: Mapping[str, str], name: str) -> str:
    """A value with its unit; empty where the service has none."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return f"{value} {units.get(name, '').replace('mp/h', 'mph')}".strip()


def _sky(code: Any) -> str:
    return _SKIES.get(code, f"weather code {code}") if isinstance(code, int) else ""


def _day(written: str) -> str:
    try:
        return f"{date.fromisoformat(written):%A, %-d %B}"
    except ValueError:
        return written[:20]


TOOL = GetWeather()
