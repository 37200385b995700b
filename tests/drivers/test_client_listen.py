"""`Client.listen` on trio, in both kinds of revisions, with a played server and with our own."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import CallTimeout, ConnectionLost, LocalProtocolError, PeerError
from mcp_core.registry import Server
from mcp_trio import Change, Changes
from tests.harness import either
from tests.harness.jsonrpc import VERSIONS, D, E
from tests.harness.wire.lines import ERAS, play_server

if TYPE_CHECKING:
    from mcp_trio import Client
    from tests.harness.wire.lines import Wire

    Message = dict[str, Any]

pytestmark = pytest.mark.usefixtures("each_driver")

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS, ONE = Change("tools"), Change(uri="x:1")
every_revision = pytest.mark.parametrize("version", VERSIONS)
both_eras = pytest.mark.parametrize("version", ERAS)


class ServerSubscription:
    """The server's side of one subscription."""

    def __init__(self, peer: Wire) -> None:
        self.peer = peer
        self.id: Any = None

    async def opens(self, **answer: Any) -> None:
        """Acknowledge it with `answer`, or with everything that was requested."""
        request = await self.peer.receive()
        if self.peer.version == E:
            assert request["method"] == "subscriptions/listen"
            self.id = request["id"]
            honoured = answer or request["params"]["notifications"]
            await self.notify("subscriptions/acknowledged", notifications=honoured)
        else:
            assert request["method"] == "resources/subscribe"
            await self.peer.answer(request)

    async def notify(self, what: str, **params: Any) -> None:
        meta = {} if self.id is None else {"_meta": {ID: self.id}}
        await self.peer.notify(f"notifications/{what}", params | meta)


class ListenTask:
    """A subscription in a task of its own, with the changes that it yielded."""

    def __init__(self, client: Client, nursery: either.Nursery, **wishes: Any) -> None:
        self.received: list[Change] = []
        self.error: BaseException | None = None
        self.changes: Changes | None = None
        self.begun, self.ended = either.Event(), either.Event()
        self.scope = either.CancelScope()
        nursery.start_soon(self._run, client, wishes)

    async def _run(self, client: Client, wishes: Any) -> None:
        try:
            with self.scope:
                async with client.listen(**wishes) as self.changes:
                    self.begun.set()
                    async for change in self.changes:
                        self.received.append(change)
        except Exception as exc:  # noqa: BLE001 - the test examines it
            self.error = exc
        self.ended.set()


async def listening(
    client: Client, peer: Wire, nursery: either.Nursery, **wishes: Any
) -> tuple[ListenTask, ServerSubscription]:
    listener = ListenTask(client, nursery, **(wishes or {"tools": True, "uris": ["x:1"]}))
    server = ServerSubscription(peer)
    await server.opens()
    await listener.begun.wait()
    return listener, server


@pytest.mark.requirement("SUB-1", "SUB-5", "SUB-6", "SUB-11")
@both_eras
async def test_subscription_yields_changes(version: str, nursery: either.Nursery) -> None:
    """Changes outside the subscription are dropped, as are those after its end."""
    async with play_server(version) as (client, peer):
        listener, server = await listening(client, peer, nursery)
        assert listener.changes is not None
        assert listener.changes.honoured == (TOOLS, ONE)
        await server.notify("tools/list_changed")
        await either.wait_all_tasks_blocked()
        await server.notify("prompts/list_changed")  # it is not in the subscription
        await server.notify("resources/updated", uri="x:1")
        await either.wait_all_tasks_blocked()
        assert listener.received == [TOOLS, ONE]
        listener.scope.cancel()
        await listener.ended.wait()
        if version == E:
            await peer.expect("notifications/cancelled", {"requestId": server.id})
        else:
            await peer.answer(await peer.expect("resources/unsubscribe", {"uri": "x:1"}))
        await server.notify("tools/list_changed")
        await peer.expect_silence()
        assert "0 calls" in repr(client)
        assert not listener.changes._waiting


@pytest.mark.requirement("SUB-6")
async def test_subscription_honoured_in_part(nursery: either.Nursery) -> None:
    async with play_server(E) as (client, peer):
        listener = ListenTask(client, nursery, tools=True, prompts=True, resources=["x:1"])
        await ServerSubscription(peer).opens(toolsListChanged=True)
        await listener.begun.wait()
        assert listener.changes is not None
        assert listener.changes.honoured == (TOOLS,)
        listener.scope.cancel()


