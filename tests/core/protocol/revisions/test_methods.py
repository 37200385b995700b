"""The table of methods against the unions of the schemas, which are repeated here by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Struct

from mcp_core import DIALECTS, Method, Role
from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.protocol.revisions._methods import INPUTS, METHODS, Step
from tests.harness.jsonrpc import (
    STATEFUL,
    STATELESS,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
)

SERVER, CLIENT = Role.SERVER, Role.CLIENT

# The receivers by method, and the revisions: letters from A (2024-11-05) to E (2026-07-28).
REQUESTS = """
SERVER ABCD. initialize
SERVER ....E server/discover
SERVER ABCD. ping
SERVER ABCDE tools/list tools/call
SERVER ABCDE resources/list resources/templates/list resources/read
SERVER ABCD. resources/subscribe resources/unsubscribe
SERVER ABCDE prompts/list prompts/get
SERVER ABCDE completion/complete
SERVER ABCD. logging/setLevel
SERVER ....E subscriptions/listen
SERVER ...DE tasks/get tasks/cancel
SERVER ...D. tasks/result tasks/list
SERVER ....E tasks/update
CLIENT ABCD. ping
CLIENT ABCD. sampling/createMessage roots/list
CLIENT ..CD. elicitation/create
CLIENT ...D. tasks/get tasks/result tasks/list tasks/cancel
"""
NOTIFICATIONS = """
SERVER ABCD. initialized
SERVER ABCDE cancelled
SERVER ABCD. progress
SERVER ABCD. roots/list_changed
SERVER ...D. tasks/status
CLIENT ABCDE cancelled
CLIENT ABCDE progress message
CLIENT ABCDE tools/list_changed prompts/list_changed resources/list_changed resources/updated
CLIENT ...D. elicitation/complete
CLIENT ...D. tasks/status
CLIENT ....E subscriptions/acknowledged
CLIENT ....E tasks
"""


def expected(version: str, role: Role) -> tuple[set[str], set[str]]:
    """Return the names of the requests and of the notifications."""
    letter = "ABCDE"[VERSIONS.index(version)]

    def read(table: str, prefix: str) -> set[str]:
        lines = [line.split() for line in table.strip().splitlines()]
        return {
            prefix + name
            for to, letters, *names in lines
            if Role[to] is role and letter in letters
            for name in names
        }

    return read(REQUESTS, ""), read(NOTIFICATIONS, "notifications/")


@pytest.mark.requirement("PING-1", "PING-5", "PROG-8", "RPC-28", "STDIO-7")
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("version", VERSIONS)
def test_methods_receivers_match_schemas(version: str, role: Role) -> None:
    rows = DIALECTS[version].receives[role]
    requests = {name for name, row in rows.items() if row.result is not None}
    assert (requests, rows.keys() - requests) == expected(version, role)


@pytest.mark.requirement("DEC-10")
@pytest.mark.parametrize(
    "name", ["resources/search", "resources/listTemplates", "tools/execute", "roots/set"]
)
def test_methods_unknown_names_are_absent(name: str) -> None:
    assert not any(row.name == name for row in METHODS)
    assert "notifications/initialized" not in DIALECTS[D].receives[CLIENT]


@pytest.mark.parametrize("row", METHODS + INPUTS, ids=repr)
def test_method_rows_are_consistent(row: Method) -> None:
    assert issubclass(row.params, t.NotificationParams if row.result is None else t.RequestParams)
    assert row.has_meta is (row.result is not None)
    if row.result is not None:
        assert issubclass(row.result, t.Result)
    assert row.name.startswith("notifications/") is (row.result is None)
    fields = row.params.__struct_fields__
    assert not row.name_field or row.name_field in fields
    # A capability without a field could never be declared.
    roots: tuple[Any, ...] = (t.ClientCapabilities(), t.ServerCapabilities())
    assert not row.needs or any(hasattr(root, row.needs[0]) for root in roots)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("role", Role)
def test_method_rows_of_one_name_do_not_overlap(version: str, role: Role) -> None:
    """Otherwise the later row would hide the earlier one."""
    names = [
        row.name
        for row in METHODS
        if row.to in (role, None)
        and version in VERSIONS[VERSIONS.index(row.since) :]
        and not over(row, version)
    ]
    assert len(names) == len(set(names)) == len(DIALECTS[version].receives[role])


def over(row: Method, version: str) -> bool:
    return row.until in VERSIONS and version in VERSIONS[VERSIONS.index(row.until) :]


def test_method_rows_of_one_name_have_same_params() -> None:
    for row in METHODS:
        assert {other.params for other in METHODS if other.name == row.name} == {row.params}


STEPS = {
    "initialize": Step.INITIALIZE,
    "notifications/initialized": Step.INITIALIZED,
    "ping": Step.PING,
    # These two are legal before the handshake.
    "notifications/cancelled": Step.PING,
    "notifications/message": Step.PING,
}


def test_method_steps_match_life_cycle() -> None:
    assert {row.name: row.step for row in METHODS if row.step is not Step.WORK} == STEPS


@pytest.mark.requirement("CAP-1", "CAP-2")
@pytest.mark.parametrize(
    ("version", "role", "name", "needs"),
    [
        (A, SERVER, "completion/complete", ()),  # the revision has no capability for it
        (B, SERVER, "completion/complete", ("completions",)),
        (A, SERVER, "tools/call", ("tools",)),
        (E, SERVER, "resources/read", ("resources",)),
        (C, SERVER, "resources/subscribe", ("resources", "subscribe")),
        (A, SERVER, "prompts/get", ("prompts",)),
        (B, SERVER, "logging/setLevel", ("logging",)),
        (B, CLIENT, "sampling/createMessage", ("sampling",)),
        (C, CLIENT, "elicitation/create", ("elicitation",)),
        (D, CLIENT, "roots/list", ("roots",)),
        (D, CLIENT, "tasks/list", ("tasks", "list")),
        (D, SERVER, "tasks/cancel", ("tasks", "cancel")),
        (E, SERVER, "tasks/cancel", ("extensions", "io.modelcontextprotocol/tasks")),
        (A, SERVER, "notifications/roots/list_changed", ("roots", "list_changed")),
        (E, CLIENT, "notifications/tools/list_changed", ("tools", "list_changed")),
        (E, CLIENT, "notifications/message", ("logging",)),
        (E, SERVER, "server/discover", ()),
        (E, SERVER, "subscriptions/listen", ()),
    ],
)
def test_method_needed_capabilities(
    version: str, role: Role, name: str, needs: tuple[str, ...]
) -> None:
    assert DIALECTS[version].receives[role][name].needs == needs


def test_methods_that_may_return_input_required() -> None:
    """2026-07-28, basic/patterns/mrtr: three methods, and the input requests in their results."""
    asking = {row.name for row in METHODS if row.input_ok}
    assert asking == {"tools/call", "prompts/get", "resources/read"}
    assert {row.name for row in INPUTS} == {
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
    }
    (stateless,) = STATELESS
    assert not {row.name for row in INPUTS} & DIALECTS[stateless].receives[CLIENT].keys()
    for row in INPUTS:
        (other,) = [known for known in METHODS if known.name == row.name]
        assert (row.params, row.result, row.needs) == (other.params, other.result, other.needs)


def test_methods_that_ask_for_a_capability_of_their_sender() -> None:
    """The methods of the extension for tasks, which both sides have to declare."""
    asking = {(row.name, row.since, row.asks) for row in METHODS if row.asks}
    extension = ("extensions", "io.modelcontextprotocol/tasks")
    assert asking == {(f"tasks/{verb}", E, extension) for verb in ("get", "update", "cancel")}


def test_methods_that_may_become_a_task() -> None:
    """2025-11-25, basic/utilities/tasks, Capabilities; in the extension only the first."""
    assert {row.name: row.task_needs for row in METHODS if row.task_needs} == {
        "tools/call": ("tasks", "requests", "tools", "call"),
        "sampling/createMessage": ("tasks", "requests", "sampling", "create_message"),
        "elicitation/create": ("tasks", "requests", "elicitation", "create"),
    }
    assert not any(row.task_needs for row in INPUTS)
    with_a_task = {row.name for row in METHODS if "task" in row.params.__struct_fields__}
    assert with_a_task == {row.name for row in METHODS if row.task_needs}


def test_method_row_decodes_params_and_result() -> None:
    row = DIALECTS[D].receives[SERVER]["tools/call"]
    assert row.read_params(b'{"name":"t"}') == t.CallToolParams(name="t")
    assert row.read_result(b'{"content":[]}') == t.CallToolResult(content=[])
    with pytest.raises(InvalidPayload, match="name"):
        row.read_params(b"{}")


def test_method_row_is_made_for_custom_method() -> None:
    class Params(Struct):
        a: int

    row = Method("acme/add", SERVER, Params, t.EmptyResult)
    assert (row.since, row.needs, row.step, row.has_meta) == (A, (), Step.WORK, False)
    assert row.read_params(b'{"a":1}') == Params(1)
    with pytest.raises(AttributeError):
        row.name = "x"  # type: ignore[misc]


def test_method_row_repr_shows_name() -> None:
    rows = DIALECTS[D].receives[SERVER]
    assert repr(rows["initialize"]) == "<request initialize [2024-11-05, 2026-07-28)>"
    assert (
        repr(rows["notifications/cancelled"])
        == "<notification notifications/cancelled [2024-11-05, never)>"
    )


def test_role_other_is_the_peer() -> None:
    assert CLIENT.other is SERVER
    assert SERVER.other is CLIENT


@pytest.mark.requirement("LIFE-1")
@pytest.mark.parametrize("version", STATEFUL)
@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
def test_method_initialize_requires_three_params(version: str, missing: str) -> None:
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    read = DIALECTS[version].receives[SERVER]["initialize"].read_params
    assert read(msgspec.json.encode(params))
    del params[missing]
    with pytest.raises(InvalidPayload, match=missing):
        read(msgspec.json.encode(params))


def test_methods_that_are_not_idempotent() -> None:
    assert {row.name for row in METHODS if row.non_idempotent} == {"tools/call", "tasks/update"}


def read_or_reason(method: Method, data: bytes) -> Any:
    try:
        return method.read_params(data)
    except InvalidPayload as exc:
        return str(exc)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_params_that_are_null_are_read_as_absent_ones(method: Method) -> None:
    assert read_or_reason(method, b"null") == read_or_reason(method, b"{}")
