"""Lists that depend on the caller, with real clients of both eras: here by the client's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import Limits, PeerError
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


def make_server(*, middleware: bool = False, limits: Limits | None = None) -> Server:
    server = Server("desk", limits=limits)

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


async def publish(server: Server, *uris: str) -> None:
    """Send the changes one by one: of several at once the last one may come first."""
    for uri in uris:
        server.changed(resource=uri)
        await either.sleep(1)


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
    """As one to a resource that doesn't exist."""
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
@pytest.mark.parametrize("uri", ["secret://plans", "SECRET://plans", "secret://ann/plans", "no://"])
async def test_subscription_to_what_is_hidden_counts_like_one_to_what_is_absent(
    version: str, uri: str
) -> None:
    """Or a client could tell by its limit of subscriptions what exists."""
    server = make_server(limits=Limits(uris=2))
    async with (
        client_of(server, "guest", version) as guest,
        guest.listen(uris=["absent://1"]),
        guest.listen(uris=[uri]),
    ):
        with pytest.raises(PeerError, match="at most 2 URIs"):
            async with guest.listen(uris=["absent://2"]):
                pass
    async with client_of(server, "guest", version) as guest:
        for _ in range(3):  # each gives its place back
            async with guest.listen(uris=[uri]), guest.listen(uris=["absent://1"]):
                pass


@both_eras
@pytest.mark.parametrize("secret", ["secret://late", "secret://{name}/late"])
async def test_resource_that_is_declared_later_tells_those_who_see_it(
    version: str, secret: str
) -> None:
    """Their subscriptions began before, and on a server that hid nothing then."""
    server = Server("s")
    uri = secret.format(name="ann")
    server.add_resource("open://notes", lambda: "notes", name="notes")
    async with (
        client_of(server, "admin", version) as admin,
        client_of(server, "guest", version) as guest,
        admin.listen(uris=[uri]) as heard,
        guest.listen(uris=[uri, "open://notes"]) as overheard,
    ):
        if "{" in secret:
            server.add_resource(secret, lambda name: name, name="late", visible=is_admin)
        else:
            server.add_resource(secret, lambda: "late", name="late", visible=is_admin)
        await publish(server, uri, "open://notes")
        assert (await anext(heard)).uri == uri
        assert (await anext(overheard)).uri == "open://notes"


@both_eras
async def test_subscription_follows_what_its_client_sees(version: str) -> None:
    """While the resource is hidden or disabled nothing is sent, and afterwards it is again."""
    server = Server("s")
    shown = True
    server.add_resource("x://1", lambda: "1", name="one", visible=lambda caller: shown)
    server.add_resource("x://2", lambda: "2", name="two")
    async with (
        either.connect(server, versions=[version]) as client,
        client.listen(uris=["x://1", "x://2"]) as heard,
    ):

        async def next_of_both() -> str | None:
            await publish(server, "x://1", "x://2")
            first: str | None = (await anext(heard)).uri
            if first == "x://1":
                assert (await anext(heard)).uri == "x://2"
            return first

        assert await next_of_both() == "x://1"
        shown = False
        assert await next_of_both() == "x://2"
        shown = True
        assert await next_of_both() == "x://1"
        server.disable("x://1")
        assert await next_of_both() == "x://2"
        server.enable("x://1")
        assert await next_of_both() == "x://1"


@both_eras
@pytest.mark.parametrize("hidden", ["d://{n}", "d://{name}"])
async def test_change_is_sent_to_those_who_can_read_it(version: str, hidden: str) -> None:
    """With two templates of one form, the one that has the URI decides about both."""
    server = Server("s")

    def numbered(n: int) -> str:
        return "a number"

    only = {hidden: is_admin}
    server.add_resource("d://{n}", numbered, name="a", visible=only.get("d://{n}"))
    server.add_resource("d://{name}", lambda name: name, name="b", visible=only.get("d://{name}"))
    seen, unseen = ("d://abc", "d://7") if hidden == "d://{n}" else ("d://7", "d://abc")
    async with (
        client_of(server, "guest", version) as guest,
        guest.listen(uris=[seen, unseen]) as heard,
    ):
        assert (await guest.read_resource(seen)).contents
        with pytest.raises(PeerError, match="Resource not found"):
            await guest.read_resource(unseen)
        await publish(server, unseen, seen)
        assert (await anext(heard)).uri == seen


@both_eras
async def test_visible_that_exits_the_program_hides_and_the_server_goes_on(version: str) -> None:
    server = Server("s")
    server.add_resource("open://x", lambda: "x", name="open")
    server.add_resource("secret://x", lambda: "x", name="secret", visible=lambda caller: exit(3))
    async with either.connect(server, versions=[version], cache=False) as client:
        assert [each.uri for each in await client.list_resources()] == ["open://x"]
        with pytest.raises(PeerError, match="Resource not found"):
            await client.read_resource("secret://x")
        async with client.listen(uris=["secret://x", "open://x"]) as heard:
            await publish(server, "secret://x", "SECRET://x", "open://x")
            assert (await anext(heard)).uri == "open://x"


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
