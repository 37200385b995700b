"""Hooks on changed roots, with a scripted client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core import DIALECTS, CallTimeout, McpError, Peer
from mcp_core.registry import Context, DeclarationError, RootsContext, Server
from mcp_core.registry._roots import _RootsRequest, _Sender
from mcp_core.types import ClientCapabilities
from tests.harness.jsonrpc import (
    STATEFUL,
    D,
    E,
    Message,
    error,
    notification,
    text_of,
)
from tests.harness.messages.scripted_client import ScriptedClient

CHANGED = notification("notifications/roots/list_changed")
OFFERS: Message = {"roots": {"listChanged": True}}


def roots(*names: str) -> Message:
    return {"roots": [{"uri": f"file:///{name}"} for name in names]}


class Hooked:
    """A server with a hook that lists the roots. `events` are what it did."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.server = server = Server("s")

        @server.on_roots_changed
        async def rescan(context: RootsContext) -> None:
            self.events.append("begin")
            found = [root.uri for root in await context.roots()]
            context.session_state["roots"] = found
            self.events.append(found)

        @server.tool
        def known(context: Context) -> str:
            """Return the roots that are known."""
            return str(context.session_state.get("roots"))

    def stage(self, version: str = D, offers: Message = OFFERS, **options: Any) -> ScriptedClient:
        stage = ScriptedClient(self.server, version, offers, **options)
        stage.runtime.time_passes = False
        return stage


@pytest.mark.parametrize("version", STATEFUL)
def test_hook_lists_the_new_roots_for_the_session(version: str) -> None:
    hooked = Hooked()
    stage = hooked.stage(version, principal="alice")
    stage.receive(CHANGED)
    (request,) = stage.sent_messages()
    assert (request["method"], hooked.events) == ("roots/list", ["begin"])
    assert stage.answers(request, roots("a", "b")) == []
    assert hooked.events == ["begin", ["file:///a", "file:///b"]]
    (message,) = stage.calls("known")
    assert text_of(message) == "['file:///a', 'file:///b']"
    (message,) = hooked.stage(version).calls("known")
    assert text_of(message) == "None"  # another session


def test_notifications_during_a_run_lead_to_one_more_run() -> None:
    hooked = Hooked()
    stage = hooked.stage()
    stage.receive(*[CHANGED] * 50)  # all of them before the hook runs
    (request,) = stage.sent_messages()
    stage.receive(*[CHANGED] * 50)
    assert stage.sent_messages() == []
    assert not stage.service.idle
    (request,) = stage.answers(request, roots("old"))
    assert stage.answers(request, roots("new")) == []
    assert hooked.events == ["begin", ["file:///old"], "begin", ["file:///new"]]
    stage.receive(CHANGED)
    assert hooked.events[-1] == "begin"


@pytest.mark.parametrize(("version", "offers"), [(D, {}), (E, OFFERS)])
def test_notification_without_roots_calls_no_hook(version: str, offers: Message) -> None:
    hooked = Hooked()
    stage = hooked.stage(version, offers)
    stage.receive(CHANGED)
    assert stage.sent_messages() == hooked.events == []
    assert stage.service.idle


def test_session_state_of_a_stateless_revision_is_new_for_each_request() -> None:
    server = Server("s")

    @server.tool
    def count(context: Context) -> int:
        """Count the requests."""
        context.session_state["n"] = context.session_state.get("n", 0) + 1
        return int(context.session_state["n"])

    for version, expected in ((D, "2"), (E, "1")):
        stage = ScriptedClient(server, version)
        stage.calls("count", 1)
        (message,) = stage.calls("count", 2)
        assert text_of(message) == expected


def test_context_of_a_hook_describes_the_client() -> None:
    server = Server("s")
    seen: list[RootsContext] = []

    @server.on_roots_changed
    def look(context: RootsContext) -> None:
        seen.append(context)

    ScriptedClient(server, D, OFFERS, principal="alice", lifespan=7).receive(CHANGED)
    (context,) = seen
    assert (context.server, context.lifespan, context.principal) == (server, 7, "alice")
    assert context.peer.dialect.version == D
    assert repr(context) == f"<RootsContext of {server!r}>"


def test_exception_of_a_hook_is_logged_and_the_next_hook_runs() -> None:
    """Hooks are independent: one that always fails costs the others nothing."""
    server = Server("s")
    order: list[str] = []

    @server.on_roots_changed
    def broken(context: RootsContext) -> None:
        order.append("broken")
        raise ValueError("a mistake")

    @server.on_roots_changed
    async def whole(context: RootsContext) -> None:
        order.append("whole")

    stage = ScriptedClient(server, D, OFFERS)
    stage.receive(CHANGED)
    stage.receive(CHANGED)
    assert order == ["broken", "whole"] * 2
    assert stage.runtime.warnings == ["a hook on changed roots failed: ValueError('a mistake')"] * 2


def test_client_that_does_not_answer_ends_the_wait_after_a_minute() -> None:
    hooked = Hooked()
    stage = hooked.stage()
    stage.runtime.time_passes = True
    stage.receive(CHANGED)
    stage.run_jobs()
    request, cancel = stage.sent_messages()
    assert (request["method"], cancel["method"]) == ("roots/list", "notifications/cancelled")
    assert stage.runtime.slept == [60.0]
    (warning,) = stage.runtime.warnings
    assert CallTimeout.__name__ in warning
    assert stage.service.idle


def test_client_that_did_not_declare_roots_is_not_asked_for_them() -> None:
    peer = Peer(DIALECTS[D], ClientCapabilities())
    request = _RootsRequest(_Sender(SimpleNamespace(), peer))
    with pytest.raises(McpError, match="needs a client that declares"):
        request._make_requests()


def test_error_of_the_client_is_raised_in_the_hook() -> None:
    """A client that can't list its roots answers with an error, which the hook may catch."""
    server = Server("s")
    errors: list[McpError] = []

    @server.on_roots_changed
    async def rescan(context: RootsContext) -> None:
        try:
            await context.roots()
        except McpError as exc:
            errors.append(exc)

    stage = ScriptedClient(server, D, OFFERS)
    stage.runtime.time_passes = False
    stage.receive(CHANGED)
    (request,) = stage.sent_messages()
    stage.receive(error(request["id"], -32603, "no disk"))
    (caught,) = errors
    assert "no disk" in str(caught)


def test_end_of_the_connection_ends_the_hook_without_a_log_entry() -> None:
    hooked = Hooked()
    stage = hooked.stage()
    stage.receive(CHANGED)
    ((job, _),) = stage.running
    stopped: list[bool] = []
    job.stop = lambda: stopped.append(True)
    stage.conn.receive_data(b"", 0.0)
    stage.run_jobs()
    assert stopped == [True]
    assert stage.service.idle
    assert not stage.runtime.warnings


def test_stop_cancels_a_hook() -> None:
    stage = Hooked().stage()
    stage.receive(CHANGED)
    ((job, _),) = stage.running
    stopped: list[bool] = []
    job.stop = lambda: stopped.append(True)
    stage.service.stop()
    job.dropped()
    assert stopped == [True]
    assert stage.service.idle


@pytest.mark.parametrize("hook", [lambda: None, lambda a, b: None, 7])
def test_hook_without_one_parameter_is_refused(hook: Any) -> None:
    with pytest.raises(DeclarationError, match="function of one parameter, its RootsContext"):
        Server("s").on_roots_changed(hook)
