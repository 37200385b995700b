"""The ported osm-mcp-server, which awaits aiohttp, on asyncio: in memory, and by the command."""

from __future__ import annotations

import asyncio
import json
import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

import pytest

import mcp_asyncio_shim
import mcp_trio
from tests.harness.world.command import run, served
from tests.harness.world.threaded_http import threaded_http_server
from tests.ported import map_server
from tests.ported.test_interfaces import interface_of

if TYPE_CHECKING:
    from collections.abc import Iterator


PLACES: list[dict[str, Any]] = [
    {"id": 1, "lat": 2.5, "lon": 1.0, "tags": {"amenity": "cafe", "name": "Assam"}},
    {"id": 2, "lat": 2.5, "lon": 1.1, "tags": {"amenity": "cafe"}},
    {"id": 3, "lat": 2.5, "lon": 1.2, "tags": {"shop": "tea", "name": "Sencha"}},
]
STEP = {"maneuver": {"instruction": "Left"}, "distance": 3, "duration": 2, "name": "Tea Lane"}
ROUTE = {"distance": 9, "duration": 8, "legs": [{"steps": [STEP]}], "geometry": {"type": "Line"}}


class Services(BaseHTTPRequestHandler):
    """The three services of the server, as far as the tests ask them."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/search":
            found = [{"lat": "-12.0", "lon": "-77.5"}, {"name": query["q"]}]
            self._answer(200 if query["q"] != "nowhere" else 404, found)
        elif url.path == "/reverse":
            self._answer(200, {"display_name": f"{query['lat']}, {query['lon']}"})
        else:
            routes = [] if url.path.endswith("/0.0,0.0;0.0,0.0") else [ROUTE]
            points = [url.path, query["steps"]]
            self._answer(200, {"routes": routes, "waypoints": points})

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["content-length"])).decode()
        wanted = re.findall(r'node\["(\w+)"\]', unquote_plus(sent))
        self._answer(200, {"elements": [each for each in PLACES if {*wanted} & {*each["tags"]}]})

    def _answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def services() -> Iterator[str]:
    with threaded_http_server(Services) as base:
        yield base


INTERFACE = {
    "geocode_address": "address:string",
    "reverse_geocode": "latitude:number longitude:number",
    "find_nearby_places": (
        "latitude:number longitude:number categories:array|null=null limit:integer=20 "
        "radius:number=1000"
    ),
    "get_route_directions": (
        "from_latitude:number from_longitude:number to_latitude:number to_longitude:number "
        'annotations:boolean=false mode:string="car" overview:string="simplified" '
        "steps:boolean=false"
    ),
}
AT = {"latitude": 2.5, "longitude": 1.0}
WAY = {"from_latitude": 1, "from_longitude": 2, "to_latitude": 3, "to_longitude": 4}
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("geocode_address", {"address": "Lima"}, '"latitude":-12.0'),
    ("geocode_address", {"address": "nowhere"}, "^/search has the status 404$"),
    ("reverse_geocode", AT, '"display_name":"2.5, 1.0"'),
    ("find_nearby_places", AT, '"total_count":3'),
    ("find_nearby_places", {**AT, "categories": ["shop"]}, '"tea":.*Sencha.*"total_count":1'),
    ("find_nearby_places", {**AT, "limit": 2}, '"Unnamed".*"total_count":2'),
    ("get_route_directions", {**WAY, "mode": "bike"}, r"Left.*/route/v1/bike/2\.0,1\.0;4\.0,3\.0"),
    ("get_route_directions", {**WAY, "mode": "boat", "steps": True}, r'/car/.*"true"'),
    ("get_route_directions", dict.fromkeys(WAY, 0), "^there is no way$"),
    ("reverse_geocode", {"latitude": "2.5", "longitude": 1}, "`latitude`: expected `float`"),
]


@pytest.fixture
def at_services(services: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "NOMINATIM", "ROUTER", "OVERPASS":
        monkeypatch.setattr(map_server, name, services)


@pytest.mark.usefixtures("at_services")
def test_tools_of_the_map_server() -> None:
    """They have the interface of the published ones, and one session for all calls."""

    async def main() -> None:
        async with mcp_asyncio_shim.connect(map_server.server) as client:
            assert interface_of(await client.list_tools()) == INTERFACE
            for tool, arguments, expected in CALLS:
                result = await client.call_tool(tool, arguments)
                assert re.search(expected, result.text, re.DOTALL), (arguments, result.text)

    asyncio.run(main())


async def test_map_server_on_trio_fails_with_the_cure() -> None:
    """The session is opened by the lifespan, which has no event loop of asyncio there."""
    with pytest.raises(RuntimeError, match="no running event loop") as caught:
        async with mcp_trio.connect(map_server.server):
            pass
    assert "mcp-trio run --asyncio FILE" in caught.value.__notes__[0]


MODULE = ("--asyncio", "-m", "tests.ported.map_server")


@pytest.mark.process
def test_command_serves_the_map_server_on_asyncio(services: str) -> None:
    """By its module, over stdio."""
    env = ("--env", f"MAP_SERVICES={services}")
    result = run("call", "geocode_address", "address=Lima", "--json", *env, *MODULE)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)["structuredContent"]
    assert found[0]["coordinates"] == {"latitude": -12.0, "longitude": -77.5}


@pytest.mark.process
async def test_command_serves_the_map_server_over_http(
    services: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAP_SERVICES", services)
    with served(Path(map_server.__file__), "--asyncio") as site:
        async with mcp_trio.connect(site.url) as client:
            result = await client.call_tool("reverse_geocode", AT)
    assert result.structured_content == {"display_name": "2.5, 1.0"}
    assert any(" POST /mcp 200 " in line for line in site.log)
