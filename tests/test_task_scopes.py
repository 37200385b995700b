"""A task needs the scopes of its tool, in each store and with both drivers.

The tokens are of one user with one client, which asks for a token with less, or more, as it goes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest

from mcp_core.auth import Grant, OAuthResourceServer
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.harness.world.waiting import patience
from tests.task_play.served_lab import (
    DRIVERS,
    STORES,
    ServedLab,
    player,
)
from tests.task_play.wires import D, E

if TYPE_CHECKING:
    from pathlib import Path

    from tests.task_play.served_lab import Play
    from tests.task_play.wires import AsgiClient

RESOURCE: Final = "https://lab.example.com/mcp"
SCOPES: Final = {"hold": ["hold:use"], "give": ["give:use"], "ask": ["ask:use", "give:use"]}
ALL: Final = frozenset({"hold:use", "give:use", "ask:use"})
GRANTS: Final = {
    "full": Grant("ann", client_id="desk", scopes=ALL),
    "give": Grant("ann", client_id="desk", scopes=frozenset({"give:use"})),
    "bare": Grant("ann", client_id="desk"),
    "phone": Grant("ann", client_id="phone"),
    "bob": Grant("bob", client_id="desk"),
}


def auth(tools: Any = SCOPES) -> OAuthResourceServer:
    return OAuthResourceServer(RESOURCE, ["https://as.example.com"], GRANTS.get, tool_scopes=tools)


@pytest.fixture(params=[(driver, store) for driver in DRIVERS for store in STORES], ids="-".join)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Return a function that plays a scene on a stage with limits."""
    driver, store = request.param
    return player(driver, store, tmp_path)


async def ask(client: AsgiClient, method: str, params: dict[str, Any]) -> tuple[int, str, Any]:
    """Send a request. Return the status, the challenge, and the response."""
    with anyio.fail_after(patience()):
        call = await client.begin("POST", client.message(method, params)).end()
    challenge = call.headers.get(b"www-authenticate", b"").decode()
    return call.status, challenge, call.messages[-1]


def methods(version: str) -> list[str]:
    if version == D:
        return ["tasks/get", "tasks/result", "tasks/cancel"]
    return ["tasks/get", "tasks/update", "tasks/cancel"]


versions = pytest.mark.parametrize("version", [D, E])


@versions
def test_token_without_the_scope_of_a_tool_gets_a_challenge_for_its_own_task(
    play: Play, version: str
) -> None:
    """A weaker token of the same user learns which scope to ask for, and changes nothing."""

    async def scene(stage: ServedLab) -> None:
        full = await stage.connect(version, key="full")
        bare = await stage.connect(version, key="bare")
        held, given = await full.create("hold"), await full.create("give", size=9)
        await full.until(given, "completed")
        for task_id, scope in ((held, "hold:use"), (given, "give:use")):
            for method in methods(version):
                params = {"taskId": task_id, "inputResponses": {}}
                status, challenge, response = await ask(bare, method, params)
                assert status == 403, method
                assert 'error="insufficient_scope"' in challenge
                assert f'scope="{scope}"' in challenge
                assert "resource_metadata=" in challenge
                assert "x" * 9 not in str(response)
                assert response["error"]["message"] == (
                    "the token lacks scopes that this request needs"
                )
                assert response["id"]
        # It has done nothing, and the task is as it was.
        assert (await full.state(held))["status"] == "working"
        assert await full.text(given) == "x" * 9

    play(scene, auth=auth())


@versions
def test_task_of_others_stays_unknown_with_any_scopes(play: Play, version: str) -> None:
    """A 403 would tell that the task exists: another owner gets the answer for a made-up id."""

    async def scene(stage: ServedLab) -> None:
        full = await stage.connect(version, key="full")
        task_id = await full.create("hold")
        for key in ("phone", "bob"):
            other = await stage.connect(version, key=key)
            for method in methods(version):
                found = []
                for each in (task_id, "0" * 32):
                    params = {"taskId": each, "inputResponses": {}}
                    status, challenge, response = await ask(other, method, params)
                    found.append((status, challenge, response["error"]))
                assert found[0] == found[1]
                assert found[0][0] != 403
                assert found[0][2]["code"] == -32602

    play(scene, auth=auth())


@versions
def test_client_that_steps_up_gets_its_task(play: Play, version: str) -> None:
    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(version, key="full")
        task_id = await client.create("give", size=9)
        client.more_headers["authorization"] = "Bearer bare"
        status, _, _ = await ask(client, "tasks/get", {"taskId": task_id})
        assert status == 403
        client.more_headers["authorization"] = "Bearer give"
        assert await client.text(task_id) == "x" * 9

    play(scene, auth=auth())


