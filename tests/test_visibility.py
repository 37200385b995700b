"""Lists that depend on the user, the scopes and the headers of each HTTP request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.auth import ApiKeys
from mcp_core.registry import Caller, Server
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.task_play.wires import D, E, RpcError
from tests.test_task_owners import ANN, BOB, DRIVERS, KEYS, clients_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.task_play.wires import AsgiClient


def make_server() -> Server:
    server = Server("desk")
    rules: dict[str, Callable[[Caller], bool]] = {
        "of_ann": lambda caller: caller.principal == "ann",
        "of_admins": lambda caller: caller.grant is not None and "admin" in caller.grant.scopes,
        "of_reds": lambda caller: caller.headers.get("x-team") == "red",
        "of_secrets": lambda caller: "authorization" in caller.headers,
    }
    for name, rule in rules.items():
        server.add_tool(lambda: "done", name=name, description="Do.", visible=rule)
    server.add_resource("ann://plans", lambda: "plans", name="plans", visible=rules["of_ann"])
    server.add_resource("open://notes", lambda: "notes", name="notes")
    return server


async def seen(client: AsgiClient) -> list[str]:
    return [tool["name"] for tool in (await client.request("tools/list"))["tools"]]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("version", [D, E])
def test_list_depends_on_user_scopes_and_headers_of_the_request(driver: str, version: str) -> None:
    """In a session, too, each request is judged by its own headers, and no credential is shown."""
    make, run = DRIVERS[driver]
    auth = ApiKeys(KEYS, granted_scopes={"bob": ["admin"]})

    async def scene() -> None:
        async with clients_of(make, make_server(), auth=auth) as connect:
            ann, bob = await connect(version, ANN), await connect(version, BOB)
            assert await seen(ann) == ["of_ann"]
            assert await seen(bob) == ["of_admins"]
            ann.more_headers["x-team"] = "red"
            assert await seen(ann) == ["of_ann", "of_reds"]
            assert await ann.call("of_reds") == "done"
            ann.more_headers["x-team"] = "r" * 60_000
            assert await seen(ann) == ["of_ann"]
            for client, tool in ((ann, "of_reds"), (ann, "of_admins"), (bob, "of_ann")):
                with pytest.raises(RpcError, match=f"Unknown tool: {tool}"):
                    await client.call(tool)

    run(scene)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("version", [D, E])
def test_subscription_over_http_gets_what_its_user_sees(driver: str, version: str) -> None:
    """A response to a request of a session, and a stream of 2026-07-28, come as for any URI."""
    make, run = DRIVERS[driver]
    uris = ["ann://plans", "open://notes", "absent://"]

    async def subscribe(client: AsgiClient) -> None:
        if version == E:
            wanted = {"notifications": {"resourceSubscriptions": uris}}
            client.group.start_soon(client.respond, client.message("subscriptions/listen", wanted))
            acknowledged = await client.until_notified(lambda message: True)
            assert acknowledged["params"]["notifications"]["resourceSubscriptions"] == uris
            return
        for uri in uris:
            assert await client.request("resources/subscribe", {"uri": uri}) == {}

    def heard(client: AsgiClient) -> list[str]:
        return [m["params"]["uri"] for m in client.notifications if "updated" in m["method"]]

    async def scene() -> None:
        server = make_server()
        async with clients_of(make, server, auth=ApiKeys(KEYS)) as connect:
            clients = [await connect(version, key) for key in (ANN, BOB)]
            for client in clients:
                await subscribe(client)
            for uri in uris:
                server.changed(resource=uri)
            for client in clients:
                await client.until_notified(lambda m: m["params"].get("uri") == "absent://")
            assert [sorted(heard(client)) for client in clients] == [sorted(uris), sorted(uris[1:])]

    run(scene)