@both_eras
async def test_subscription_merges_changes_for_a_slow_reader(
    version: str, nursery: either.Nursery
) -> None:
    """2,000 notifications are two changes: what is kept doesn't grow."""
    async with play_server(version) as (client, peer):
        server = ServerSubscription(peer)
        nursery.start_soon(server.opens)
        async with client.listen(tools=True, resources=["x:1"]) as changes:
            for _ in range(1000):
                await server.notify("tools/list_changed")
                await server.notify("resources/updated", uri="x:1")
            await either.wait_all_tasks_blocked()
            assert repr(changes).endswith("2 changed>>")
            assert [await anext(changes), await anext(changes)] == [TOOLS, ONE]
            with either.move_on_after(0) as impatience:
                await anext(changes)
            assert impatience.cancelled_caught
            await server.notify("tools/list_changed")
            assert await anext(changes) == TOOLS
        if version == D:
            await peer.answer(await peer.expect("resources/unsubscribe"))


@both_eras
async def test_subscription_next_is_a_checkpoint(version: str, nursery: either.Nursery) -> None:
    """trio's rule for async functions; a cancelled wait doesn't swallow the change."""
    async with play_server(version) as (client, peer):
        server = ServerSubscription(peer)
        nursery.start_soon(server.opens)
        with either.assert_checkpoints():
            block = client.listen(uris=["x:1"])
            changes = await block.__aenter__()
        await server.notify("resources/updated", uri="x:1")
        await either.wait_all_tasks_blocked()
        with either.CancelScope() as scope:
            scope.cancel()
            await anext(changes)
        assert scope.cancelled_caught
        with either.assert_checkpoints():
            assert await anext(changes) == ONE  # the change was not lost
        await block.__aexit__(None, None, None)
        await peer.receive()


@pytest.mark.requirement("SUB-7")
@both_eras
async def test_subscriptions_share_a_client(version: str, nursery: either.Nursery) -> None:
    async with play_server(version) as (client, peer), AsyncExitStack() as blocks:
        server = [ServerSubscription(peer), ServerSubscription(peer)]
        nursery.start_soon(server[0].opens)
        first = await blocks.enter_async_context(client.listen(uris=["x:1"]))
        nursery.start_soon(server[1].opens)
        second = await blocks.enter_async_context(client.listen(tools=True, uris=["x:2"]))
        await server[0].notify("resources/updated", uri="x:1")
        await server[1].notify("tools/list_changed")
        assert await anext(first) == ONE
        assert await anext(second) == TOOLS


# -- Ends ----------------------------------------------------------------------------------------


@pytest.mark.requirement("SUB-8")
async def test_subscription_ended_by_the_server_ends_the_loop(nursery: either.Nursery) -> None:
    async with play_server(E) as (client, peer):
        listener, server = await listening(client, peer, nursery)
        await server.notify("tools/list_changed")
        await peer.answer({"id": server.id}, {"_meta": {ID: server.id}})
        await listener.ended.wait()
        assert (listener.error, listener.received) == (None, [TOOLS])
        await peer.expect_silence()


@pytest.mark.requirement("DEC-1")
async def test_subscription_cancelled_or_rejected_by_the_server(nursery: either.Nursery) -> None:
    async with play_server(E) as (client, peer):
        listener, server = await listening(client, peer, nursery)
        await peer.notify("notifications/cancelled", {"requestId": server.id})
        await listener.ended.wait()
        assert listener.error is None
        other, server = await listening(client, peer, nursery)
        await peer.send_error({"id": server.id}, -32000, "too busy")
        await other.ended.wait()
        assert isinstance(other.error, PeerError)


@pytest.mark.requirement("SUB-13")
@both_eras
@pytest.mark.parametrize("how", ["closed", "lost"])
async def test_subscription_of_a_lost_connection_raises(
    version: str, how: str, nursery: either.Nursery
) -> None:
    """A change that had arrived is still yielded before the error."""
    async with play_server(version) as (client, peer):
        one, _ = await listening(client, peer, nursery, uris=["x:0"])
        other, server = await listening(client, peer, nursery, uris=["x:1"])
        await server.notify("resources/updated", uri="x:1")
        await either.wait_all_tasks_blocked()
        await (client.aclose() if how == "closed" else peer.aclose())
        for listener in one, other:
            await listener.ended.wait()
            assert isinstance(listener.error, ConnectionLost)
        assert (one.received, other.received) == ([], [ONE])
        with pytest.raises(ConnectionLost):
            async with client.listen(tools=True):
                pass


@both_eras
async def test_subscription_without_response_times_out(version: str) -> None:
    """The late response of a stateful server is followed by an unsubscription."""
    async with play_server(version) as (client, peer):
        start = either.current_time()
        for seconds in 60.0, 5.0:
            block = (
                client.listen(uris=["x:1"])
                if seconds == 60
                else client.listen(uris=["x:1"], timeout=5)
            )
            with pytest.raises(CallTimeout, match=f"no answer to listen within {seconds:g} s"):
                async with block:
                    pass
            request = await peer.receive()
            if version == E:
                await peer.expect("notifications/cancelled", {"requestId": request["id"]})
            else:
                await peer.answer(request)
                await peer.answer(await peer.expect("resources/unsubscribe"))
        assert either.current_time() == start + 65


