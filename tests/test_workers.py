"""Several applications with one store, as the workers behind one address, on both drivers.

A client of 2026-07-28 sends each request to any worker. A session of 2025-11-25 stays with its own.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.registry import AcceptedElicitation, Context, Server
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.core.runtime.sharing.workers import FaultySessionStore, summary
from tests.harness import either
from tests.harness.wire.asgi import Host, serve_app
from tests.harness.wire.router import D, E, initialize, meta, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core.runtime.sharing import RemoteChange
    from tests.harness.wire.asgi import Call, Session

pytestmark = pytest.mark.usefixtures("each_driver")

KEYS = {"2026": b"k" * 32}
URI = "x:1"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


class SharedStore(FaultySessionStore):
    """As one that other processes can reach."""

    needs_keys = True


def build(index: int, state_keys: dict[str, bytes] | None) -> Server:
    server = Server("shop", state_keys=state_keys)

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for a name."""
        answer = await context.elicit("Who?", FORM)
        assert isinstance(answer, AcceptedElicitation)
        return f"{answer.data} at {index}"

    @server.tool
    async def pay(context: Context) -> str:
        """Send the user to a page."""
        url = "https://example.com/pay"
        return (await context.elicit_url("Pay.", url, elicitation_id=f"p{index}")).action

    @server.resource(URI)
    def one() -> str:
        """Return one."""
        return "1"

    return server


@asynccontextmanager
async def workers(
    store: FaultySessionStore, number: int = 2, state_keys: dict[str, bytes] | None = None
) -> AsyncIterator[list[tuple[Server, Host]]]:
    """Serve so many applications with one store."""
    async with AsyncExitStack() as opened:
        found = []
        for index in range(number):
            server = build(index, state_keys)
            app = either.package().asgi(server, store=store)
            found.append((server, await opened.enter_async_context(serve_app(app))))
        yield found


def modern(host: Host, id: int, method: str, **params: Any) -> Call:
    """Send a request of 2026-07-28."""
    capabilities: dict[str, Any] = {
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}
    }
    headers = [(b"mcp-protocol-version", E.encode()), (b"mcp-method", method.encode())]
    if "name" in params:
        headers.append((b"mcp-name", params["name"].encode()))
    return host.post(request(id, method, {**params, "_meta": meta(**capabilities)}), *headers)


async def listen(host: Host) -> Call:
    """Begin a listen stream of 2026-07-28, and wait for its acknowledgement."""
    wanted = {
        "toolsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": [URI],
    }
    stream = modern(host, 1, "subscriptions/listen", notifications=wanted)
    await stream.wait_for_messages()
    return stream


async def session_stream(host: Host) -> tuple[Session, Call]:
    """Begin a session of 2025-11-25 that is subscribed to the URI, and its GET stream."""
    session = await host.session(elicitation={"url": {}})
    await session.post(request(1, "resources/subscribe", {"uri": URI})).end()
    stream = session.get()
    await stream.until(lambda: len(stream.sent) > 1)
    return session, stream


async def test_streams_of_both_eras_hear_of_changes_at_another_worker() -> None:
    """Each hears once, at the worker of the change and at the other, and nothing is echoed."""
    store = FaultySessionStore()
    async with workers(store) as [(a, host_a), (b, host_b)]:
        streams = [await listen(host) for host in (host_a, host_b)]
        sessions = [await session_stream(host) for host in (host_a, host_b)]

        @a.tool
        def late() -> str:
            """Come late."""
            return "late"

        await either.sleep(1)
        a.changed(resource=URI)
        await either.sleep(1)
        b.changed(resources=True)
        await either.sleep(1)
        wanted = ["tools/list_changed", f"resources/updated {URI}", "resources/list_changed"]
        for stream in streams:
            assert [summary(each) for each in stream.messages[1:]] == wanted
        for _, stream in sessions:
            assert [summary(each) for each in stream.messages] == wanted
        assert len(store.published) == 3


async def test_page_visited_at_one_worker_is_told_by_the_other() -> None:
    store = FaultySessionStore()
    async with workers(store) as [(a, host_a), (_, host_b)]:
        session, stream = await session_stream(host_b)
        _, other = await session_stream(host_a)
        call = session.calling(2, "pay")
        await call.wait_for_messages()
        a.elicitation_complete("p1")
        await either.sleep(1)
        told = [summary(each) for each in (*stream.messages, *call.messages[1:])]
        assert told == ["elicitation/complete p1"]
        assert other.messages == []


async def test_client_that_is_told_finds_what_the_hook_has_declared() -> None:
    """A slow hook delays the notification, and what it declares isn't published."""
    store = FaultySessionStore()
    async with workers(store) as [(a, _), (b, host_b)]:

        @b.on_remote_change
        async def declare(change: RemoteChange[None]) -> None:
            await either.sleep(0.1)
            change.server.add_tool(lambda: "late", name="late", description="Come late.")

        stream = await listen(host_b)
        a.add_tool(lambda: "late", name="late", description="Come late.")
        await stream.wait_for_messages(2)
        listed = (await modern(host_b, 2, "tools/list").end()).answer["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["ask", "pay", "late"]
        await either.sleep(1)
        assert len(store.published) == 1


@pytest.mark.parametrize("state_keys", [KEYS, None], ids=["keys", "no keys"])
async def test_question_is_retried_at_another_worker(state_keys: Any) -> None:
    """With one key for all, any worker accepts the state. With a key of each process none does."""
    async with workers(FaultySessionStore(), 3, state_keys) as [(_, a), (_, b), (_, c)]:
        asked = (await modern(a, 1, "tools/call", name="ask").end()).answer["result"]
        [key] = asked["inputRequests"]
        answer = {key: {"action": "accept", "content": {"name": "Ann"}}}
        retry = {"name": "ask", "requestState": asked["requestState"], "inputResponses": answer}
        for index, host in ((1, b), (2, c)):
            response = (await modern(host, 2, "tools/call", **retry).end()).answer
            if state_keys is None:
                assert response["error"]["code"] == -32602
            else:
                assert response["result"]["content"][0]["text"] == f"{{'name': 'Ann'}} at {index}"


async def test_sessions_stay_with_their_worker() -> None:
    """As long as sessions aren't shared: the other worker says 404, and a client begins anew."""
    async with workers(FaultySessionStore()) as [(_, host_a), (_, host_b)]:
        session = await host_a.session()
        session.host = host_b
        assert (await session.calling(1, "ask").end()).status == 404
        assert (await host_b.post(initialize(D)).end()).status == 200


async def test_application_without_keys_is_refused_at_once() -> None:
    """Before it is served, with how to make a key."""
    with pytest.raises(ValueError, match=r"needs state_keys=.*token_urlsafe"):
        either.package().asgi(Server("shop"), store=SharedStore())
    async with workers(SharedStore(), state_keys=KEYS):
        pass


async def test_application_that_is_served_again_joins_again() -> None:
    store = FaultySessionStore()
    app = either.package().asgi(build(0, None), store=store)
    for _ in range(2):
        async with serve_app(app):
            assert len(store._heartbeats) == 1
        assert store._heartbeats == {}
