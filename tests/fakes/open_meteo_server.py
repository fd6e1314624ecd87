"""A small server that speaks Open-Meteo’s two services: `python -m tests.fakes.open_meteo_server --port 0`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from tests.fakes.outside import Answer, OutsideFake, Seen, Step, serve_by_hand

Place = Mapping[str, Any]


def place(name: str, latitude: float, longitude: float, *, code: str, country: str, **more: Any) -> dict[str, Any]:
    """A hit of the geocoding."""
    return {
        "id": abs(hash((latitude, longitude))) % 10**7,
        "name": name,
        "latitude": latitude,
        "longitude": longitude,
        "feature_code": "PPL",
        "country_code": code,
        "country": country,
        "timezone": "Europe/Paris",
        **more,
    }


PARIS = place("Paris", 48.85341, 2.3488, code="FR", country="France", admin1="Île-de-France", population=2_138_551)
PARIS_TEXAS = place("Paris", 33.66094, -95.55551, code="US", country="United States", admin1="Texas", population=24_171)
VIENNA = place("Vienna", 48.20849, 16.37208, code="AT", country="Austria", admin1="Vienna", population=1_691_468)
OSLO = place("Oslo", 59.91273, 10.74609, code="NO", country="Norway", timezone="Europe/Oslo")
SPRINGFIELDS = [
    place("Springfield", 39.8017, -89.6437, code="US", country="United States", admin1="Illinois", population=114_394),
    place("Springfield", 37.2153, -93.2982, code="US", country="United States", admin1="Missouri", population=169_176),
]
CURRENT = {
    "temperature_2m": (7.4, "°C"),
    "relative_humidity_2m": (81, "%"),
    "apparent_temperature": (4.9, "°C"),
    "precipitation": (0.0, "mm"),
    "weather_code": (3, "wmo code"),
    "wind_speed_10m": (11.2, "km/h"),
}
DAILY = {
    "temperature_2m_max": ([9.1, 10.0, 8.0], "°C"),
    "temperature_2m_min": ([4.0, 5.2, 3.1], "°C"),
    "precipitation_probability_max": ([10, 60, None], "%"),
    "weather_code": ([3, 61, 99], "wmo code"),
}


@dataclass(slots=True)
class OpenMeteoFake(OutsideFake):
    """Both services at one address; a place it does not know is a 200 without results, as there."""

    places: list[Place] = field(default_factory=lambda: [PARIS, PARIS_TEXAS, VIENNA, OSLO, *SPRINGFIELDS])
    current: dict[str, Any] = field(default_factory=dict)

    def answer(self, seen: Seen) -> Answer:
        match seen.path:
            case "/v1/search":
                return self._search(seen.params)
            case "/v1/forecast":
                return self._forecast(seen.params)
        return 404, {"error": True, "reason": "Not Found"}

    def error(self, step: Step) -> Any:
        reason = "Minutely API request limit exceeded. Please try again in one minute." if step.status == 429 else "No."
        return {"error": True, "reason": reason}

    def _search(self, params: Mapping[str, str]) -> Answer:
        name = params.get("name", "").lower()
        found = [one for one in self.places if len(name) > 1 and one["name"].lower().startswith(name)]
        if params.get("countryCode"):
            found = [one for one in found if one["country_code"] == params["countryCode"]]
        found = found[: int(params.get("count", "10"))]
        return 200, {**({"results": found} if found else {}), "generationtime_ms": 0.4}

    def _forecast(self, params: Mapping[str, str]) -> Answer:
        try:
            latitude, longitude = float(params["latitude"]), float(params["longitude"])
        except (KeyError, ValueError):
            return 400, {"error": True, "reason": "Parameter 'latitude' and 'longitude' must have the same number"}
        asked = [*params.get("current", "").split(","), *params.get("daily", "").split(",")]
        unknown = [name for name in asked if name and name not in {**CURRENT, **DAILY}]
        if unknown or ("daily" in params and "timezone" not in params):
            return 400, {"error": True, "reason": f"Cannot initialize from invalid String value {unknown}"}
        days = int(params.get("forecast_days", "7"))
        is_imperial = params.get("temperature_unit") == "fahrenheit"
        units = {"°C": "°F", "km/h": "mp/h", "mm": "inch"} if is_imperial else {}
        current = {**{name: value for name, (value, _) in CURRENT.items()}, **self.current}
        daily = {name: [values[day % 3] for day in range(days)] for name, (values, _) in DAILY.items()}
        first = date(2026, 11, 20)
        return 200, {
            "latitude": round(latitude, 2),
            "longitude": round(longitude, 2),
            "utc_offset_seconds": 3600,
            "timezone": "Europe/Paris",
            "timezone_abbreviation": "GMT+1",
            "elevation": 38.0,
            "current_units": {
                "time": "iso8601",
                **{name: units.get(unit, unit) for name, (_, unit) in CURRENT.items()},
            },
            "current": {"time": "2026-11-20T10:00", "interval": 900, **current},
            "daily_units": {"time": "iso8601", **{name: units.get(unit, unit) for name, (_, unit) in DAILY.items()}},
            "daily": {"time": [f"{first + timedelta(days=day)}" for day in range(days)], **daily},
        }


if __name__ == "__main__":
    serve_by_hand(OpenMeteoFake(), __doc__)
