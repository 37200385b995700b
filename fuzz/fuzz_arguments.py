# Invariant: for any arguments of a tool, a prompt or a resource, the request gets one response: a
# result, or -32602 (for a resource: the code of its revision for "not found"). The function sees
# only values of the types that it declares. No exception leaks, neither out of the connection nor
# into the log.
"""A `Server` with many kinds of parameters, reached by whole messages through a `Connection` and a
`Service`.

Each function checks its arguments with plain `isinstance`. A value of a wrong type is therefore an
exception in a handler, which would be logged.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, NoReturn, TypeAlias, TypedDict

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import Struct

from fuzz.reference_parser import classify
from fuzz.targets import Target
from mcp_core import (
    ALL,
    DIALECTS,
    NEED_DATA,
    Connection,
    Fault,
    MessageRejected,
    Peer,
    RequestReceived,
    Role,
)
from mcp_core.registry import Server
from mcp_core.runtime import Runtime, Service
from mcp_trio.oracle.strategies._messages import CLIENT_CAPABILITIES, meta_of
from mcp_trio.oracle.strategies._mutations import damage, damaged
from mcp_trio.oracle.strategies._values import encoded, json_objects, json_values, texts, weighted

# revision; method; name or URI; the encoded arguments, None for none
Case: TypeAlias = tuple[str, str, str, bytes | None]

# -- The server ------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Place(Struct):
    name: str
    point: Point | None = None
    tags: list[str] = []


class Options(TypedDict, total=False):
    deep: bool
    limit: int


Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10)]
Short: TypeAlias = Annotated[str, msgspec.Meta(max_length=3, pattern="^[a-z]*$")]

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 0, "multipleOf": 2},
        "tree": {"$ref": "#/$defs/tree"},
        "kind": {"enum": ["a", 1, None, {"b": 2}]},
        "word": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "any": {"oneOf": [{"type": "string"}, {"type": "number"}, {"const": None}]},
    },
    "patternProperties": {"^x-": {"type": "boolean"}},
    "required": ["n"],
    "additionalProperties": False,
    "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
}


def _is(value: Any, *kinds: type) -> Any:
    assert isinstance(value, kinds), f"{value!r} is no {kinds}"
    # In Python a bool is an int; in JSON Schema it is not.
    assert not isinstance(value, bool) or bool in kinds, f"{value!r} is no {kinds}"
    return value


def text(a: str, b: str = "x", c: str | None = None) -> str:
    """Texts."""
    _is(a, str)
    _is(b, str)
    _is(c, str, type(None))
    return f"{a}{b}{c}"


def numbers(a: int, b: float, c: bool, d: int | float | None = None, e: Positive = 1) -> float:  # noqa: PYI041 - users write it
    """Numbers."""
    _is(a, int)
    _is(b, float, int)
    _is(c, bool)
    _is(d, int, float, type(None))
    assert 1 <= _is(e, int) <= 10
    return a if c else 0.5


def choices(a: Literal["x", 1, None], b: Colour, c: Level = Level.LOW, d: Short = "") -> Colour:  # noqa: PYI061 - users write it
    """Choices."""
    assert a in ("x", 1, None)
    _is(b, Colour)
    _is(c, Level)
    assert len(_is(d, str)) <= 3
    return b


def lists(
    a: list[int],
    b: tuple[str, int] | None = None,
    c: set[str] | None = None,
    d: dict[str, float] | None = None,
) -> list[int]:
    """Lists."""
    assert all(type(item) is int for item in _is(a, list))
    if b is not None:
        assert len(_is(b, tuple)) == 2
    assert all(isinstance(item, str) for item in c or ())
    assert all(isinstance(item, float | int) for item in (d or {}).values())
    return a


def objects(
    a: Point, b: Place | None = None, c: Options | None = None, d: list[Point] | None = None
) -> Point:
    """Objects."""
    _is(_is(a, Point).x, int)
    if b is not None:
        _is(_is(b, Place).name, str)
    if c is not None:
        _is(c.get("limit", 0), int)
    assert all(isinstance(item, Point) for item in d or ())
    return a


def exotic(
    a: dt.datetime | None = None,
    b: dt.date | None = None,
    c: uuid.UUID | None = None,
    d: Decimal | None = None,
    e: bytes | None = None,
    f: dt.timedelta | None = None,
    g: dt.time | None = None,
) -> str:
    """Types that JSON does not have."""
    _is(a, dt.datetime, type(None))
    _is(b, dt.date, type(None))
    _is(c, uuid.UUID, type(None))
    _is(d, Decimal, type(None))
    _is(e, bytes, type(None))
    _is(f, dt.timedelta, type(None))
    _is(g, dt.time, type(None))
    return "ok"


def anything(a: Any = None, b: dict[str, Any] | None = None, c_: Any = None, from_: int = 0):  # type: ignore[no-untyped-def]
    """Anything."""
    _is(b, dict, type(None))
    _is(from_, int)
    return {"a": a, "b": b}


def none() -> None:
    """No arguments."""


def given(values: dict[str, Any]) -> dict[str, Any]:
    """A schema of its own."""
    assert _is(values["n"], int, float) % 2 == 0
    return values


def ask(a: str, b: int, c: bool = False, d: list[int] | None = None, e: Colour = Colour.RED) -> str:
    """A prompt."""
    _is(a, str)
    _is(b, int)
    _is(c, bool)
    assert all(type(item) is int for item in d or ())
    _is(e, Colour)
    return a


def read(city: str, days: int = 1, tags: list[str] | None = None) -> str:
    """A resource."""
    assert city and not set(_is(city, str)) & {"/", "\\", "\0"}
    _is(days, int)
    return city


def file(path: str) -> bytes:
    """A file."""
    assert ".." not in _is(path, str).replace("\\", "/").split("/")
    return path.encode()


@functools.cache
def _server() -> Server:
    server = Server("fuzz", versions=ALL)
    for function in (text, numbers, choices, lists, objects, exotic, anything, none):
        server.add_tool(function)
    server.add_tool(given, input_schema=SCHEMA)
    server.add_prompt(ask)
    server.add_resource("weather://{city}/now{?days,tags*}", read)
    server.add_resource("file:///{+path}", file)
    server.add_resource("fixed:x", lambda: "x", name="fixed")
    return server


TOOLS: Final = tuple(
    "text numbers choices lists objects exotic anything none given unknown".split()
)

# -- One request -----------------------------------------------------------------------------------


def check(case: Case) -> Iterable[str]:
    version, method, name, arguments = case
    server = _server()
    requested = method if method == "resources/read" else f"{method} {name}"
    dialect = DIALECTS[version]
    peer = Peer(dialect, CLIENT_CAPABILITIES) if dialect.stateful else None
    conn = Connection(Role.SERVER, server.config(), peer=peer)
    service = Service(server, conn, _Runtime())
    message = _message(version, method, name, arguments)
    classified = classify(message)
    conn.receive_message(message, 0.0)
    rejected = False
    while (event := conn.next_event()) is not NEED_DATA:
        rejected = rejected or isinstance(event, MessageRejected)
        if isinstance(event, RequestReceived):
            assert service.handle_event(event) is None, "a plain function needs no job"
    answers = [json.loads(sent.data) for sent in conn.messages_to_send()]
    assert len(answers) == 1, f"{len(answers)} answers"
    (answer,) = answers
    if classified.kind == "request":
        assert answer["id"] == 7
    if "error" in answer:
        code = answer["error"]["code"]
        allowed = {dialect.codes[Fault.INVALID_PARAMS]}
        if method == "resources/read":
            allowed.add(dialect.codes[Fault.RESOURCE_NOT_FOUND])
        if classified.kind != "request":
            allowed |= {dialect.codes[Fault.INVALID_REQUEST], dialect.codes[Fault.PARSE]}
        assert code in allowed, answer
        yield f"{requested}: {code}, {'rejected' if rejected else 'answered'}"
        yield f"{code}: {' '.join(answer['error']['message'].split()[:2])}"
    else:
        is_error = answer["result"].get("isError", False)
        if is_error:
            assert dialect.tool_argument_errors_are_results
            error_text = answer["result"]["content"][0]["text"]
            yield f"{name} error: {' '.join(error_text.split()[:2])}"
        yield f"{requested}: {'isError' if is_error else 'result'}"
    assert conn.in_flight == 0
    assert service.idle


def _message(version: str, method: str, name: str, arguments: bytes | None) -> bytes:
    members = [b'"%b":%b' % (b"uri" if method == "resources/read" else b"name", encoded(name))]
    if arguments is not None:
        members.append(b'"arguments":%b' % arguments)
    if not DIALECTS[version].stateful:
        members.append(b'"_meta":%b' % encoded(meta_of(version)))
    return b'{"jsonrpc":"2.0","id":7,"method":%b,"params":{%b}}' % (
        encoded(method),
        b",".join(members),
    )


class _Runtime(Runtime):
    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> NoReturn:
        raise AssertionError(f"an unexpected exception in a handler: {exc!r}") from exc


# -- Cases -----------------------------------------------------------------------------------------

_ODD: Final = (
    *(b"null", b"[]", b"1", b'"x"', b"{}", b"{", b'{"a":1,"a":2}', b'{"a":1e400}', b'{"a":NaN}'),
    b'{"n":4.0}',
    *(
        b'{"a":3.0,"b":1,"c":true}',
        b'{"a":1e22,"b":0,"c":false}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
    ),
    b'{"a":' + b"[" * 2_000 + b"]" * 2_000 + b"}",
    b'{"n":2,"tree":' + b"[" * 80 + b"]" * 80 + b"}",
    b'{"a":1' + b"0" * 400 + b"}",
)


_PLAUSIBLE: Final[tuple[Any, ...]] = (
    *("x", "abc", "red", "blue", "aGk=", "1.50", 1, 2, 3.0, 2.5, -1, True, False, None),
    *(
        "2026-07-28",
        "2026-07-28T10:00:00Z",
        "10:00:00",
        "P1D",
        "00000000-0000-0000-0000-000000000000",
    ),
    *([1, 2], ["a", 1], [[]], [{"x": 1}], {"x": 1}, {"x": 1.0, "y": 2}, {"limit": 3}, {"a": 1.5}),
    {"name": "n", "point": {"x": 1}},
)


def _plausible() -> SearchStrategy[Any]:
    return st.one_of(json_values(1), st.sampled_from(_PLAUSIBLE))


def _arguments() -> SearchStrategy[bytes | None]:
    names = st.sampled_from([*"abcdefn", "tree", "kind", "word", "any", "x-1", "from", "c_", "zz"])
    likely = st.dictionaries(st.sampled_from("abcde"), _plausible(), max_size=5)
    other = st.dictionaries(names, _plausible(), max_size=4)
    given = st.builds(lambda some: {"n": 2, **some}, other)
    made = weighted((4, likely), (1, other), (2, given), (1, json_objects())).map(encoded)
    return weighted(
        (6, made),
        (1, damaged(made)),
        (1, st.sampled_from(_ODD)),
        (1, json_values().map(encoded)),
        (1, st.none()),
    )


def _prompt_arguments() -> SearchStrategy[bytes | None]:
    some = st.sampled_from(
        ("1", "2.0", "true", "False", "[1,2]", "[", "red", "null", "1e3", "-0", " 1", "٣")
    )
    made = st.dictionaries(st.sampled_from("abcde"), st.one_of(texts(), some), max_size=5).map(
        encoded
    )
    return weighted((4, made), (1, damaged(made)), (1, _arguments()))


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    versions = st.sampled_from(ALL)
    tool = st.tuples(versions, st.just("tools/call"), st.sampled_from(TOOLS), _arguments())
    prompts = st.sampled_from(("ask", "ask", "?"))
    prompt = st.tuples(versions, st.just("prompts/get"), prompts, _prompt_arguments())
    resource = st.tuples(versions, st.just("resources/read"), _uris(), st.none())
    made = weighted((4, tool), (1, prompt), (1, resource))
    if not seeds:
        return made

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        version, method, name, arguments = draw(st.sampled_from(seeds))
        if arguments is not None:
            arguments = damage(draw, arguments)
        return draw(versions) if draw(st.booleans()) else version, method, name, arguments

    return weighted((3, made), (1, recorded()))


def _uris() -> SearchStrategy[str]:
    pieces = st.sampled_from(
        (
            *(
                "weather://",
                "file:///",
                "fixed:x",
                "Oslo",
                "/now",
                "?days=",
                "3",
                "&tags=",
                "a",
                "days",
            ),
            *(
                "/",
                "\\",
                ".",
                "..",
                "?",
                "&",
                "#",
                "=",
                "é",
                "%",
                "%2F",
                "%2e%2e",
                "%00",
                "%C3%A9",
                "%FF",
            ),
            "x" * 100,
        )
    )
    found: Callable[[list[str]], str] = "".join
    return st.one_of(
        st.lists(pieces, max_size=6).map(found),
        texts(4).map(lambda city: f"weather://{city}/now?days=2"),
        texts(6).map(lambda path: f"file:///{path}"),
    )


TARGET: Final = Target("arguments", cases, check)
