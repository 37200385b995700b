"""The members that a revision adds to params and results."""

from __future__ import annotations

import json
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import pytest
from msgspec import Raw

from mcp_core import DIALECTS, LocalProtocolError, Role, UnencodableValue
from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import encode_result
from mcp_core.protocol.revisions._encoding import (
    encode_params,
    encode_request_params,
    encode_result_parts,
)
from tests.harness.jsonrpc import (
    META_CAPABILITIES,
    META_CLIENT,
    META_SERVER,
    META_VERSION,
    A,
    D,
    E,
    client_config,
    server_config,
)

WHO = {
    META_VERSION: E,
    META_CAPABILITIES: {"roots": {}, "sampling": {}, "elicitation": {}},
    META_CLIENT: {"name": "client", "version": "1"},
}
SERVER_WHO = {META_SERVER: {"name": "server", "version": "2"}}
CALL = t.CallToolParams(name="t", arguments=Raw(b'{"a":1}'))
CALL_SAID = {"name": "t", "arguments": {"a": 1}}
TRACED = t.CallToolParams(name="t", meta=t.RequestMeta(traceparent="00-1", log_level="debug"))


@pytest.mark.parametrize(
    ("version", "params", "expected"),
    [
        (D, None, None),
        (D, t.PingParams(), None),
        (D, {}, None),
        (D, CALL, CALL_SAID),
        (D, {"a": 1}, {"a": 1}),
        (
            A,
            t.ProgressParams(progress_token=1, progress=2, message="m"),
            {"progressToken": 1, "progress": 2},
        ),
    ],
)
def test_encode_params_of_revision(version: str, params: Any, expected: Any) -> None:
    data = encode_params(DIALECTS[version], params)
    assert (json.loads(data) if data is not None else None) == expected


@pytest.mark.parametrize("params", [{"uri": "\ud800"}, t.ReadResourceParams(uri="\ud800")])
def test_encode_params_lone_surrogate_raises(params: Any) -> None:
    for version in D, E:
        with pytest.raises(UnencodableValue, match="uri has half of a surrogate pair"):
            encode_params(DIALECTS[version], params)


# version, params, meta, progress token, JSON
PARAMS: list[Any] = [
    (D, None, None, None, None),
    (D, CALL, None, None, CALL_SAID),
    (D, None, None, 7, {"_meta": {"progressToken": 7}}),
    (D, CALL, None, "x", CALL_SAID | {"_meta": {"progressToken": "x"}}),
    (D, CALL, {"a": 1}, None, CALL_SAID | {"_meta": {"a": 1}}),
    (D, {"b": 2}, {"a": 1}, 7, {"b": 2, "_meta": {"progressToken": 7, "a": 1}}),
    (D, {"b": 2, "_meta": {"a": 1, "c": 3}}, {"a": 0}, None, {"b": 2, "_meta": {"a": 0, "c": 3}}),
    (D, {"_meta": {"a": 1}}, None, None, {"_meta": {"a": 1}}),
    (D, {"_meta": {}}, None, None, None),
    (
        D,
        TRACED,
        {"baggage": "b"},
        7,
        {"name": "t", "_meta": {"progressToken": 7, "traceparent": "00-1", "baggage": "b"}},
    ),
    (E, None, None, None, {"_meta": WHO}),
    (E, CALL, None, None, CALL_SAID | {"_meta": WHO}),
    (E, CALL, {"a": 1}, 7, CALL_SAID | {"_meta": WHO | {"progressToken": 7, "a": 1}}),
    (E, {"_meta": {"a": 1}}, None, None, {"_meta": WHO | {"a": 1}}),
    (
        E,
        TRACED,
        None,
        None,
        {
            "name": "t",
            "_meta": WHO | {"traceparent": "00-1", "io.modelcontextprotocol/logLevel": "debug"},
        },
    ),
]


@pytest.mark.requirement("META-1", "META-6", "META-7", "META-13", "META-14")
@pytest.mark.parametrize(("version", "params", "meta", "token", "expected"), PARAMS)
def test_encode_request_params_adds_meta(
    version: str, params: Any, meta: Any, token: Any, expected: Any
) -> None:
    terms = client_config().dialect_configs[Role.CLIENT][DIALECTS[version]]
    before = deepcopy(meta), repr(params)
    data = encode_request_params(terms, params, meta, token)
    assert (
        json.loads(data, object_pairs_hook=reject_duplicates) if data is not None else None
    ) == expected
    assert (meta, repr(params)) == before


def reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


@pytest.mark.parametrize(
    ("params", "meta", "member"),
    [
        (None, {"progressToken": 1}, "progressToken"),
        (None, {META_VERSION: D}, META_VERSION),
        (None, {META_CAPABILITIES: {}}, META_CAPABILITIES),
        ({"_meta": {META_CLIENT: {}}}, None, META_CLIENT),
        (t.PingParams(meta=t.RequestMeta(progress_token=1)), None, "progressToken"),
    ],
)
@pytest.mark.parametrize("version", [D, E])
def test_encode_request_params_reserved_meta_raises(
    version: str, params: Any, meta: Any, member: str
) -> None:
    terms = client_config().dialect_configs[Role.CLIENT][DIALECTS[version]]
    with pytest.raises(LocalProtocolError, match=f"_meta.{member} is written by the connection"):
        encode_request_params(terms, params, meta, None)


DONE = {"resultType": "complete"}
TOOLS = {"tools": [], "ttlMs": 0, "cacheScope": "private"}

# version, result, JSON
RESULTS: list[Any] = [
    (D, t.EmptyResult(), {}),
    (D, t.EmptyResult(meta={"a": 1}), {"_meta": {"a": 1}}),
    (D, t.EmptyResult(result_type="complete"), {}),
    (D, {}, {}),
    (D, {"a": 1}, {"a": 1}),
    (D, Raw(b"{}"), {}),
    (D, Raw(b' {\n "a": 1 } '), {"a": 1}),
    (D, t.Implementation("n", "1"), {"name": "n", "version": "1"}),
    (E, t.EmptyResult(), DONE | {"_meta": SERVER_WHO}),
    (E, t.ListToolsResult(tools=[]), DONE | TOOLS | {"_meta": SERVER_WHO}),
    (E, t.EmptyResult(meta={"a": 1}), DONE | {"_meta": SERVER_WHO | {"a": 1}}),
    (
        E,
        t.EmptyResult(meta={META_SERVER: {"name": "other"}}),
        DONE | {"_meta": {META_SERVER: {"name": "other"}}},
    ),
    (
        E,
        t.InputRequiredResult(result_type="input_required", request_state="s"),
        {"resultType": "input_required", "requestState": "s", "_meta": SERVER_WHO},
    ),
    (
        E,
        t.EmptyResult(result_type="x", meta={"a": 1}),
        {"resultType": "x", "_meta": SERVER_WHO | {"a": 1}},
    ),
    (E, {}, DONE | {"_meta": SERVER_WHO}),
    (E, {"a": 1}, DONE | {"a": 1, "_meta": SERVER_WHO}),
    (
        E,
        MappingProxyType({"a": 1, "_meta": {"b": 2}}),
        DONE | {"a": 1, "_meta": SERVER_WHO | {"b": 2}},
    ),
    (E, {"resultType": "task"}, {"resultType": "task", "_meta": SERVER_WHO}),
    (E, {"resultType": "task", "_meta": {}}, {"resultType": "task", "_meta": SERVER_WHO}),
    (E, Raw(b"{}"), DONE | {"_meta": SERVER_WHO}),
    (E, Raw(b'{"a":1}'), DONE | {"a": 1, "_meta": SERVER_WHO}),
    (E, Raw(b"{ }"), DONE | {"_meta": SERVER_WHO}),
    (E, Raw(b' {\n"a": 1}\n'), DONE | {"a": 1, "_meta": SERVER_WHO}),
    # A Struct that is not a `Result`.
    (E, t.Implementation("n", "1"), DONE | {"name": "n", "version": "1", "_meta": SERVER_WHO}),
]


@pytest.mark.requirement("META-1", "META-10", "RPC-16", "RPC-30", "RPC-34")
@pytest.mark.parametrize(("version", "result", "expected"), RESULTS)
def test_encode_result_adds_constant_members(version: str, result: Any, expected: Any) -> None:
    terms = server_config().dialect_configs[Role.SERVER][DIALECTS[version]]
    before = repr(result)
    data = encode_result(1, *encode_result_parts(terms, result))
    assert json.loads(data, object_pairs_hook=reject_duplicates)["result"] == expected
    assert repr(result) == before
