"""`WorkerBus`: clients of each worker hear of changes at all of them, on both drivers."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.registry import DeclarationError, Server, Tasks
from mcp_core.runtime.sharing import MemoryStore, WorkerBus, check_sharing
from mcp_core.runtime.sharing._bus import _HookJob
from mcp_core.sharing import (
    ChangesPublished,
    InvalidWorkerMessage,
    Position,
    SessionStoreError,
    WorkerBatch,
    _messages,
)
from mcp_core.sharing._messages import MAX_URIS
from tests.core.runtime.sharing.workers import (
    REFUSED,
    URI,
    FaultySessionStore,
    StoreOfOneWorker,
    Worker,
    open_workers,
    serve_worker,
)
from tests.harness import either
from tests.harness.jsonrpc import D, E
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core.runtime.sharing import RemoteChange

pytestmark = pytest.mark.usefixtures("each_driver")

TOOLS, UPDATED = "tools/list_changed", f"resources/updated {URI}"
ALL = ("tools/list_changed", "prompts/list_changed", "resources/list_changed", UPDATED)
both_eras = pytest.mark.parametrize("version", [D, E])


@both_eras
async def test_clients_of_every_worker_hear_of_a_change_once(version: str) -> None:
    """Each kind of change at one worker, one publish each, and no echo."""
    store = FaultySessionStore()
    async with open_workers([version] * 3, store) as workers:
        first = workers[0].server
        for change, heard in (
            ({"tools": True}, TOOLS),
            ({"prompts": True}, "prompts/list_changed"),
            ({"resources": True}, "resources/list_changed"),
            ({"resource": URI}, UPDATED),
        ):
            first.changed(**change)
            for worker in workers:
                await worker.hears(heard)
        first.remove_tool("buy")
        for worker in workers:
            await worker.hears(TOOLS)
        first.changed(resource="x:unknown")
        for worker in workers:
            await worker.is_silent()
    assert len(store.published) == 6


@both_eras
async def test_text_that_cannot_be_encoded_silences_no_worker(version: str) -> None:
    """Names of files and ids may have surrogates. No client can name them."""
    store = FaultySessionStore()
    async with open_workers([version] * 2, store) as (a, b):
        a.server.changed(resource=[URI, "file:///\udcff"])
        a.server.elicitation_complete("\ud800")
        await a.hears(UPDATED)
        await b.hears(UPDATED)
    assert store.published == [ChangesPublished("shop", uris=(URI,))]


@pytest.mark.parametrize("refuses_all", [False, True])
async def test_message_that_the_store_cannot_encode_is_not_an_outage(
    refuses_all: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything counts as changed, in place of it, and later changes are published."""

    class Strict(FaultySessionStore):
        async def publish(self, worker: int, message: ChangesPublished, /) -> Any:
            if URI in message.uris or (message.all_uris and refuses_all):
                raise InvalidWorkerMessage("it is too long")
            return await super().publish(worker, message)

    async with open_workers([E] * 2, Strict()) as (a, b):
        a.server.changed(resource=URI)
        await a.hears(UPDATED)
        await b.hears(*(() if refuses_all else ALL))
        a.server.changed(tools=True)
        await b.hears(TOOLS)
    assert caplog.text.count("it is too long") == 1
    caplog.clear()


