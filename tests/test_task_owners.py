"""Owners of tasks: other users, sessions and revisions do not find them, with both drivers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.auth import ApiKeys, Grant, OAuthResourceServer
from mcp_core.registry import Tasks
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.harness.wire.asgi import serve_app
from tests.harness.world import loop
from tests.task_play.lab import make_lab
from tests.task_play.scenes import accept
from tests.task_play.wires import WIRES, AsgiClient, D, E, RpcError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_core.registry import Server
    from tests.task_play.wires import WireClient

    Connect = Callable[..., Awaitable[AsgiClient]]
    Play = Callable[..., None]

ANN: Final = "ann-0123456789abcdef"
BOB: Final = "bob-0123456789abcdef"
KEYS: Final = {"ann": ANN, "bob": BOB}
RESOURCE: Final = "https://lab.example.com/mcp"
DRIVERS: Final[dict[str, tuple[Any, Callable[..., None]]]] = {
    "trio": (mcp_trio.asgi, trio.run),
    "asyncio": (mcp_asyncio_shim.asgi, lambda main: loop.run(main())),
}


@asynccontextmanager
async def clients_of(make: Any, server: Server, **options: Any) -> AsyncIterator[Connect]:
    """Serve a server as an ASGI application. Yield a function that returns a new client."""
    async with serve_app(make(server, **options)) as host, anyio.create_task_group() as group:

        async def connect(version: str, key: str = "") -> AsgiClient:
            client = AsgiClient(version, group, host)
            client.answer = accept
            if key:
                client.more_headers["authorization"] = f"Bearer {key}"
            await client.open()
            return client

        yield connect
        group.cancel_scope.cancel()


@pytest.fixture(params=DRIVERS)
def play(request: pytest.FixtureRequest) -> Play:
    """Return a function that plays a scene, which gets a function that connects a client."""
    make, run = DRIVERS[request.param]

    def play_scene(scene: Callable[[Connect], Awaitable[None]], auth: Any, **options: Any) -> None:
        async def main() -> None:
            async with clients_of(make, make_lab(), auth=auth, **options) as connect:
                await scene(connect)

        run(main)

    return play_scene


async def see_nothing(client: WireClient, task_id: str) -> None:
    """Check that a task does not exist for a client, with the same words as an unknown one."""
    methods = ["tasks/get", "tasks/cancel"]
    methods.append("tasks/update" if client.version == E else "tasks/result")
    for method in methods:
        errors = []
        for each in (task_id, "0" * 32):
            with pytest.raises(RpcError) as caught:
                await client.request(method, {"taskId": each, "inputResponses": {"k": {}}})
            errors.append((caught.value.code, str(caught.value), caught.value.data))
        assert errors[0] == errors[1]
        assert errors[0][0] == -32602
    if client.version == D:
        listed = await client.request("tasks/list")
        assert task_id not in str(listed)
        return
    client.listen(task_id)
    acknowledged = await client.until_notified(lambda message: True)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert "taskIds" not in acknowledged["params"]["notifications"]


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.requirement("TSK-24", "TX-23", "TX-19", "TSK-22")
def test_task_of_another_user_does_not_exist(play: Play, version: str) -> None:
    """Bob gets the same error as for an unknown id, while Ann finds the task from any session."""

    async def scene(connect: Connect) -> None:
        ann, bob = await connect(version, ANN), await connect(version, BOB)
        task_id = await ann.create("ask")
        await ann.until(task_id, "input_required")
        await see_nothing(bob, task_id)
        # The same user finds it from everywhere.
        again = await connect(version, ANN)
        assert (await again.state(task_id))["status"] == "input_required"
        if version == D:
            (listed,) = (await again.request("tasks/list"))["tasks"]
            assert listed["taskId"] == task_id
        assert await again.text(task_id) == "Ada"
        assert (await ann.state(task_id))["status"] == "completed"

    play(scene, ApiKeys(KEYS))


@pytest.mark.parametrize("version", [D, E])
def test_task_of_another_client_of_a_user_does_not_exist(play: Play, version: str) -> None:
    """The grants of two clients may differ, and so may what their tasks may show."""
    grants = {
        "desk": Grant("ann", client_id="desk"),
        "phone": Grant("ann", client_id="phone"),
    }
    auth = OAuthResourceServer(RESOURCE, ["https://as.example.com"], grants.get)

    async def scene(connect: Connect) -> None:
        desk, phone = await connect(version, "desk"), await connect(version, "phone")
        task_id = await desk.create("work")
        await see_nothing(phone, task_id)
        assert await desk.text(task_id) == "called by work"

    play(scene, auth)


@pytest.mark.parametrize("auth", [None, ApiKeys(KEYS)], ids=["open", "authorized"])
@pytest.mark.parametrize(("version", "other"), [(D, E), (E, D)])
def test_task_of_another_revision_does_not_exist(
    play: Play, version: str, other: str, auth: Any
) -> None:
    """Its states and its result are in the form of its own revision."""

    async def scene(connect: Connect) -> None:
        first, second = await connect(version, ANN), await connect(other, ANN)
        await see_nothing(second, await first.create("work"))

    play(scene, auth)


@pytest.mark.requirement("TSK-24")
def test_task_of_another_session_does_not_exist_and_ends_with_its_own(play: Play) -> None:
    async def scene(connect: Connect) -> None:
        first, second = await connect(D), await connect(D)
        task_id = await first.create("wait")
        await see_nothing(second, task_id)
        assert (await first.state(task_id))["status"] == "working"
        await second.call("journal")
        await first.delete()
        await second.until_journal("cancelled")

    play(scene, None)


@pytest.mark.requirement("TX-23")
def test_task_id_is_the_secret_without_authorization_in_the_extension(play: Play) -> None:
    async def scene(connect: Connect) -> None:
        first, second = await connect(E), await connect(E)
        ids = [await first.create("work") for _ in range(10)]
        assert len({each[:8] for each in ids}) == 10  # no counter
        assert all(len(each) == 32 for each in ids)
        assert await second.text(ids[0]) == "called by work"

    play(scene, None)


@pytest.mark.requirement("TSK-24")
def test_task_without_session_or_user_is_found_by_its_id_and_not_listed(play: Play) -> None:
    async def scene(connect: Connect) -> None:
        client = await connect(D)
        assert client.session == ""
        task_id = await client.create("work", held=True)
        assert (await client.state(task_id))["status"] == "working"
        await client.go()
        assert await client.text(task_id) == "called by work"
        with pytest.raises(RpcError, match="needs a session") as caught:
            await client.request("tasks/list")
        assert caught.value.code == -32601

    play(scene, None, sessions=False)


def test_owner_is_what_the_author_says() -> None:
    """The owner function reads the request itself: a different `_meta` hides the task."""
    seen: list[str] = []

    def owner_of(request: Any, default: str) -> str:
        seen.append(default)
        return str((request.params.meta and request.params.meta.progress_token) or "work")

    async def main() -> None:
        async with WIRES["memory"](E, make_lab(Tasks(owner=owner_of))) as client:
            task_id = await client.create("work")
            assert await client.text(task_id) == "called by work"
            with pytest.raises(RpcError, match="no such task"):
                await client.request(
                    "tasks/get", {"taskId": task_id, "_meta": {"progressToken": "other"}}
                )
        assert set(seen) == {""}

    trio.run(main)


@pytest.mark.requirement("TSK-26")
def test_question_on_a_lost_stream_is_asked_again_by_the_next_fetch(play: Play) -> None:
    """The client may disconnect from a `tasks/result` at any time, and need not resume it."""

    async def scene(connect: Connect) -> None:
        client = await connect(D)
        task_id = await client.create("ask")
        await client.until(task_id, "input_required")
        fetch = client.message("tasks/result", {"taskId": task_id})
        lost = client.begin("POST", fetch)
        (question,) = await lost.wait_for_messages()
        assert question["method"] == "elicitation/create"
        lost.disconnect()
        await lost.end()
        assert await client.text(task_id) == "Ada"
        assert [each["method"] for each in client.asked] == ["elicitation/create"]

    play(scene, None)


@pytest.mark.requirement("TSK-26")
def test_state_of_a_task_is_no_event_stream(play: Play) -> None:
    async def scene(connect: Connect) -> None:
        client = await connect(D)
        task_id = await client.create("work")
        call = client.begin("POST", client.message("tasks/get", {"taskId": task_id}))
        await call.end()
        assert call.headers[b"content-type"] == b"application/json"

    play(scene, None)
