"""URIs in another spelling than the declared one, as clients send them that parse each URI.

The official Python SDK until 1.x sends `note://caf%C3%A9` for the listed `note://café`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from mcp_asyncio_shim import Host as AsyncioHost
from mcp_core.host import UnknownName
from mcp_core.registry import Server
from mcp_trio.host import Host as TrioHost
from tests.harness import either
from tests.harness.jsonrpc import VERSIONS, D, E
from tests.harness.wire.client import CallTask, connected
from tests.harness.wire.lines import served

pytestmark = pytest.mark.usefixtures("each_driver")

LISTED = "note://café"
SENT = "note://caf%C3%A9"


def cafe() -> Server:
    server = Server("café")
    server.add_resource(LISTED, lambda: "Open until six.", name="coffee")
    server.add_resource("note://a%2Fb", lambda: "one", name="one")
    server.add_resource("x:/~", lambda: "tilde", name="tilde")
    server.add_resource("x:/%7E", lambda: "encoded tilde", name="encoded tilde")

    @server.resource("note://café/{day}/list")
    def notes(day: str) -> str:
        """The notes of a day."""
        return f"Notes of {day}."

    @server.completion("note://café/{day}/list", "day")
    def days(value: str) -> list[str]:
        return ["monday"]

    return server


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("uri", "text"),
    [
        (SENT, "Open until six."),
        ("NOTE://caf%c3%a9", "Open until six."),
        (f"{SENT}/na%C3%AFve/list", "Notes of naïve."),
        # The exact spelling comes first, and two declared URIs of one normal form stay two.
        ("x:/~", "tilde"),
        ("x:/%7E", "encoded tilde"),
        ("x:/%7e", None),
        ("note://a/b", None),  # an encoded slash is no slash
        (f"{SENT}/../list", None),
        (f"{SENT}/%2E%2e/list", None),
        ("note://caf%C3%89", None),
    ],
)
async def test_server_reads_the_resource_that_a_uri_means(
    version: str, uri: str, text: str | None
) -> None:
    async with served(cafe(), version) as wire:
        answer = await wire.ask(1, "resources/read", {"uri": uri})
        if text is None:
            assert answer["error"]["data"] == {"uri": uri}
        else:
            [contents] = answer["result"]["contents"]
            assert contents["text"] == text


@pytest.mark.parametrize("version", VERSIONS)
async def test_server_completes_for_a_template_in_another_spelling(version: str) -> None:
    async with served(cafe(), version) as wire:
        params: dict[str, Any] = {
            "ref": {"type": "ref/resource", "uri": f"{SENT}/{{day}}/list"},
            "argument": {"name": "day", "value": "m"},
        }
        answer = await wire.ask(1, "completion/complete", params)
        assert answer["result"]["completion"]["values"] == ["monday"]


async def test_subscriber_is_notified_in_the_spelling_that_it_sent() -> None:
    """The client compares the URI with the one that it has subscribed to."""
    server = cafe()
    async with served(server, D) as wire:
        assert "result" in await wire.ask(1, "resources/subscribe", {"uri": SENT})
        server.changed(resource=LISTED)
        updated = await wire.receive()
        assert updated["method"] == "notifications/resources/updated"
        assert updated["params"] == {"uri": SENT}
        assert "result" in await wire.ask(2, "resources/unsubscribe", {"uri": SENT})
        server.changed(resource=LISTED)
        assert await wire.is_silent()


@pytest.mark.parametrize("version", [D, E])
async def test_client_sends_a_uri_as_it_was_given(version: str) -> None:
    """We write it as the program does: the server may know only that spelling."""
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        for uri in LISTED, SENT:
            call_task = CallTask(nursery, partial(client.read_resource, uri))
            request = await wire.receive()
            assert request["params"]["uri"] == uri
            more = {"ttlMs": 0, "cacheScope": "private"} if version == E else {}
            await wire.answer(request, {"contents": [{"uri": SENT, "text": "x"}], **more})
            await call_task.ended.wait()
            assert call_task.result.contents[0].uri == SENT


async def test_host_reads_a_resource_of_its_servers_by_another_spelling() -> None:
    """A model that was shown the listed URI may send back a parsed one."""
    host_type: Any = TrioHost if either.on_trio() else AsyncioHost
    async with host_type({"cafe": cafe()}) as host:
        for uri in LISTED, SENT, f"@cafe:{LISTED}", f"@cafe:{SENT}":
            assert (await host.read(uri)).contents[0].text == "Open until six."
        with pytest.raises(UnknownName):
            await host.read("note://caf%C3%89")