@pytest.mark.parametrize("most", [50, long(MAX_URIS)])
async def test_last_completed_elicitations_are_published(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest ones, if there are more than a message may have."""
    monkeypatch.setattr(_messages, "MAX_URIS", most)
    store = FaultySessionStore()
    async with open_workers([E], store) as (a,):
        for number in range(most + 1):
            a.server.elicitation_complete(f"e{number}")
        await a.is_silent()
    (message,) = store.published
    assert message.elicitations == tuple(f"e{number}" for number in range(1, most + 1))


@both_eras
async def test_change_from_a_thread_is_heard_everywhere(version: str) -> None:
    async with open_workers([version] * 2, FaultySessionStore()) as (a, b):
        await either.in_thread(lambda: a.server.changed(tools=True))
        await a.hears(TOOLS)
        await b.hears(TOOLS)


async def test_flood_of_changes_from_threads_loses_none() -> None:
    """Four threads that change as fast as they can: each URI is published."""
    store = FaultySessionStore()
    async with open_workers([E] * 2, store) as (a, b):

        def change(thread: int) -> None:
            for number in range(100):
                a.server.changed(resource=f"x:{thread}:{number}")

        threads = [threading.Thread(target=change, args=(each,)) for each in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await either.in_thread(thread.join)
        await b.is_silent()
        uris = {uri for message in store.published for uri in message.uris}
        assert len(uris) == 400


@both_eras
async def test_flood_merges_into_few_publishes(version: str) -> None:
    """While one publish is under way, a thousand changes become one more."""
    store = FaultySessionStore()
    async with open_workers([version] * 2, store) as (a, b):
        store.faults["publish"] = 0.5
        a.server.changed(tools=True)
        await either.sleep(0.1)
        for number in range(1000):
            a.server.changed(resource=f"x:{number % 10}")
            a.server.changed(prompts=True)
            if not number % 100:
                await either.checkpoint()
        await either.sleep(2)
        await b.hears(TOOLS, "prompts/list_changed", UPDATED)
        assert store.calls.count("publish") == len(store.published) == 2


async def test_completed_elicitation_is_notified_by_the_worker_that_asked() -> None:
    """The page is at worker A, and the user's client at B. Other clients hear nothing."""
    async with open_workers([D] * 3, FaultySessionStore()) as (a, b, c):
        await b.peer.send(b.peer.calling(1, "pay"))
        assert (await b.peer.receive())["method"] == "elicitation/create"
        a.server.elicitation_complete("p1")
        await b.hears("elicitation/complete p1")
        a.server.elicitation_complete("p1")
        for worker in (a, b, c):
            await worker.is_silent()


@both_eras
async def test_declarations_in_a_lifespan_publish_nothing(version: str) -> None:
    """Each worker declares the same at its start, and no client has heard of less."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        @server.tool
        def late() -> str:
            """Say late."""
            return "late"

        server.changed(resource=URI)
        yield

    def prepare(worker: Worker) -> None:
        worker.server._lifespan = lifespan

    store = FaultySessionStore()
    async with open_workers([version] * 2, store, prepare) as (a, b):
        await a.is_silent()
        await b.is_silent()
    assert store.published == []


async def test_change_while_a_worker_joins_is_published() -> None:
    """A task of its lifespan changes something, and the store is slow."""
    store = FaultySessionStore()
    async with open_workers([E], store) as (b,), either.open_quiet_nursery() as nursery:
        server = Server("shop")

        async def change() -> None:
            await either.sleep(1)
            server.changed(tools=True)

        nursery.start_soon(change)
        store.faults["join"] = 2.0
        async with either.open_server(server, store):
            await b.hears(TOOLS)


async def test_servers_of_other_names_hear_nothing() -> None:
    store = FaultySessionStore()
    async with (
        open_workers([E] * 2, store) as (a, b),
        either.open_server(Server("other"), store) as other,
    ):
        other.server.changed(tools=True)
        await a.is_silent()
        a.server.changed(prompts=True)
        await b.hears("prompts/list_changed")
    assert [message.server for message in store.published] == ["other", "shop"]


async def test_server_that_is_served_twice_publishes_and_delivers_once() -> None:
    """One `Server` at two addresses of a process has two buses: only the first one shares."""
    store = FaultySessionStore()
    async with open_workers([E] * 2, store) as (a, b):
        async with either.open_server(a.server, store):
            a.server.changed(tools=True)
            await a.hears(TOOLS)
            await b.hears(TOOLS)
            b.server.changed(tools=True)
            await a.hears(TOOLS)
            await b.hears(TOOLS)
        a.server.changed(prompts=True)
        await b.hears("prompts/list_changed")
    assert len(store.published) == 3


async def test_second_bus_takes_over_when_the_first_has_ended() -> None:
    """One address of the process is closed, and the other is served on."""
    store = FaultySessionStore()
    async with open_workers([E], store) as (b,), either.open_quiet_nursery() as nursery:
        server = Server("shop")
        opened, end, ended = either.Event(), either.Event(), either.Event()

        async def serve_first() -> None:
            async with either.open_server(server, store):
                opened.set()
                await end.wait()
            ended.set()

        nursery.start_soon(serve_first)
        await opened.wait()
        async with either.open_server(server, store):
            end.set()
            await ended.wait()
            server.changed(tools=True)
            await b.hears(TOOLS)
    assert len(store.published) == 1


@both_eras
async def test_second_bus_counts_everything_as_changed_when_it_takes_over(version: str) -> None:
    """The first one ends while a hook runs, so it hasn't told clients of what it has heard."""
    store = FaultySessionStore()
    is_slow = False

    def prepare(worker: Worker) -> None:
        @worker.server.on_remote_change
        async def slow(change: RemoteChange[Any]) -> None:
            if is_slow and worker.index == 1:
                await either.sleep(5)

    async with open_workers([version] * 2, store, prepare) as (a, b):
        opened, end = either.Event(), either.Event()
        server = b.server
        c = Worker(2, version)
        c.server = server

        async def serve_first() -> None:
            async with either.open_server(c.server, store):
                opened.set()
                await end.wait()

        server.detach_bus(next(iter(server._notified.buses)))  # the other one is the first
        async with either.open_quiet_nursery() as nursery:
            nursery.start_soon(serve_first)
            await opened.wait()
            async with serve_worker(c, store):
                is_slow = True
                a.server.changed(tools=True)
                await a.hears(TOOLS)
                await either.sleep(1)
                await c.is_silent()
                end.set()
                is_slow = False
                await either.sleep(5)
                await c.hears(*ALL)


async def test_second_bus_shares_while_the_first_cannot_join() -> None:
    """The store hangs for the first address alone."""
    store = FaultySessionStore()
    async with open_workers([E], store) as (b,), either.open_quiet_nursery() as nursery:
        store.faults["join"] = store.hang
        c = Worker(1, E)

        async def serve_first() -> None:
            async with either.open_server(c.server, store):
                await either.sleep_forever()

        nursery.start_soon(serve_first)
        await either.sleep(1)
        store.faults.clear()
        async with serve_worker(c, store):
            await either.sleep(1)
            await c.drain()  # everything counts as changed when another bus becomes the first
            for _ in range(2):  # before and after the first one has joined
                await c.is_silent()
                b.server.changed(tools=True)
                await b.hears(TOOLS)
                await c.hears(TOOLS)
                await either.sleep(10)
        nursery.cancel_scope.cancel()


async def test_second_store_of_a_served_server_is_refused() -> None:
    """Only one bus shares changes, so the workers of the other store would hear of nothing."""
    async with open_workers([E], FaultySessionStore()) as (a,):
        with pytest.raises(ValueError, match="served with another store already"):
            async with either.open_server(a.server, FaultySessionStore()):
                raise AssertionError
        a.server.changed(tools=True)
        await a.hears(TOOLS)


async def test_clients_at_an_address_without_store_hear_of_what_a_hook_declares_at_the_start() -> (
    None
):
    a = Worker(0, E)

    @a.server.on_remote_change
    def declare(change: RemoteChange[Any]) -> None:
        a.server.add_tool(lambda: "done", name="late", description="A plugin.")

    async with serve_worker(a, None), either.open_server(a.server, FaultySessionStore()):
        await a.hears(TOOLS)


# -- Hooks -----------------------------------------------------------------------------------------


@both_eras
@pytest.mark.parametrize("is_async", [True, False])
async def test_hook_declares_anew_before_its_clients_are_told(version: str, is_async: bool) -> None:
    """When a client hears of the change, `tools/list` has it; and nothing is published again."""
    plugins = ["buy"]

    def declare(server: Server) -> None:
        for name in plugins:
            if server.find_tool(name) is None:
                server.add_tool(lambda: "done", name=name, description="A plugin.")

    def prepare(worker: Worker) -> None:
        def hook(change: RemoteChange[Any]) -> None:
            worker.hooked.append(change)
            declare(change.server)

        async def slow_hook(change: RemoteChange[Any]) -> None:
            worker.server.changed(tools=True)
            await either.sleep(0.5)
            hook(change)

        worker.server.on_remote_change(slow_hook if is_async else hook)

    store = FaultySessionStore()
    async with open_workers([version] * 3, store, prepare) as workers:
        a, *others = workers
        assert [len(worker.hooked) for worker in workers] == [1, 1, 1]  # before they serve
        plugins.append("sell")
        declare(a.server)
        await a.hears(TOOLS)
        for worker in others:
            assert (await worker.peer.receive())["method"] == f"notifications/{TOOLS}"
            assert await worker.tools() == ["buy", "pay", "sell"]
            await either.sleep(1)
            await worker.is_silent()
        assert [len(worker.hooked) for worker in workers] == [1, 2, 2]
        change = others[0].hooked[-1]
        assert (change.tools, change.prompts, change.resources) == (True, False, False)
        assert (change.uris, change.all_uris) == ((), False)
        assert change.server is others[0].server
    assert len(store.published) == 1


async def test_hook_gets_uris_and_the_lifespan() -> None:
    """With these it can read from its database what has changed."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        yield "database"

    def prepare(worker: Worker) -> None:
        worker.server._lifespan = lifespan
        worker.on_remote_change()

    async with open_workers([E] * 2, FaultySessionStore(), prepare) as (a, b):
        a.server.changed(resource=["x:1", "x:2"], prompts=True)
        await b.hears(UPDATED, "prompts/list_changed")
        change = b.hooked[-1]
        assert sorted(change.uris) == ["x:1", "x:2"]
        assert (change.tools, change.prompts) == (False, True)
        assert change.lifespan == "database"
        assert "prompts, 2 URIs" in repr(change)


async def test_hook_of_mounted_server_gets_its_own_server_and_lifespan() -> None:
    """A change of the mounted server is shared, and the hook of each worker can declare it anew."""
    hooked: list[Any] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        yield "database"

    def prepare(worker: Worker) -> None:
        inner = Server("inner", lifespan=lifespan)
        worker.server.mount(inner, "in")

        @inner.on_remote_change
        def note(change: Any) -> None:
            hooked.append(change)
            if change.uris:
                change.server.add_tool(lambda: "x", name="more", description="Do.")

    async with open_workers([E] * 2, FaultySessionStore(), prepare) as (a, b):
        (inner,) = a.server.mounted_servers()
        inner.changed(resource="x:1")
        await a.hears(UPDATED)
        await b.hears(UPDATED, TOOLS)
        assert (hooked[-1].server, hooked[-1].lifespan) == (*b.server.mounted_servers(), "database")
        assert "in_more" in await b.tools()


@pytest.mark.parametrize("fault", ["raises", "hangs", "resists"])
async def test_clients_are_notified_although_a_hook_fails(
    fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A hook that raises or takes more than 10 s is logged, and the next hook runs.

    A hook may also not end when it is cancelled: it waits for a thread.
    """
    failing = False
    go = either.Event()
    ended: list[float] = []

    def prepare(worker: Worker) -> None:
        @worker.server.on_remote_change
        async def broken(change: RemoteChange[Any]) -> None:
            if failing:
                if fault == "raises":
                    raise LookupError("no such plugin")
                if fault == "hangs":
                    try:
                        await either.sleep_forever()
                    finally:
                        ended.append(either.current_time())
                await either.shielded(go.wait())
                worker.server.changed(resources=True)

        worker.on_remote_change()

    async with open_workers([E] * 2, FaultySessionStore(), prepare) as (a, b):
        failing = True
        start = either.current_time()
        a.server.changed(tools=True)
        await b.hears(TOOLS)
        assert either.current_time() - start < 11
        assert len(ended) == (fault == "hangs")
        assert len(b.hooked) == 2
        assert "a hook on remote changes" in caplog.text
        assert len(caplog.records) == 1
        a.server.changed(prompts=True)
        await b.hears("prompts/list_changed")
        go.set()
        if fault == "resists":  # what it has changed in the end is told, and not published
            await b.hears("resources/list_changed")
        await a.hears(TOOLS, "prompts/list_changed")
    caplog.clear()


async def test_hook_that_does_not_end_runs_once_more_when_it_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It isn't started beside itself, clients don't wait for it, and a minute has few lines."""
    go = either.Event()
    running = False
    most: list[int] = []
    under_way: set[int] = set()

    def prepare(worker: Worker) -> None:
        @worker.server.on_remote_change
        async def stuck(change: RemoteChange[Any]) -> None:
            worker.hooked.append(change)
            if running and worker.index:
                under_way.add(len(worker.hooked))
                most.append(len(under_way))
                await either.shielded(go.wait())
                under_way.clear()

    async with open_workers([E] * 2, FaultySessionStore(), prepare) as (a, b):
        running = True
        for number in range(5):
            a.server.changed(resource=[URI, f"y:{number}"])
            await either.sleep(11)
            await b.hears(UPDATED)
        assert most == [1]
        assert len(caplog.records) == 2
        go.set()
        await either.sleep(1)
        assert [sorted(change.uris) for change in b.hooked[1:]] == [
            [URI, "y:0"],
            [URI, "y:1", "y:2", "y:3", "y:4"],
        ]
        await b.is_silent()
    caplog.clear()


async def test_late_declaration_of_a_stopped_hook_is_not_published(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its thread goes on. If each worker published that, they would never come to an end."""
    store = FaultySessionStore()
    running = False
    async with either.open_quiet_nursery() as nursery:

        def prepare(worker: Worker) -> None:
            async def late() -> None:  # as a thread that the hook has left behind
                await either.sleep(11)
                worker.server.changed(prompts=True)

            @worker.server.on_remote_change
            async def hook(change: RemoteChange[Any]) -> None:
                if running and change.tools:
                    nursery.start_soon(late)
                    await either.sleep_forever()

        async with open_workers([E] * 2, store, prepare) as (a, b):
            running = True
            a.server.changed(tools=True)
            await a.hears(TOOLS)
            await either.sleep(12)
            await b.hears(TOOLS, "prompts/list_changed")
            await either.sleep(30)
            await a.is_silent()
    assert len(store.published) == 1
    caplog.clear()


async def test_interrupt_in_a_hook_is_not_kept_for_the_log() -> None:
    """It is meant for the program."""
    async with either.open_task_runtime() as runtime:
        job = _HookJob(print, runtime, Server("s"), print)
        with pytest.raises(KeyboardInterrupt):
            job.failed(KeyboardInterrupt())


async def test_changes_during_a_slow_hook_lead_to_one_more_run() -> None:
    """Completed elicitations don't wait for it."""
    running = False

    def prepare(worker: Worker) -> None:
        @worker.server.on_remote_change
        async def slow(change: RemoteChange[Any]) -> None:
            worker.hooked.append(change)
            if running:
                await either.sleep(5)

    async with open_workers([D] * 2, FaultySessionStore(), prepare) as (a, b):
        await b.peer.send(b.peer.calling(1, "pay"))
        await b.peer.receive()
        running = True
        a.server.changed(tools=True)
        await either.sleep(1)
        for _ in range(10):
            a.server.changed(resource=URI)
            await either.sleep(0.1)
        await b.is_silent()
        await either.sleep(4)
        await b.hears(TOOLS)
        a.server.elicitation_complete("p1")
        await either.sleep(10)
        await b.hears("elicitation/complete p1", UPDATED)
        assert len(b.hooked) == 3


async def test_hook_that_changes_another_server_is_published() -> None:
    """A plugin that is gone changes the lists of two servers of the process."""
    store = FaultySessionStore()
    other = Server("other")

    def prepare(worker: Worker) -> None:
        if worker.index:
            worker.server.on_remote_change(lambda change: other.changed(tools=change.tools))

    async with either.open_server(other, store), open_workers([E] * 2, store, prepare) as (a, b):
        a.server.changed(tools=True)
        await b.hears(TOOLS)
        names = [message.server for message in store.published]
        assert names == ["other", "shop", "other"]  # at the start, too


async def test_change_by_a_task_of_a_hook_is_published_later() -> None:
    """A hook that starts a task hands its context on. Only the hook itself publishes nothing."""
    store = FaultySessionStore()
    async with either.open_quiet_nursery() as nursery:

        def prepare(worker: Worker) -> None:
            async def later() -> None:
                await either.sleep(1)
                worker.server.changed(prompts=True)

            @worker.server.on_remote_change
            def hook(change: RemoteChange[Any]) -> None:
                worker.server.changed(resources=True)
                if change.tools and not change.prompts:
                    nursery.start_soon(later)

        async with open_workers([E] * 2, store, prepare) as (a, b):
            a.server.changed(tools=True)
            await b.hears(TOOLS, "resources/list_changed")
            await either.sleep(2)
            await a.hears(TOOLS, "prompts/list_changed", "resources/list_changed")
    assert [message.lists for message in store.published] == [("tools",), ("prompts",)]


def test_hook_without_a_parameter_is_refused() -> None:
    with pytest.raises(DeclarationError, match="one parameter, its RemoteChange"):
        Server("s").on_remote_change(lambda: None)  # type: ignore[type-var]


# -- Faults of the store ---------------------------------------------------------------------------


@both_eras
@pytest.mark.parametrize("fault", [REFUSED, FaultySessionStore.hang, OSError("broken")], ids=repr)
async def test_outage_keeps_local_clients_and_loses_no_change(
    version: str, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Changes of both workers during an outage are heard when the store is back, once each."""
    store = FaultySessionStore()
    async with open_workers([version] * 2, store) as (a, b):
        store.faults[""] = fault
        await either.sleep(10)  # reads that had begun end
        a.server.changed(tools=True)
        b.server.changed(resource=URI)
        a.server.changed(prompts=True)
        await a.hears(TOOLS, "prompts/list_changed")
        await b.hears(UPDATED)
        await either.sleep(100)
        calls = len(store.calls)
        await either.sleep(100)
        assert len(store.calls) - calls <= 2 * 101  # one try a second and worker
        store.faults.clear()
        await either.sleep(16)
        await b.hears(TOOLS, "prompts/list_changed")
        await a.hears(UPDATED)
        assert len(store.published) == 2
    texts = [record.getMessage() for record in caplog.records]
    ends = [text.removeprefix("the store of sessions ") for text in texts]
    assert sum(text.startswith("is out") for text in ends) == 2
    assert ends.count("responds again") == 2
    assert len(texts) <= 2 * (4 + 2)  # one line a minute for each cause
    caplog.clear()


@both_eras
async def test_store_that_comes_back_empty_counts_everything_as_changed(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers are lost: each worker joins again. Later changes are heard as before."""
    store = FaultySessionStore()
    async with open_workers([version] * 2, store, Worker.on_remote_change) as workers:
        store.empty()
        await either.sleep(4)
        for worker in workers:
            await worker.hears(*ALL)
            change = worker.hooked[-1]
            assert (change.tools, change.prompts, change.resources) == (True, True, True)
            assert change.all_uris
        workers[0].server.changed(tools=True)
        await workers[1].hears(TOOLS)
        await workers[0].hears(TOOLS)
    assert "joins again" in caplog.text
    caplog.clear()


async def test_worker_that_was_suspended_joins_again_and_has_missed_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its number is gone, and the messages aren't: it reads on where it was."""
    store = FaultySessionStore()
    async with open_workers([E] * 2, store) as (a, b):
        store._heartbeats.clear()
        b.server.changed(prompts=True)
        await a.hears("prompts/list_changed")
        await b.hears("prompts/list_changed")
        await either.sleep(4)
        assert len(store._heartbeats) == 2
        a.server.changed(tools=True)
        await b.hears(TOOLS)
        await a.hears(TOOLS)
    assert caplog.text.count("joins again") == 2
    caplog.clear()


async def test_failover_to_a_replica_that_lags_is_noticed() -> None:
    """The last two messages are lost, and the next ones get their numbers."""
    store = FaultySessionStore()
    async with open_workers([E] * 2, store) as (a, b):
        for _ in range(3):
            a.server.changed(tools=True)
            await b.hears(TOOLS)
            await a.hears(TOOLS)
        store._count -= 2
        del store._messages[-1], store._messages[-1]
        a.server.changed(prompts=True)
        await a.hears("prompts/list_changed")
        await either.sleep(4)
        await a.hears(*ALL)
        await b.hears(*ALL)
        a.server.changed(tools=True)
        await b.hears(TOOLS)
        await a.hears(TOOLS)


async def test_gap_tells_what_was_missed() -> None:
    """A worker that could not read for 10,001 messages asks for what they announced."""
    store = FaultySessionStore()
    async with open_workers([E] * 2, store) as (a, b):
        store.faults["read"] = 30.0
        await either.sleep(6)
        await store.publish(1, ChangesPublished("shop", lists=("prompts",)))
        for _ in range(10_000):
            await MemoryStore.publish(store, 1, ChangesPublished("shop", lists=("tools",)))
        store.faults.clear()
        store.faults["missed"] = ChangesPublished("shop", lists=("tools",), uris=(URI,))
        await either.sleep(40)
        await b.hears(TOOLS, UPDATED)
        await a.hears(TOOLS, UPDATED)


@pytest.mark.parametrize("fault", [REFUSED, FaultySessionStore.hang], ids=repr)
async def test_server_starts_without_its_store(
    fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Changes until it joins aren't known, so all counts as changed then."""
    store = FaultySessionStore()
    store.faults[""] = fault
    start = either.current_time()
    async with open_workers([E], store, Worker.on_remote_change) as (a,):
        assert either.current_time() - start < 6
        assert (await a.peer.call(1, "buy"))["result"]["content"][0]["text"] == "bought at 0"
        a.server.changed(tools=True)
        await a.hears(TOOLS)
        store.faults.clear()
        await either.sleep(20)
        await a.hears(*ALL)
        assert len(a.hooked) == 1
        assert len(store.published) == 1
        await store.publish(1, ChangesPublished("shop", lists=("prompts",)))
        await a.hears("prompts/list_changed")
    assert "join of the store of sessions" in caplog.text
    caplog.clear()


@pytest.mark.parametrize(
    ("method", "garbage"),
    [
        ("read", "x"),
        ("read", WorkerBatch(Position(1, 10**9), ["x", (1, "x")])),  # type: ignore[list-item]
        ("read", WorkerBatch(("1", 2), [])),  # type: ignore[arg-type]
        ("read", WorkerBatch(Position(1, 0), [])),
        ("read", WorkerBatch(Position(1, 10**9), [(1, ChangesPublished("shop", uris=5))])),  # type: ignore[arg-type]
        ("missed", "x"),
        ("missed", ChangesPublished("shop", uris=5)),  # type: ignore[arg-type]
        ("join", ("x", "y")),
        ("publish", "x"),
        ("heartbeat", "x"),
    ],
    ids=repr,
)
async def test_garbage_of_a_store_ends_nothing(
    method: str, garbage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker serves on, doesn't spin, and hears of changes when the store is right again."""
    store = FaultySessionStore()
    async with open_workers([E] * 2, store) as (a, b):
        if method in ("missed", "join"):
            store.empty()
        store.faults[method] = garbage
        await either.sleep(30)
        assert store.calls.count(method) < 2 * 30 * 12
        await b.drain()
        store.faults.clear()
        store.empty()
        await either.sleep(10)
        a.server.changed(tools=True)
        await either.sleep(10)
        assert f"notifications/{TOOLS}" in await b.drain()
    caplog.clear()


async def test_two_workers_with_one_number_hear_each_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The store was emptied, and gave a living worker's number to another one."""
    store = FaultySessionStore()
    async with open_workers([E], store) as (a,):
        number = next(iter(store._heartbeats))
        store.empty()

        async def join(server: str) -> Any:
            place = await MemoryStore.join(store, server)
            del store._heartbeats[place.number]
            store._heartbeats[number] = 0.0
            return place._replace(number=number)

        store.join = join  # type: ignore[method-assign]
        b = Worker(1, E)
        async with serve_worker(b, store):
            del store.join
            a.server.changed(tools=True)
            await b.hears(TOOLS)
            b.server.changed(prompts=True)
            await either.sleep(1)
            assert "notifications/prompts/list_changed" in await a.drain()
    caplog.clear()


# -- Ending ----------------------------------------------------------------------------------------

STEPS = ["join", "read", "publish", "heartbeat", "leave", "missed"]


@pytest.mark.parametrize("step", STEPS)
async def test_worker_ends_quickly_while_its_store_hangs(
    step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """At the end, and when it is cancelled, which takes no longer than at any other server."""
    store = FaultySessionStore()
    for cancels in (False, True):
        store.faults.clear()
        with either.CancelScope() as scope:
            async with open_workers([E], store) as (a,):
                store.faults[step] = store.hang
                if step in ("join", "missed"):
                    store.empty()
                a.server.changed(tools=True)
                await a.peer.receive()
                await either.sleep(4)
                start = either.current_time()
                if cancels:
                    scope.cancel()
                    await either.sleep(1)
        assert either.current_time() - start <= 2.1
    caplog.clear()


@pytest.mark.parametrize("step", STEPS)
async def test_others_go_on_when_a_worker_was_killed_at_a_step(
    step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It can't say goodbye, since its store hangs. Another one takes its place."""
    store = FaultySessionStore()
    async with open_workers([E], store) as (b,):
        dying: Any = StoreOfOneWorker(store)
        with either.CancelScope() as scope:
            async with open_workers([E], dying) as (a,):
                a.server.changed(tools=True)
                await b.hears(TOOLS)
                dying.hanging |= {step, "leave"}
                if step == "missed":
                    store._messages.clear()
                a.server.changed(prompts=True)
                await either.sleep(4)
                scope.cancel()
                await either.sleep(1)
        await b.drain()
        c = Worker(2, E)
        async with serve_worker(c, store):
            c.server.changed(tools=True)
            await b.hears(TOOLS)
            b.server.changed(prompts=True)
            await c.hears(TOOLS, "prompts/list_changed")
    caplog.clear()


@both_eras
async def test_slow_store_delays_other_workers_only(version: str) -> None:
    store = FaultySessionStore()
    async with open_workers([version] * 2, store) as (a, b):
        store.faults[""] = 0.2
        await either.sleep(6)
        for number in range(20):
            a.server.changed(resource=URI if number % 2 else "x:2")
        await a.hears(UPDATED)
        await either.sleep(1)
        await b.hears(UPDATED)


async def test_store_that_cancels_itself_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    """On asyncio a pool of connections may do that. The worker isn't cancelled, and goes on."""
    store = FaultySessionStore()
    async with open_workers([E] * 2, store) as (a, b):
        store.faults["read"] = RuntimeError() if either.on_trio() else asyncio.CancelledError()
        await either.sleep(6)
        store.faults.clear()
        await either.sleep(2)
        a.server.changed(tools=True)
        await a.hears(TOOLS)
        await b.hears(TOOLS)
    caplog.clear()


@pytest.mark.parametrize("swallows", ["store", "hook"])
async def test_swallowed_cancellation_does_not_keep_the_server_from_ending(
    swallows: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One, by a read, or by a hook that was stopped at its time limit."""
    swallowed: list[str] = []

    async def swallow(name: str) -> None:
        try:
            await either.sleep_forever()
        except (trio.Cancelled, asyncio.CancelledError):
            swallowed.append(name)

    class Stubborn(FaultySessionStore):
        async def read(self, position: Position, /) -> Any:
            if swallows == "store":
                await swallow("read")
                return WorkerBatch(position, [])
            return await super().read(position)

    running = False

    def prepare(worker: Worker) -> None:
        @worker.server.on_remote_change
        async def hook(change: RemoteChange[Any]) -> None:
            if running and worker.index:
                await swallow("hook")
                await either.sleep_forever()

    start = 0.0
    async with open_workers([E] * 2, Stubborn(), prepare) as (a, _):
        running = swallows == "hook"
        a.server.changed(tools=True)
        await either.sleep(12)
        start = either.current_time()
    assert either.current_time() - start <= 4.2
    assert swallowed
    caplog.clear()


async def test_loop_that_fails_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    """A client's service may fail while it is notified."""
    async with open_workers([E] * 2, FaultySessionStore()) as (a, b):

        class Broken:
            def changed(self, changes: object, /, *, all_resources: bool = False) -> None:
                b.server.detach(self)
                raise LookupError("of a service")

            def elicitation_completed(self, elicitation_id: str, /) -> None:
                """Do nothing."""

        b.server.attach(Broken())
        a.server.changed(tools=True)
        await a.hears(TOOLS)
        await either.sleep(3)
        await b.drain()
        a.server.changed(tools=True)
        await b.hears(TOOLS)
    assert "LookupError: of a service" in caplog.text
    caplog.clear()


async def test_start_that_is_cancelled_gives_its_number_back() -> None:
    """It has joined, and a hook is running."""
    store = FaultySessionStore()
    server = Server("shop")

    @server.on_remote_change
    async def slow(change: RemoteChange[Any]) -> None:
        await either.sleep(5)

    with either.CancelScope() as scope:
        async with either.open_quiet_nursery() as nursery:

            async def serve() -> None:
                async with either.open_server(server, store):
                    raise AssertionError

            nursery.start_soon(serve)
            await either.sleep(1)
            assert len(store._heartbeats) == 1
            scope.cancel()
            await either.sleep(1)
    assert not store._heartbeats


async def test_number_is_given_back_although_the_last_publish_fails() -> None:
    store = FaultySessionStore()
    async with either.open_server(Server("shop"), store) as served:
        store.faults["publish"] = REFUSED
        served.server.changed(tools=True)
    assert not store._heartbeats


async def test_last_change_is_published_and_the_number_given_back() -> None:
    store = FaultySessionStore()
    async with open_workers([E] * 2, store) as (a, b):
        c = Worker(2, E)
        async with serve_worker(c, store):
            await c.is_silent()
        assert await store.alive(store._heartbeats) == {*store._heartbeats}
        assert len(store._heartbeats) == 2
        async with either.open_server(c.server, store):
            c.server.changed(tools=True)
        await a.hears(TOOLS)
        await b.hears(TOOLS)
        assert len(store._heartbeats) == 2


async def test_store_that_cannot_be_opened_is_an_error_of_the_start() -> None:
    """Opening makes no connection, so what it raises is a mistake of the author."""

    class Closed(MemoryStore):
        def opened(self, runtime: Any, /) -> Any:
            raise SessionStoreError("the ACL forbids XADD")

    with pytest.raises(SessionStoreError, match="XADD"):
        async with either.open_server(Server("s"), Closed()):
            raise AssertionError


class HangingStore(MemoryStore):
    """Opens a nursery of its own and waits in it, as one that connects may."""

    durable, immediate = True, False  # of a store of tasks, which it is, too

    def __init__(self, *, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    @asynccontextmanager
    async def opened(self, runtime: Any, /) -> AsyncIterator[Any]:
        async with either.open_quiet_nursery(), MemoryStore.opened(self, runtime):
            await either.sleep(self.seconds)
            yield self


async def test_store_that_hangs_while_it_is_opened_is_an_error_after_15_seconds() -> None:
    """A slower one is served: the limit ends with the opening."""
    store = HangingStore(seconds=10_000)
    with pytest.raises(TimeoutError, match="not open after 15 s"):
        async with either.open_server(Server("s"), store):
            raise AssertionError
    assert "0 workers" in repr(store)
    server = Server("s", tasks=Tasks(store=store))  # type: ignore[arg-type]
    with pytest.raises(TimeoutError, match="not open after 15 s"):
        async with either.open_server(server):
            raise AssertionError
    async with either.open_server(Server("s"), HangingStore(seconds=14)):
        await either.sleep(100)


# -- What is refused -------------------------------------------------------------------------------


class SharedStore(MemoryStore):
    needs_keys = True


def test_store_of_several_processes_needs_keys() -> None:
    """The text says how to make them."""
    with pytest.raises(ValueError, match=r"state_keys=.*token_urlsafe.*--state-keys-env"):
        check_sharing([Server("s")], SharedStore())
    check_sharing([Server("s", state_keys={"1": b"x" * 32})], SharedStore())
    check_sharing([Server("s")], MemoryStore())


def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two servers have the name 's'"):
        check_sharing([Server("s"), Server("t"), Server("s")], MemoryStore())
    server = Server("s")
    check_sharing([server, server, Server("t")], MemoryStore())


async def test_bus_shows_what_it_is() -> None:
    async with either.open_task_runtime() as runtime:
        assert "worker 0" in repr(WorkerBus(Server("s"), MemoryStore(), runtime))
