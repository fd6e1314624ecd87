"""Open-Meteo: places by name, and the weather at a place."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.cache import cache

from chat.tools.outside import Answered, OutsideFault, Service, ask_json, refused, said_by, unreadable
from chat.tools.showing import clean
from klerai.database import in_database
from klerai.http import vendor_client

SERVICE = Service("Open-Meteo", seconds=4.5)  # the two questions together stay below the ten seconds of a quick answer
CONNECT_SECONDS = 4
KEPT_SECONDS = 600
MOST_PLACES = 10
LONGEST_NAME = 100
CURRENT = (
    *("temperature_2m", "relative_humidity_2m", "apparent_temperature"),
    *("precipitation", "weather_code", "wind_speed_10m"),
)
DAILY = ("temperature_2m_max", "temperature_2m_min", "precipitation_probability_max", "weather_code")
_IMPERIAL = {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph", "precipitation_unit": "inch"}


@dataclass(frozen=True, slots=True)
class Place:
    """A place on earth, in degrees; `regions` from the smallest to the country."""

    name: str
    latitude: float
    longitude: float
    regions: tuple[str, ...]
    country_code: str
    population: int

    @property
    def full_name(self) -> str:
        return ", ".join(dict.fromkeys((self.name, *self.regions)))


@dataclass(frozen=True, slots=True)
class Weather:
    """What is measured now and foretold by day, each value under the service's own name, with its units."""

    time: str
    time_zone: str
    now: Mapping[str, Any]
    units: Mapping[str, str]
    days: tuple[Mapping[str, Any], ...]


async def places_named(name: str) -> list[Place]:
    """The best known first; none for a name nobody knows. Raises OutsideFault."""
    name = name.strip()[:LONGEST_NAME]
    params = {"name": name, "count": str(MOST_PLACES), "language": "en", "format": "json"}
    found = await _asked(settings.OPEN_METEO_GEOCODING_BASE_URL, "/v1/search", params, kept_as=f"place {name.lower()}")
    hits = found.get("results", [])
    return [place for hit in hits if (place := _place(hit)) is not None] if isinstance(hits, list) else []


async def weather_at(place: Place, *, days: int, is_imperial: bool) -> Weather:
    """Now and the next `days` (1 to 16), today included. Raises OutsideFault."""
    params = {
        "latitude": f"{place.latitude:.2f}",
        "longitude": f"{place.longitude:.2f}",
        "current": ",".join(CURRENT),
        "daily": ",".join(DAILY),
        "timezone": "auto",
        "forecast_days": str(days),
        **(_IMPERIAL if is_imperial else {}),
    }
    kept_as = f"weather {params['latitude']} {params['longitude']} {days} {is_imperial}"
    found = await _asked(settings.OPEN_METEO_BASE_URL, "/v1/forecast", params, kept_as=kept_as)
    match found:
        case {"current": {"time": str(time), **now}, "daily": {"time": [*dates], **daily}}:
            current = {str(name): value for name, value in now.items()}
            series = {name: values for name in DAILY if isinstance(values := daily.get(name), list)}
            told = [
                {"date": date, **{name: values[at] for name, values in series.items() if at < len(values)}}
                for at, date in enumerate(dates)
                if isinstance(date, str)
            ]
            units = {**_units(found.get("daily_units")), **_units(found.get("current_units"))}
            return Weather(clean(time), clean(str(found.get("timezone", ""))), current, units, tuple(told))
    raise unreadable(SERVICE)


async def _asked(base_url: str, path: str, params: Mapping[str, str], *, kept_as: str) -> dict[str, Any]:
    """The answer's JSON object, kept some minutes for everybody: it says nothing of who asked."""
    key = f"open-meteo-{hashlib.sha256(f'{base_url} {kept_as}'.encode()).hexdigest()}"
    kept = await in_database(cache.get, key)
    if isinstance(kept, dict):
        return kept
    async with vendor_client(base_url, timeout_seconds=CONNECT_SECONDS) as client:
        answered = await ask_json(client, SERVICE, "GET", path, params=params)
    if answered.status != 200:
        raise _refusal(answered)
    if not isinstance(answered.body, dict):
        raise unreadable(SERVICE)
    if answered.body.get("results") or answered.body.get("current"):  # what is not there costs nothing to ask again
        await in_database(cache.set, key, answered.body, KEPT_SECONDS)
    return answered.body


def _refusal(answered: Answered) -> OutsideFault:
    said = said_by(SERVICE, answered)
    if answered.status == 404:
        return OutsideFault(f"Open-Meteo is not at the address this server asks{f': {said}' if said else '.'}")
    return refused(SERVICE, answered)


def _place(hit: Any) -> Place | None:
    match hit:
        case {
            "name": str(name),
            "latitude": int() | float() as latitude,
            "longitude": int() | float() as longitude,
        } if abs(latitude) <= 90 and abs(longitude) <= 180:
            regions = [hit.get(part) for part in ("admin1", "country")]
            population = hit.get("population")
            return Place(
                clean(name)[:LONGEST_NAME],
                float(latitude),
                float(longitude),
                tuple(clean(part)[:LONGEST_NAME] for part in regions if isinstance(part, str) and part),
                str(hit.get("country_code") or ""),
                population if isinstance(population, int) else 0,
            )
    return None


def _units(found: Any) -> dict[str, str]:
    return {name: clean(str(unit))[:20] for name, unit in found.items()} if isinstance(found, dict) else {}