def test_list_leaves_out_what_the_token_does_not_cover(play: Play) -> None:
    async def scene(stage: ServedLab) -> None:
        full = await stage.connect(D, key="full")
        held, given = await full.create("hold"), await full.create("give", size=9)
        for key, expected in (("full", {held, given}), ("give", {given}), ("bare", set())):
            client = await stage.connect(D, key=key)
            status, challenge, response = await ask(client, "tasks/list", {})
            assert (status, challenge) == (200, "")
            assert {task["taskId"] for task in response["result"]["tasks"]} == expected

    play(scene, auth=auth())


def test_listening_needs_the_scopes_of_all_tasks_at_once(play: Play) -> None:
    """One challenge names every missing scope, so that a client doesn't ask once per task."""

    async def scene(stage: ServedLab) -> None:
        full = await stage.connect(E, key="full")
        ids = [await full.create(tool) for tool in ("hold", "ask", "hold")]
        wanted = {"notifications": {"taskIds": ids}}
        client = await stage.connect(E, key="give")
        status, challenge, _ = await ask(client, "subscriptions/listen", wanted)
        assert status == 403
        assert 'scope="hold:use ask:use give:use"' in challenge
        assert not client.notifications
        # Other users' tasks are left out, as ever.
        other = await stage.connect(E, key="bob")
        other.listen(*ids)
        found = await other.until_notified(lambda message: True)
        assert "taskIds" not in found["params"]["notifications"]
        full.listen(*ids)
        found = await full.until_notified(lambda message: True)
        assert found["params"]["notifications"]["taskIds"] == ids
        for task_id in ids:
            await full.request("tasks/cancel", {"taskId": task_id})
        await full.until_notified(lambda message: message["params"].get("status") == "cancelled")

    play(scene, auth=auth())


def test_stream_of_a_result_is_resumed_with_the_scopes_of_its_tool_only(play: Play) -> None:
    """The request itself needs none, so that each token of the user could resume the stream."""

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(D, key="full")
        task_id = await client.create("ask")
        await client.until(task_id, "input_required")
        fetch = client.begin("POST", client.message("tasks/result", {"taskId": task_id}))
        with anyio.fail_after(patience()):
            await fetch.wait_for_messages()
        last = fetch.events[-1]["id"]
        fetch.disconnect()
        await fetch.end()
        client.more_headers["last-event-id"] = last
        for key, status in (("bare", 403), ("give", 403), ("full", 200)):
            client.more_headers["authorization"] = f"Bearer {key}"
            call = client.begin("GET", {})
            with anyio.fail_after(patience()):
                await call.until(partial(getattr, call, "sent"))
            assert call.status == status, key
        await client.request("tasks/cancel", {"taskId": task_id})

    play(scene, auth=auth())


@versions
def test_scopes_are_those_of_now(play: Play, version: str) -> None:
    """They are not stored with the task: the operator may add one, or remove it."""
    needed: dict[str, list[str]] = {}

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(version, key="give")
        task_id = await client.create("hold")
        for scopes, status in (([], 200), (["hold:use"], 403), (["give:use"], 200)):
            needed["hold"] = scopes
            found, _, _ = await ask(client, "tasks/get", {"taskId": task_id})
            assert found == status

    play(scene, auth=auth(lambda tool: needed.get(tool, [])))


@versions
def test_scope_function_that_fails_shows_no_task(
    play: Play, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The author's own error must fail closed: a 500 and an empty list, and a log entry."""
    broken = [False]

    def scopes_of(tool: str) -> list[str]:
        if broken[0]:
            raise ZeroDivisionError
        return []

    async def scene(stage: ServedLab) -> None:
        client = await stage.connect(version, key="full")
        task_id = await client.create("hold")
        broken[0] = True
        status, _, response = await ask(client, "tasks/get", {"taskId": task_id})
        assert status == 500
        assert "taskId" not in str(response)
        if version == D:
            _, _, response = await ask(client, "tasks/list", {})
            assert response["result"]["tasks"] == []

    play(scene, auth=auth(scopes_of))
    assert "ZeroDivisionError" in caplog.text


def test_servers_without_scopes_see_no_difference(play: Play) -> None:
    async def scene(stage: ServedLab) -> None:
        bare = await stage.connect(D, key="bare")
        task_id = await bare.create("give", size=9)
        assert await bare.text(task_id) == "x" * 9

    play(scene, auth=auth(None))
