"""osm-mcp-server 0.1: tools about places, on FastMCP of the official SDK and aiohttp.

Four of its tools are here, and its lifespan, which opens the `aiohttp.ClientSession`. aiohttp knows
asyncio only, so the server is started with `--asyncio`:
`mcp-trio run --asyncio -m tests.ported.map_server`.

Lines that had to change:

1. `FastMCP(name, dependencies=[...], lifespan=...)` is `Server(name, lifespan=...)`. What it needs
   is the package's business.
2. `ctx.request_context.lifespan_context.osm_client` is `context.lifespan.osm_client`.
3. `ctx.info(text)`, which was never awaited, is `await context.log("info", text)`.
4. `raise Exception(text)` is `raise ToolError(text)`, which the model reads.
5. `categories: List[str] = None` is `list[str] | None`: a default has the parameter's type.

The lifespan, the session, `async with session.get(...)` and the results stay.
"""

import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from mcp_core import ToolError
from mcp_core.registry import Context, Server

__all__ = ["server"]

# The services' addresses. A test has one for all of them.
ONE = os.environ.get("MAP_SERVICES")
NOMINATIM = ONE or "https://nominatim.openstreetmap.org"
ROUTER = ONE or "https://router.project-osrm.org"
OVERPASS = ONE or "https://overpass-api.de"
CATEGORIES = ("amenity", "shop", "tourism", "leisure")


class OSMClient:
    """The services that the tools ask, by one session."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, url: str, params: dict[str, Any]) -> Any:
        async with self._session.get(url, params=params) as response:
            return await self._read(response)

    async def post(self, url: str, data: dict[str, str]) -> Any:
        async with self._session.post(url, data=data) as response:
            return await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> Any:
        if response.status != 200:
            raise ToolError(f"{response.url.path} has the status {response.status}")
        return await response.json()


@dataclass
class AppContext:
    osm_client: OSMClient


@asynccontextmanager
async def app_lifespan(server: Server) -> AsyncIterator[AppContext]:
    """Open the session, and close it at the end."""
    async with aiohttp.ClientSession(headers={"User-Agent": "ported-map/1.0"}) as session:
        yield AppContext(OSMClient(session))


server = Server("Location-Based App MCP Server", lifespan=app_lifespan)


@server.tool()
async def geocode_address(address: str, context: Context[AppContext]) -> list[dict[str, Any]]:
    """Find places by an address or a name."""
    found = await context.lifespan.osm_client.get(
        f"{NOMINATIM}/search", {"q": address, "format": "json", "limit": 5}
    )
    for place in found:
        if "lat" in place and "lon" in place:
            place["coordinates"] = {
                "latitude": float(place["lat"]),
                "longitude": float(place["lon"]),
            }
    return list(found)


@server.tool()
async def reverse_geocode(
    latitude: float, longitude: float, context: Context[AppContext]
) -> dict[str, Any]:
    """Find the address of a point."""
    params = {"lat": latitude, "lon": longitude, "format": "json"}
    return dict(await context.lifespan.osm_client.get(f"{NOMINATIM}/reverse", params))


@server.tool()
async def find_nearby_places(
    latitude: float,
    longitude: float,
    context: Context[AppContext],
    radius: float = 1000,
    categories: list[str] | None = None,
    limit: int = 20,
) -> dict[str, Any]:
    """Find places within a radius in metres, by category and kind."""
    wanted = categories or CATEGORIES
    height = radius / 111_000  # degrees
    width = height / math.cos(math.radians(latitude))
    box = f"{latitude - height},{longitude - width},{latitude + height},{longitude + width}"
    nodes = " ".join(f'node["{category}"]({box});' for category in wanted)
    await context.log("info", f"Searching within {radius:g} m")
    answer = await context.lifespan.osm_client.post(
        f"{OVERPASS}/api/interpreter", {"data": f"[out:json];({nodes});out body;"}
    )
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for place in answer.get("elements", [])[:limit]:
        tags = place.get("tags", {})
        for category in wanted:
            if category in tags:
                entry = {
                    "id": place.get("id"),
                    "name": tags.get("name", "Unnamed"),
                    "latitude": place.get("lat"),
                    "longitude": place.get("lon"),
                    "tags": tags,
                }
                found.setdefault(category, {}).setdefault(tags[category], []).append(entry)
    return {
        "query": {"latitude": latitude, "longitude": longitude, "radius": radius},
        "categories": found,
        "total_count": sum(len(each) for kinds in found.values() for each in kinds.values()),
    }


@server.tool()
async def get_route_directions(
    from_latitude: float,
    from_longitude: float,
    to_latitude: float,
    to_longitude: float,
    context: Context[AppContext],
    mode: str = "car",
    steps: bool = False,
    overview: str = "simplified",
    annotations: bool = False,
) -> dict[str, Any]:
    """Find the way from one point to another."""
    if mode not in ("car", "bike", "foot"):
        await context.log("warning", f"{mode!r} isn't a mode: taking the car")
        mode = "car"
    ends = f"{from_longitude},{from_latitude};{to_longitude},{to_latitude}"
    answer = await context.lifespan.osm_client.get(
        f"{ROUTER}/route/v1/{mode}/{ends}",
        {
            "overview": overview,
            "geometries": "geojson",
            "steps": str(steps).lower(),
            "annotations": str(annotations).lower(),
        },
    )
    if not answer.get("routes"):
        raise ToolError("there is no way")
    route = answer["routes"][0]
    return {
        "summary": {
            "distance": route.get("distance"),
            "duration": route.get("duration"),
            "mode": mode,
        },
        "directions": [
            {
                "instruction": step.get("maneuver", {}).get("instruction", ""),
                "distance": step.get("distance"),
                "duration": step.get("duration"),
                "name": step.get("name", ""),
            }
            for leg in route.get("legs", [])
            for step in leg.get("steps", [])
        ],
        "geometry": route.get("geometry"),
        "waypoints": answer.get("waypoints", []),
    }
