"""A server with structured results, progress, resources, templates, a prompt and completions.

The weather is made up, but always the same for the same city. Try it::

    mcp-trio inspect weather.py
    mcp-trio call forecast city=Oslo days=3 weather.py
    mcp-trio call watch city=Oslo hours=8 weather.py
    mcp-trio read weather://Lima/today weather.py
    mcp-trio prompt pack city=Lima weather.py
    mcp-trio complete pack city O weather.py
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import trio
from msgspec import Meta

import mcp_trio

server = mcp_trio.Server(
    "weather",
    "1.0",
    title="Weather",
    instructions="Cities are written in English. Ask for the list of cities first if in doubt.",
)

CITIES = {"Lima": 19.0, "Oslo": 6.0, "Singapore": 28.0}
SKIES = ("clear", "cloudy", "rain")


@dataclass
class Day:
    """The weather of one day."""

    sky: str
    high: float
    low: float


@dataclass
class Forecast:
    """The weather of some days, the next one first."""

    city: str
    unit: str
    days: list[Day]


def weather(city: str, day: int, unit: str = "C") -> Day:
    """Return the weather in `day` days."""
    if city not in CITIES:
        raise mcp_trio.ToolError(f"no weather for {city}; there is some for {', '.join(CITIES)}")
    high = CITIES[city] + (day * 7) % 5
    low = high - 6
    if unit == "F":
        high, low = (degrees * 9 / 5 + 32 for degrees in (high, low))
    return Day(SKIES[(len(city) + day) % len(SKIES)], round(high, 1), round(low, 1))


@server.tool
def forecast(
    city: str, days: Annotated[int, Meta(ge=1, le=7)] = 1, unit: Literal["C", "F"] = "C"
) -> Forecast:
    """Return the weather of the next days.

    Args:
        city: its English name.
        days: how many days to look ahead.
        unit: of the temperatures.
    """
    return Forecast(city, unit, [weather(city, day, unit) for day in range(days)])


@server.tool
async def watch(city: str, context: mcp_trio.Context, hours: int = 3) -> str:
    """Watch the sky for some hours and return what was seen. An hour takes 0.05 s here.

    Args:
        city: its English name.
        hours: how long to watch.
    """
    seen = []
    for hour in range(hours):
        await context.progress(hour, hours, f"watching the sky over {city}")
        await trio.sleep(0.05)
        seen.append(weather(city, hour).sky)
    return ", ".join(seen)


@server.resource("weather://cities", mime_type="application/json")
def cities() -> list[str]:
    """Return the cities with a forecast."""
    return list(CITIES)


@server.resource("weather://{city}/today", mime_type="text/plain")
def today(city: str) -> str:
    """Return the weather of today in one city."""
    if city not in CITIES:
        raise mcp_trio.ResourceNotFound(f"no weather for {city}")
    day = weather(city, 0)
    return f"{city}: {day.sky}, {day.low} to {day.high} °C"


@server.prompt
def pack(city: str, days: int = 3) -> str:
    """Ask what to pack for a journey.

    Args:
        city: where it goes.
        days: how long it takes.
    """
    return f"I travel to {city} for {days} days. Look at the forecast and tell me what to pack."


@server.completion("pack", "city")
@server.completion("weather://{city}/today", "city")
def cities_like(typed: str) -> list[str]:
    """Return the cities whose names begin with the typed text."""
    return [city for city in CITIES if city.lower().startswith(typed.lower())]


if __name__ == "__main__":
    mcp_trio.run(server)
