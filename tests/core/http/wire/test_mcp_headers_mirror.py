"""Mirrored headers: what a client sends, what a server rejects, and that the two agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import DIALECTS, Method, Role
from mcp_core.http.wire._mcp_headers import RequestHeaderValidator, request_headers
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.protocol.revisions._methods import METHODS
from mcp_core.types import CallToolParams, GetTaskParams, ReadResourceParams

VERSION = "2026-07-28"
ROWS: dict[str, Method] = DIALECTS[VERSION].receives[Role.SERVER]
HEAD = [
    (b"mcp-protocol-version", VERSION.encode()),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", b"query"),
]
MAP = {("region",): "Region", ("limit",): "Limit", ("deep", "dry"): "Dry-Run"}


def mirrored(name: str) -> dict[tuple[str, ...], str] | None:
    return {"query": MAP, "plain": {}}.get(name)


def head_of(
    headers: list[tuple[bytes, bytes]], method: str, params: Any, version: str = VERSION
) -> str | None:
    raw = params if isinstance(params, bytes) else encode(params)
    return RequestHeaderValidator([(b"host", b"x"), *headers], mirrored).check_head(
        method, version, ROWS.get(method), raw
    )


def params_of(
    headers: list[tuple[bytes, bytes]], arguments: Any, tool: str = "query"
) -> str | None:
    row = ROWS["tools/call"]
    params = {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}
    mirror = RequestHeaderValidator([(b"host", b"x"), *HEAD, *headers], mirrored)
    return mirror.check_params(row, row.read_params(encode(params)))


# -- Version, method and name --------------------------------------------------------------------


def head(
    version: bytes | None = b"2026-07-28",
    method: bytes | None = b"tools/call",
    name: bytes | None = b"query",
) -> Any:
    found = [(b"mcp-protocol-version", version), (b"mcp-method", method), (b"mcp-name", name)]
    return [(key, value) for key, value in found if value is not None]


CALL = ("tools/call", {"name": "query"})
READ = ("resources/read", {"uri": "file:///é"})
# headers, method, params, error text
HEADS: list[Any] = [
    pytest.param(HEAD, *CALL, None, id="right"),
    pytest.param(
        head(version=b" 2026-07-28\t", method=b"tools/call ", name=b"  query  "),
        *CALL,
        None,
        id="spaces",
    ),
    pytest.param(head(name=b"=?base64?cXVlcnk=?="), *CALL, None, id="encoded without need"),
    pytest.param(
        head(method=b"resources/read", name=b"=?base64?ZmlsZTovLy/DqQ==?="),
        *READ,
        None,
        id="encoded",
    ),
    pytest.param(
        head(method=b"tools/list", name=None), "tools/list", {}, None, id="no name needed"
    ),
    pytest.param(
        head(method=b"tools/list", name=b"x"), "tools/list", {}, None, id="an unneeded name"
    ),
    pytest.param(head(method=b"acme/x", name=None), "acme/x", {}, None, id="an unknown method"),
    pytest.param(
        head(method=b"tasks/get", name=b"t-1"),
        "tasks/get",
        {"taskId": "t-1"},
        None,
        id="the name of a task",
    ),
    # Missing headers.
    pytest.param(head(version=None), *CALL, "MCP-Protocol-Version is missing", id="no version"),
    pytest.param(head(method=None), *CALL, "Mcp-Method is missing", id="no method"),
    pytest.param(head(name=None), *CALL, "Mcp-Name is missing", id="no name"),
    pytest.param(
        head(method=None),
        "acme/x",
        {},
        "Mcp-Method is missing",
        id="no method header, unknown method",
    ),
    # Different values.
    pytest.param(
        head(version=b"2025-11-25"),
        *CALL,
        "MCP-Protocol-Version is '2025-11-25', but the body has '2026-07-28'",
        id="another version",
    ),
    pytest.param(
        head(method=b"prompts/list"),
        *CALL,
        "Mcp-Method is 'prompts/list', but the body has 'tools/call'",
        id="another method",
    ),
    pytest.param(
        head(method=b"TOOLS/CALL"), *CALL, "Mcp-Method is 'TOOLS/CALL', but", id="upper case"
    ),
    pytest.param(
        head(method=b"tasks/get"), *CALL, "Mcp-Method is 'tasks/get', but", id="a task's method"
    ),
    pytest.param(
        head(name=b"wrong"),
        *CALL,
        "Mcp-Name is 'wrong', but the body has 'query'",
        id="another name",
    ),
    pytest.param(head(name=b"Query"), *CALL, "Mcp-Name is 'Query', but", id="a name in upper case"),
    pytest.param(head(name=b""), *CALL, "Mcp-Name is '', but", id="an empty name"),
    pytest.param(
        head(method=b"tasks/get", name=b"t-2"),
        "tasks/get",
        {"taskId": "t-1"},
        "Mcp-Name is 't-2'",
        id="another task",
    ),
    pytest.param(
        head(name=b"x" * 1000),
        *CALL,
        f"Mcp-Name is '{'x' * 64}', but the body has 'query'",
        id="long",
    ),
    # Malformed values.
    pytest.param(
        head(name=b"=?base64?cXVlcnk?="),
        *CALL,
        "Mcp-Name is malformed: it is marked as base64",
        id="padding",
    ),
    pytest.param(
        head(name=b"qu\xc3\xa9ry"),
        *CALL,
        "Mcp-Name is malformed: it has characters",
        id="not ASCII",
    ),
    pytest.param(
        head(method="é/x".encode()),
        "é/x",
        {},
        r"Mcp-Method is '\\xc3\\xa9/x', but",
        id="a method that is not ASCII",
    ),
    pytest.param(
        head(method=b"=?base64?dG9vbHMvY2FsbA==?="),
        *CALL,
        "Mcp-Method is '=?base64",
        id="a method has no encoding",
    ),
    # An invalid body, which is reported elsewhere.
    pytest.param(head(), "tools/call", {}, None, id="a body without the name"),
    pytest.param(head(), "tools/call", {"name": 5}, None, id="a body with a number as the name"),
    pytest.param(head(), "tools/call", b"[]", None, id="params that are no object"),
]


@pytest.mark.requirement("HDR-6")
@pytest.mark.parametrize(("headers", "method", "params", "problem"), HEADS)
def test_check_head_compares_version_method_and_name(
    headers: Any, method: str, params: Any, problem: str | None
) -> None:
    found = head_of(headers, method, params)
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(f"Header mismatch: {problem}")


@pytest.mark.requirement("HDR-17")
@pytest.mark.parametrize("header", HEAD)
@pytest.mark.parametrize("second", [b"", b"other"])
def test_check_head_repeated_header_is_mismatch(header: tuple[bytes, bytes], second: bytes) -> None:
    name, value = header
    found = head_of([*HEAD, (name, second or value)], *CALL)
    assert found is not None
    assert found.endswith(" stands more than once")
    found = head_of([(name, second or value), *HEAD], *CALL)
    assert found is not None
    assert found.endswith(" stands more than once")


def test_check_head_repeated_unused_name_is_ignored() -> None:
    twice = [*head(method=b"tools/list"), (b"mcp-name", b"x")]
    assert head_of(twice, "tools/list", {}) is None


@pytest.mark.parametrize(
    "params",
    [
        b'{"name":"query","uri":1e999}',
        b'{"uri":' + b"[" * 900 + b"]" * 900 + b',"name":"query"}',
        b'{"name":"query","taskId":5}',
        b'{"name":"other","name":"query"}',
    ],
)
def test_check_head_finds_name_beside_other_members(params: bytes) -> None:
    assert ROWS["tools/call"].read_params(params).name == "query"
    assert head_of(HEAD, "tools/call", params) is None
    found = head_of(head(name=b"other"), "tools/call", params)
    assert found is not None


# -- Arguments -----------------------------------------------------------------------------------

REGION = (b"mcp-param-region", b"eu")
ABSENT = pytest.mark.requirement("HDR-10")
# headers, arguments, error text
PARAMS: list[Any] = [
    pytest.param([], {}, None, id="nothing"),
    pytest.param([], None, None, id="no arguments"),
    pytest.param([REGION], {"region": "eu"}, None, id="right"),
    pytest.param([(b"mcp-param-region", b" eu ")], {"region": "eu"}, None, id="spaces"),
    pytest.param([(b"mcp-param-region", b"")], {"region": ""}, None, id="empty"),
    pytest.param(
        [(b"mcp-param-region", b"=?base64?SGVsbG8=?=")], {"region": "Hello"}, None, id="encoded"
    ),
    pytest.param(
        [(b"mcp-param-region", b"SGVsbG8=")],
        {"region": "SGVsbG8="},
        None,
        id="base64 that is meant",
    ),
    pytest.param(
        [(b"mcp-param-region", b"=?base64?SGVsbG8=")],
        {"region": "=?base64?SGVsbG8="},
        None,
        id="half marked",
    ),
    pytest.param([(b"mcp-param-limit", b"42")], {"limit": 42}, None, id="an integer"),
    pytest.param([(b"mcp-param-limit", b"42.0")], {"limit": 42}, None, id="as a number"),
    pytest.param([(b"mcp-param-dry-run", b"true")], {"deep": {"dry": True}}, None, id="inside"),
    pytest.param([(b"mcp-param-other", b"x"), (b"mcp-param-other", b"y")], {}, None, id="not ours"),
    pytest.param([], {"region": None, "deep": {}}, None, id="null"),
    pytest.param([], {"region": ["eu"]}, None, id="what no header can say is not expected in one"),
    pytest.param([], ["eu"], None, id="arguments that are no object"),
    # Missing or additional headers.
    pytest.param([], {"region": "eu"}, "Mcp-Param-Region is missing", id="missing", marks=ABSENT),
    pytest.param(
        [], {"region": ""}, "Mcp-Param-Region is missing", id="missing although empty", marks=ABSENT
    ),
    pytest.param(
        [],
        {"deep": {"dry": False}},
        "Mcp-Param-Dry-Run is missing",
        id="missing inside",
        marks=ABSENT,
    ),
    pytest.param(
        [REGION],
        {},
        "Mcp-Param-Region is there, but argument 'region' has no value",
        id="no argument",
    ),
    pytest.param([REGION], None, "Mcp-Param-Region is there, but", id="no arguments at all"),
    pytest.param(
        [REGION], {"region": None}, "Mcp-Param-Region is there, but", id="null in the body"
    ),
    pytest.param(
        [(b"mcp-param-dry-run", b"true")],
        {"deep": 1},
        "Mcp-Param-Dry-Run is there, but argument 'deep.dry'",
        id="no object on the path",
    ),
    # Different values.
    pytest.param(
        [REGION], {"region": "us"}, "Mcp-Param-Region is 'eu', but the body has 'us'", id="other"
    ),
    pytest.param([REGION], {"region": "EU"}, "Mcp-Param-Region is 'eu', but", id="upper case"),
    pytest.param(
        [(b"mcp-param-limit", b"41")],
        {"limit": 42},
        "Mcp-Param-Limit is '41', but",
        id="other number",
    ),
    pytest.param(
        [(b"mcp-param-limit", b"042")],
        {"limit": 42},
        "Mcp-Param-Limit is '042', but",
        id="odd number",
    ),
    pytest.param(
        [(b"mcp-param-dry-run", b"True")],
        {"deep": {"dry": True}},
        "Mcp-Param-Dry-Run is 'True'",
        id="True",
    ),
    pytest.param(
        [REGION],
        {"region": ["eu"]},
        "Mcp-Param-Region is 'eu', but the body has no such value",
        id="a list",
    ),
    # Malformed values.
    pytest.param(
        [(b"mcp-param-region", b"=?base64?SGVsbG8?=")],
        {"region": "Hello"},
        "Mcp-Param-Region is malformed",
        id="padding",
    ),
    pytest.param(
        [(b"mcp-param-region", b"=?base64?SGVs!!!bG8=?=")],
        {"region": "Hello"},
        "Mcp-Param-Region is malformed",
        id="alphabet",
    ),
    pytest.param(
        [(b"mcp-param-region", b"\xe9")],
        {"region": "é"},
        "Mcp-Param-Region is malformed",
        id="not ASCII",
    ),
    pytest.param(
        [(b"mcp-param-limit", b"9007199254740993")],
        {"limit": 2**53 + 1},
        "an integer beyond 2^53-1 cannot be mirrored in a header: argument 'limit'",
        id="an integer that some read as another",
    ),
]


@pytest.mark.requirement("HDR-9")
@pytest.mark.parametrize(("headers", "arguments", "problem"), PARAMS)
def test_check_params_compares_arguments(headers: Any, arguments: Any, problem: str | None) -> None:
    found = params_of(headers, arguments)
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(f"Header mismatch: {problem}")


@pytest.mark.requirement("HDR-17")
@pytest.mark.parametrize("arguments", [{"region": "eu"}, {"region": None}, {}])
def test_check_params_repeated_header_is_mismatch(arguments: Any) -> None:
    found = params_of([REGION, REGION], arguments)
    assert found == "Header mismatch: Mcp-Param-Region stands more than once"


def test_check_params_undecodable_arguments_are_mismatch() -> None:
    mirror = RequestHeaderValidator(HEAD, mirrored)
    params = ROWS["tools/call"].read_params(b'{"name":"query","arguments":{"region":1e999}}')
    found = mirror.check_params(ROWS["tools/call"], params)
    assert found is not None
    assert found.startswith("Header mismatch: the arguments cannot be read: ")


@pytest.mark.parametrize("tool", ["plain", "unknown"])
def test_check_params_tool_without_mirrored_headers_is_ignored(tool: str) -> None:
    assert params_of([REGION, REGION, (b"mcp-param-x", b"\xff")], {"region": "us"}, tool) is None


def test_check_params_other_methods_are_ignored() -> None:
    mirror = RequestHeaderValidator([*HEAD, REGION], mirrored)
    row = ROWS["resources/read"]
    assert mirror.check_params(row, row.read_params(b'{"uri":"query"}')) is None


def test_header_validator_repr_counts_headers() -> None:
    assert (
        repr(
            RequestHeaderValidator([(b"host", b"x"), *HEAD, REGION, (b"mcp-params", b"")], mirrored)
        )
        == "<RequestHeaderValidator of 4 headers>"
    )


# -- The client side -----------------------------------------------------------------------------

SAID: list[Any] = [
    pytest.param("tools/call", {"name": "query"}, [b"query"], id="a tool"),
    pytest.param("tools/call", CallToolParams(name="query"), [b"query"], id="a tool, typed"),
    pytest.param("prompts/get", {"name": "é"}, [b"=?base64?w6k=?="], id="a prompt"),
    pytest.param("resources/read", {"uri": "file:///a%20b"}, [b"file:///a%20b"], id="a resource"),
    pytest.param(
        "resources/read",
        ReadResourceParams(uri="x: "),
        [b"=?base64?eDog?="],
        id="a resource, typed",
    ),
    pytest.param("tasks/get", {"taskId": "t-1"}, [b"t-1"], id="a task"),
    pytest.param("tasks/get", GetTaskParams(task_id="t-1"), [b"t-1"], id="a task, typed"),
    pytest.param("tasks/update", {"taskId": "t-1"}, [b"t-1"], id="an update of a task"),
    pytest.param("tools/list", {"name": "x"}, [], id="what has no name"),
    pytest.param("server/discover", None, [], id="no params"),
    pytest.param("tools/call", None, [], id="no params where there should be some"),
    pytest.param("tools/call", {"name": 5}, [], id="no name where there should be one"),
    pytest.param("notifications/cancelled", {"requestId": 1}, [], id="a notification"),
]


@pytest.mark.parametrize(("method", "params", "names"), SAID)
def test_request_headers_name_version_method_and_target(
    method: str, params: Any, names: list[bytes]
) -> None:
    version, method_header, *rest = request_headers(ROWS[method], params, VERSION)
    assert version == (b"mcp-protocol-version", b"2026-07-28")
    assert method_header == (b"mcp-method", method.encode())
    assert rest == [(b"mcp-name", name) for name in names]


ARGUMENTS = {"region": "a\nb", "limit": 42, "deep": {"dry": False}, "other": "x"}
IN_HEADERS = [
    (b"mcp-param-region", b"=?base64?YQpi?="),
    (b"mcp-param-limit", b"42"),
    (b"mcp-param-dry-run", b"false"),
]


@pytest.mark.parametrize(
    "params",
    [
        {"name": "query", "arguments": ARGUMENTS},
        CallToolParams(
            name="query",
            arguments=ROWS["tools/call"]
            .read_params(encode({"name": "", "arguments": ARGUMENTS}))
            .arguments,
        ),
    ],
)
def test_request_headers_mirror_arguments(params: Any) -> None:
    assert request_headers(ROWS["tools/call"], params, VERSION, MAP)[3:] == IN_HEADERS


def test_request_headers_without_arguments_mirror_nothing() -> None:
    for params in (
        {"name": "query"},
        {"name": "query", "arguments": None},
        CallToolParams(name="query"),
    ):
        assert request_headers(ROWS["tools/call"], params, VERSION, MAP)[3:] == []


@pytest.mark.parametrize("method", ["é/x", "a\nb", " a", "", "=?base64?x?=", "\ud800"])
def test_request_headers_unencodable_method_raises(method: str) -> None:
    row = Method(method, Role.SERVER, CallToolParams)
    if not method:
        assert request_headers(row, {}, VERSION)[1] == (b"mcp-method", b"")
        return
    with pytest.raises(ValueError, match=r"cannot be sent in a header|surrogates not allowed"):
        request_headers(row, {}, VERSION)


def test_request_headers_unsafe_integer_raises() -> None:
    with pytest.raises(ValueError, match="cannot be mirrored"):
        request_headers(
            ROWS["tools/call"], {"name": "query", "arguments": {"limit": 2**53}}, VERSION, MAP
        )


# -- Both sides ----------------------------------------------------------------------------------

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(
    name=_TEXT,
    arguments=st.fixed_dictionaries(
        {},
        optional={
            "region": st.none() | _TEXT,
            "limit": st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e6, 1e6) | st.none(),
            "deep": st.none()
            | st.fixed_dictionaries({}, optional={"dry": st.booleans() | st.lists(st.none())}),
        },
    ),
)
def test_request_headers_satisfy_server_check(name: str, arguments: Any) -> None:
    row = ROWS["tools/call"]
    params = {"name": name, "arguments": arguments}
    raw = encode(params)
    mirror = RequestHeaderValidator(request_headers(row, params, VERSION, MAP), lambda tool: MAP)
    assert mirror.check_head("tools/call", VERSION, row, raw) is None
    assert mirror.check_params(row, row.read_params(raw)) is None


@pytest.mark.parametrize("row", [row for row in METHODS if row.name_field], ids=repr)
def test_request_headers_match_for_every_named_method(row: Method) -> None:
    """Rows of all revisions, because a server finds a row by the method's name only."""
    wire = {"name": "name", "uri": "uri", "task_id": "taskId"}[row.name_field]
    headers = request_headers(row, {wire: "x"}, VERSION)
    assert headers[2] == (b"mcp-name", b"x")
    mirror = RequestHeaderValidator(headers, mirrored)
    assert mirror.check_head(row.name, VERSION, row, encode({wire: "x"})) is None
    assert mirror.check_head(row.name, VERSION, row, encode({wire: "y"})) is not None
