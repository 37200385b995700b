"""Lists that depend on the caller, with real clients of both eras: here by the client's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import PeerError
from mcp_core.registry import Caller, Context, Proceed, Server
from mcp_core.types import Implementation, InputRequiredResult
from tests.drivers.test_tasks import conversation, start, state_of
from tests.harness import either
from tests.harness.wire.lines import ERAS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("each_driver")
both_eras = pytest.mark.parametrize("version", ERAS)


def is_admin(caller: Caller) -> bool:
    return caller.peer.info is not None and caller.peer.info.name == "admin"


def make_server(*, middleware: bool = False) -> Server:
    server = Server("desk")

    @server.tool(visible=is_admin)
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    @server.tool
    async def read(context: Context, uri: str) -> str:
        """Read."""
        return str((await context.read_resource(uri)).contents[0].text)

    @server.resource("secret://plans", visible=is_admin)
    def plans() -> str:
        return "plans"

    @server.resource("secret://{name}/plans", visible=is_admin)
    def more(name: str) -> str:
        return name

    @server.resource("open://notes")
    def notes() -> str:
        return "notes"

    if middleware:

        @server.middleware
        async def pass_on(context: Context, proceed: Proceed) -> object:
            return await proceed()

    return server


def client_of(server: Server, name: str, version: str) -> Any:
    return either.connect(server, versions=[version], info=Implementation(name, "1"), cache=False)


@both_eras
@pytest.mark.parametrize("middleware", [True, False])
@pytest.mark.parametrize("mounted", [True, False])
async def test_each_client_sees_its_own_lists(
    version: str, middleware: bool, mounted: bool
) -> None:
    """Two clients of one server at once. What one of them doesn't see, it cannot call or read."""
    server = make_server(middleware=middleware)
    prefix = ""
    if mounted:
        inner, server, prefix = server, Server("outer"), "in_"
        server.mount(inner, "in")
    async with (
        client_of(server, "admin", version) as admin,
        client_of(server, "guest", version) as guest,
    ):
        names = [[tool.name for tool in await client.list_tools()] for client in (admin, guest)]
        assert names == [[f"{prefix}wipe", f"{prefix}read"], [f"{prefix}read"]]
        assert len(await admin.list_resources()) == 2
        assert [each.uri for each in await guest.list_resources()] == ["open://notes"]
        assert await guest.list_resource_templates() == []
        assert (await admin.call_tool(f"{prefix}wipe")).text == "wiped"
        with pytest.raises(PeerError, match=f"Unknown tool: {prefix}wipe"):
            await guest.call_tool(f"{prefix}wipe")
        read = f"{prefix}read"
        assert (await admin.call_tool(read, {"uri": "secret://plans"})).text == "plans"
        for uri in ("secret://plans", "secret://ann/plans"):
            with pytest.raises(PeerError, match="Resource not found"):
                await guest.read_resource(uri)
            with pytest.raises(PeerError, match="Resource not found"):  # nor by a tool that reads
                await guest.call_tool(read, {"uri": uri})


@both_eras
async def test_directory_is_hidden_with_all_its_files(version: str, tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text("plan")
    server = Server("s")
    server.add_directory(str(tmp_path), "docs://plans", visible=is_admin)
    async with (
        client_of(server, "admin", version) as admin,
        client_of(server, "guest", version) as guest,
    ):
        uri = "docs://plans/plan.txt"
        assert (await admin.read_resource(uri)).contents[0].text == "plan"
        assert await guest.list_resources() == await guest.list_resource_templates() == []
        for each in ("docs://plans", uri):
            with pytest.raises(PeerError, match="Resource not found"):
                await guest.read_resource(each)


@both_eras
async def test_subscription_to_what_is_hidden_is_accepted_and_gets_nothing(version: str) -> None:
    """As one to a resource that doesn't exist. One that was visible at its start goes on."""
    server = make_server()
    uris = ["secret://plans", "secret://ann/plans", "open://notes"]
    async with (
        client_of(server, "admin", version) as admin,
        client_of(server, "guest", version) as guest,
        admin.listen(uris=uris) as heard,
        guest.listen(uris=[*uris, "absent://"]) as overheard,
    ):
        for uri in uris:
            server.changed(resource=uri)
            assert (await anext(heard)).uri == uri
        assert (await anext(overheard)).uri == "open://notes"
        server.deliver_changes((), all_resources=True)
        assert {(await anext(heard)).uri for _ in uris} == set(uris)
        assert {(await anext(overheard)).uri for _ in range(2)} == {"open://notes", "absent://"}


@both_eras
async def test_call_goes_on_when_its_tool_is_hidden_meanwhile(version: str) -> None:
    """Also one that runs again after it has asked its client by its result."""
    server = Server("s")
    shown = True

    @server.tool(visible=lambda caller: shown)
    async def slow() -> str:
        """Wait."""
        await either.sleep(10)
        return "done"

    @server.tool(visible=lambda caller: shown)
    def wait_for_state(context: Context) -> str | InputRequiredResult:
        """Run again a little later."""
        nonlocal shown
        if context.request_state is None:
            shown = version != ERAS[0]  # in 2026-07-28 the client calls again
            return InputRequiredResult(request_state="again")
        return "done"

    async with either.connect(server, versions=[version]) as client:
        assert (await client.call_tool("wait_for_state")).text == "done"
        shown = True
        async with either.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "slow")
            await either.sleep(1)
            shown = False
            with pytest.raises(PeerError, match="Unknown tool"):
                await client.call_tool("slow")


@both_eras
async def test_task_of_a_hidden_tool_is_unknown_and_goes_on(version: str) -> None:
    """To the letter, as one that doesn't exist. When it is visible again, its result is there."""
    server = Server("s")
    shown = True

    @server.tool(task="optional", visible=lambda caller: shown)
    async def research() -> str:
        """Read."""
        await either.sleep(10)
        return "found"

    async with conversation(version, server) as peer:
        task_id = await start(peer, "research")
        await either.sleep(1)
        methods = ["tasks/get", "tasks/cancel"]
        methods.append("tasks/result" if version == ERAS[0] else "tasks/update")
        shown = False
        for method in methods:
            errors = []
            for each in (task_id, "0" * 32):
                call = await peer.request(method, {"taskId": each, "inputResponses": {}})
                response = await peer.receive()
                assert response["id"] == call["id"]
                errors.append(response["error"])
            assert errors[0] == errors[1]
        if version == ERAS[0]:
            assert (await peer.result_of("tasks/list"))["tasks"] == []
        await either.sleep(20)
        shown = True
        assert (await state_of(peer, task_id))["status"] == "completed"
        server.disable("research")
        if version == ERAS[0]:
            await peer.expect("notifications/tools/list_changed")
        assert (await state_of(peer, task_id))["status"] == "completed"
