"""The exceptions: base classes, attributes and texts."""

from __future__ import annotations

import pickle

import pytest
from msgspec import UNSET

import mcp_core
from mcp_core import (
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    Fault,
    InvalidToolResult,
    LocalProtocolError,
    McpError,
    McpTrioError,
    PeerError,
    ProtocolError,
    RemoteProtocolError,
    ToolError,
)
from mcp_core import _errors as errors


@pytest.mark.parametrize(
    ("child", "parents"),
    [
        (ProtocolError, (McpTrioError,)),
        (LocalProtocolError, (ProtocolError,)),
        (RemoteProtocolError, (ProtocolError,)),
        (PeerError, (McpTrioError,)),
        (McpError, (McpTrioError,)),
        (ToolError, (McpTrioError,)),
        (ConnectFailed, (McpTrioError,)),
        (ConnectionLost, (McpTrioError,)),
        # `except TimeoutError` catches it too.
        (CallTimeout, (McpTrioError, TimeoutError)),
        (AuthRequired, (McpTrioError,)),
    ],
)
def test_errors_share_one_base_class(
    child: type[Exception], parents: tuple[type[Exception], ...]
) -> None:
    assert issubclass(child, parents[0])
    assert all(issubclass(child, parent) for parent in parents)


@pytest.mark.requirement("ERR-10")
def test_errors_raised_here_are_not_peer_errors() -> None:
    local = (LocalProtocolError, RemoteProtocolError, ConnectFailed, ConnectionLost, CallTimeout)
    assert not any(issubclass(error, PeerError) for error in local)
    assert not issubclass(McpError, PeerError)


def test_errors_are_exported_by_mcp_core() -> None:
    assert [
        name for name in errors.__all__ if getattr(mcp_core, name) is not getattr(errors, name)
    ] == []


@pytest.mark.parametrize("kind", [LocalProtocolError, RemoteProtocolError])
def test_protocol_error_has_fault_and_data(kind: type[ProtocolError]) -> None:
    plain = kind("no")
    assert (str(plain), plain.fault, plain.data) == ("no", Fault.INVALID_REQUEST, UNSET)
    full = kind("no", Fault.BUSY, {"after": 1})
    assert (str(full), full.fault, full.data) == ("no", Fault.BUSY, {"after": 1})


@pytest.mark.requirement("RPC-11")
@pytest.mark.parametrize("kind", [PeerError, McpError])
def test_json_rpc_error_has_code_message_data(kind: type[PeerError | McpError]) -> None:
    plain = kind(-32602, "no such tool")
    assert (plain.code, plain.message, plain.data) == (-32602, "no such tool", UNSET)
    assert str(plain) == "no such tool (-32602)"
    assert repr(plain) == f"{kind.__name__}(-32602, 'no such tool')"
    assert kind(7, "x", None).data is None  # null is not the same as absent


def test_auth_required_has_scopes_and_challenge() -> None:
    assert (AuthRequired("sign in").scopes, AuthRequired("sign in").challenge) == ((), "")
    assert AuthRequired("sign in", challenge="Bearer").challenge == "Bearer"
    assert AuthRequired("sign in", ["read", "write"]).scopes == ("read", "write")


def test_faults_have_distinct_names() -> None:
    assert len({fault.value for fault in Fault}) == len(set(Fault)) == 10


def test_single_unwraps_group_of_one() -> None:
    one, two = KeyError(), ValueError()
    both = ExceptionGroup("", [one, two])
    assert errors.single(one) is one
    assert errors.single(BaseExceptionGroup("", [ExceptionGroup("", [one])])) is one
    assert errors.single(ExceptionGroup("", [both])) is both


@pytest.mark.parametrize(
    "error",
    [
        ProtocolError("text", Fault.PARSE, {"a": 1}),
        InvalidToolResult("text", {"content": []}),
        PeerError(-32000, "text", [1]),
        McpError(-1, "text"),
        CallTimeout("text"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_error_that_is_pickled_keeps_its_text_and_attributes(error: Exception) -> None:
    """Such as between a pool of processes and the one that calls them."""
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert (str(found), vars(found)) == (str(error), vars(error))