@both_eras
async def test_subscription_block_has_no_timeout(version: str, nursery: either.Nursery) -> None:
    async with play_server(version) as (client, peer):
        listener, server = await listening(client, peer, nursery)
        await either.sleep(80_000)
        await server.notify("resources/updated", uri="x:1")
        await either.wait_all_tasks_blocked()
        assert listener.received == [ONE]
        listener.scope.cancel()


@both_eras
async def test_subscription_block_exception_is_not_wrapped(
    version: str, nursery: either.Nursery
) -> None:
    async with play_server(version) as (client, peer):
        nursery.start_soon(ServerSubscription(peer).opens)
        with pytest.raises(ZeroDivisionError):
            async with client.listen(uris=["x:1"]):
                raise ZeroDivisionError
        await peer.receive()


@every_revision
async def test_subscription_to_a_server_without_changes_raises(version: str) -> None:
    async with either.connect(Server("plain", versions=[version])) as client:
        with pytest.raises(LocalProtocolError, match="announces no changes"):
            async with client.listen(uris=["x:1"]):
                pass
        await client.ping()


# -- Our server and client -----------------------------------------------------------------------


@every_revision
async def test_subscription_of_our_server_gets_changes(version: str) -> None:
    """Two subscriptions overlap, and each gets its own part of one change."""
    server = Server("changing")

    @server.tool
    def touch() -> None:
        """Change something."""
        server.changed(tools=True, resource=["x:1", "x:2"])

    @server.resource("x:{n}")
    def read(n: str) -> str:
        return n

    async with either.connect(server, versions=[version]) as client:
        async with (
            client.listen(tools=True, uris=["x:1"]) as changes,
            client.listen(uris=["x:2"]) as others,
        ):
            assert changes.honoured == (TOOLS, ONE)
            for _ in range(3):
                await client.call_tool("touch")
                assert {await anext(changes), await anext(changes)} == {TOOLS, ONE}
                assert await anext(others) == Change(uri="x:2")
        await client.call_tool("touch")
        await client.ping()
        assert "0 calls" in repr(client)


@pytest.mark.requirement("SUB-8")
@either.trio_only
async def test_subscription_ends_when_our_server_stops(nursery: either.Nursery) -> None:
    server, stop = Server("stopping"), either.Event()
    server.add_tool(lambda: None, name="t", description="Do nothing.")
    ours, theirs = either.memory_pair()
    nursery.start_soon(partial(either.serve_stream, server, theirs, stop=stop))
    async with (
        either.connect_stream(ours, versions=[E]) as client,
        client.listen(tools=True) as changes,
    ):
        stop.set()
        assert [change async for change in changes] == []


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("list_changed", [True, False])
@pytest.mark.parametrize("subscriptions", [True, False])
async def test_server_declares_and_sends_only_the_changes_that_it_has(
    list_changed: bool, subscriptions: bool, version: str
) -> None:
    """A client cannot listen to others, and finds the methods for them unknown."""
    server = Server("still", list_changed=list_changed, subscriptions=subscriptions)
    server.add_resource("note://a", lambda: "a", name="a", description="A note.")
    server.add_tool(lambda: "t", name="t", description="A tool.")
    server.add_prompt(lambda: "p", name="p", description="A prompt.")
    sent: list[Any] = []

    def note(direction: str, data: bytes) -> None:
        sent.append(json.loads(data))

    async with either.connect(server, versions=[version], trace=note) as client:
        declared = client.peer.capabilities
        assert [bool(each.list_changed) for each in (declared.tools, declared.prompts)] == [
            list_changed,
            list_changed,
        ]
        assert bool(declared.resources.list_changed) is list_changed
        assert bool(declared.resources.subscribe) is subscriptions
        for wanted, is_declared in (
            ({"tools": True}, list_changed),
            ({"uris": ["note://a"]}, subscriptions),
        ):
            if is_declared:
                async with client.listen(**wanted):
                    pass
            else:
                with pytest.raises(LocalProtocolError):
                    async with client.listen(**wanted):
                        raise AssertionError("listens")
        server.changed(tools=True, resource="note://a")
        await client.list_tools()
    methods = [message.get("method") for message in sent]
    if not list_changed:
        assert "notifications/tools/list_changed" not in methods
    if not subscriptions:
        assert "notifications/resources/updated" not in methods
