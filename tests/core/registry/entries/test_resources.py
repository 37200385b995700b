"""Resources: their list, the lookup by URI or template, and reading."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mcp_core import Dialect, McpError
from mcp_core.registry import (
    Audio,
    Context,
    DeclarationError,
    File,
    Image,
    ResourceNotFound,
    Server,
)
from mcp_core.types import Annotations, Icon, ReadResourceResult, ResourceContents
from tests.core.registry.lookup_helpers import EVERY_DIALECT, A, C, E, answered


class Point(msgspec.Struct):
    x: int


def make() -> Server:
    server = Server("s")

    @server.resource(
        "notes://today",
        title="Today",
        mime_type="text/markdown",
        size=5,
        annotations=Annotations(priority=1.0, last_modified="2026-07-28T00:00:00Z"),
        icons=[Icon("https://example.com/i")],
        meta={"a": 1},
    )
    def today() -> str:
        """Notes of the day."""
        return "# Hi!"

    @server.resource("notes://{day}", name="notes", mime_type="text/plain")
    async def notes(day: int, context: Context) -> str:
        """Notes of a day."""
        return f"{context.request_id}: day {day!r}"

    @server.resource("notes://{word}")
    def by_word(word: str) -> str:
        if word == "none":
            raise ResourceNotFound("No such word")
        return f"word {word}"

    @server.resource("files:///{+path}{?rev}")
    def files(path: str, rev: int = 0) -> bytes:
        return f"{path}@{rev}".encode()

    @server.resource("tree://r{/parts*}")
    def tree(parts: list[str]) -> list[str]:
        return parts

    return server


@pytest.mark.requirement("RES-2", "CONT-5", "META-19")
def test_resources_list_in_each_revision() -> None:
    """Older clients don't see titles, timestamps and icons, which came with later revisions."""
    oldest = {
        "uri": "notes://today",
        "name": "today",
        "description": "Notes of the day.",
        "mimeType": "text/markdown",
        "size": 5,
        "annotations": {"priority": 1.0},
    }
    notes = {"priority": 1.0, "lastModified": "2026-07-28T00:00:00Z"}
    in_c = {**oldest, "title": "Today", "annotations": notes, "_meta": {"a": 1}}
    in_e = {**in_c, "icons": [{"src": "https://example.com/i"}]}
    for dialect, expected in ((A, oldest), (C, in_c), (E, in_e)):
        assert answered(make(), "resources/list", {}, dialect)["resources"] == [expected]
        templates = answered(make(), "resources/templates/list", {}, dialect)["resourceTemplates"]
        assert templates[0] == {
            "uriTemplate": "notes://{day}",
            "name": "notes",
            "description": "Notes of a day.",
            "mimeType": "text/plain",
        }
        assert [t["name"] for t in templates] == ["notes", "by_word", "files", "tree"]


def read(server: Server, uri: str, dialect: Dialect = E) -> Any:
    answer = answered(server, "resources/read", {"uri": uri}, dialect)
    if "contents" not in answer:
        return answer
    (contents,) = answer["contents"]
    assert contents.pop("uri") == uri
    return contents


@pytest.mark.parametrize(
    ("declared", "uri", "found"),
    [
        # What clients on the official Python SDK 1.x send for the listed `note://café`.
        ("note://café", "note://caf%C3%A9", "note://café"),
        ("note://caf%C3%A9", "note://café", "note://caf%C3%A9"),
        ("http://h/x", "HTTP://H:80/%78", "http://h/x"),
        ("http://h", "http://h/", "http://h"),
        ("Note://{word}/x", "note://a%20b/%78", "Note://a%20b/x"),
        ("note://café/{+path}", "NOTE://café/a/b", "note://caf%C3%A9/a/b"),
        ("note://a/{word}", "NOTE://a/%2e%2e", None),
        ("note://a/{word}", "NOTE://a/b%2Fc", None),
        ("note://a/x", "note://a/./x", None),
        ("note://a/x", "note://a/y/../x", None),
        ("note://a/../x", "note://a/../x", "note://a/../x"),
        ("note://a/../x", "NOTE://a/../x", None),
    ],
)
def test_resource_is_found_by_its_normal_form(declared: str, uri: str, found: str | None) -> None:
    server = Server("s")
    if "{" not in declared:
        server.add_resource(declared, lambda: "text")
    elif "+" in declared:
        server.add_resource(declared, lambda path: path, name="n")
    else:
        server.add_resource(declared, lambda word: word, name="n")
    answer = answered(server, "resources/read", {"uri": uri})
    if found is None:
        assert answer["data"] == {"uri": uri}
    else:
        assert answer["contents"][0]["uri"] == found
        assert answered(server, "resources/read", {"uri": found}) == answer


def test_resources_of_one_normal_form_stay_two() -> None:
    server = Server("s")
    server.add_resource("note://café", lambda: "note://café", name="one")
    server.add_resource("note://caf%C3%A9", lambda: "note://caf%C3%A9", name="other")
    assert read(server, "note://caf%C3%A9")["text"] == "note://caf%C3%A9"
    assert read(server, "note://café")["text"] == "note://café"
    assert read(server, "NOTE://café")["message"] == "Resource not found"  # it may be either
    server.remove_resource("note://café")
    assert answered(server, "resources/read", {"uri": "NOTE://café"})["contents"][0] == {
        "uri": "note://caf%C3%A9",
        "mimeType": "text/plain",
        "text": "note://caf%C3%A9",
    }
    server.add_resource("note://caf%c3%a9", lambda: "", name="third")
    assert read(server, "NOTE://café")["message"] == "Resource not found"


@pytest.mark.requirement("RES-3", "CONT-6")
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_resources_read_resource_or_template(dialect: Dialect) -> None:
    server = make()
    assert read(server, "notes://today", dialect) == {"mimeType": "text/markdown", "text": "# Hi!"}
    assert read(server, "notes://3", dialect) == {"mimeType": "text/plain", "text": "id-1: day 3"}
    assert read(server, "notes://x%20y", dialect) == {"mimeType": "text/plain", "text": "word x y"}
    octets = "application/octet-stream"
    assert read(server, "files:///a/b?rev=2", dialect) == {"mimeType": octets, "blob": "YS9iQDI="}
    assert read(server, "files:///a/b", dialect) == {"mimeType": octets, "blob": "YS9iQDA="}
    assert read(server, "tree://r/a/b", dialect) == {
        "mimeType": "application/json",
        "text": '["a","b"]',
    }


def test_resources_read_prefers_the_exact_uri_then_the_first_template() -> None:
    server = Server("s")
    server.add_resource("x://{b}", lambda b: "late", name="late")
    server.add_resource("x://{a}", lambda a: "later", name="later")
    assert read(server, "x://y")["text"] == "late"
    server.add_resource("x://y", lambda: "exact", name="exact")
    assert read(server, "x://y")["text"] == "exact"


@pytest.mark.requirement("RES-7", "RES-8")
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_resources_read_missing_resource_is_not_found(dialect: Dialect) -> None:
    code = -32602 if dialect is E else -32002
    for uri, message in (
        ("other://x", "Resource not found"),
        ("", "Resource not found"),
        ("notes://today/x", "Resource not found"),
        ("notes://none", "No such word"),
    ):
        assert read(make(), uri, dialect) == {
            "code": code,
            "message": message,
            "data": {"uri": uri},
        }
    assert str(ResourceNotFound()) == "Resource not found"


@pytest.mark.requirement("RES-12")
@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("files:///../etc/passwd", "the value of `path` holds a `..`"),
        ("files:///a/%2e%2e/b", "the value of `path` holds a `..`"),
        ("files:////etc/passwd", "the value of `path` is an absolute path"),
        ("files:///C:/Windows", "the value of `path` holds a drive letter"),
        ("files:///%5C%5Cserver%5Cshare", "the value of `path` is an absolute path"),
        ("files:///a%00", "the value of `path` holds a control character"),
        ("tree://r/..", "the value of `parts` holds a `..`"),
        ("tree://r/a/C:", "the value of `parts` holds a drive letter"),
        ("notes://a%2Fb", "the value of `day` holds a separator"),
    ],
)
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_resources_read_path_traversal_is_not_found_with_reason(
    uri: str, reason: str, dialect: Dialect
) -> None:
    assert read(make(), uri, dialect) == {
        "code": -32602 if dialect is E else -32002,
        "message": f"Resource not found: {reason}",
        "data": {"uri": uri},
    }


def test_resources_read_refused_value_may_match_another_template() -> None:
    server = Server("s")
    server.add_resource("x://{segment}", lambda segment: f"one {segment}", name="one")
    server.add_resource("x://{+path}", lambda path: f"several {path}", name="several")
    assert read(server, "x://a%2Fb")["text"] == "several a/b"


def test_resource_unchecked_variable_may_be_any_text() -> None:
    server = Server("s")

    @server.resource("git://{repo}/diff/{+span}", unchecked=["span"])
    def diff(repo: str, span: str) -> str:
        return f"{repo} {span}"

    assert read(server, "git://r/diff/C:/../a")["text"] == "r C:/../a"
    assert "`repo` holds a `..`" in read(server, "git://../diff/a")["message"]
    with pytest.raises(DeclarationError, match="has no variable 'rest'"):
        server.add_resource("y://{a}", lambda a: "", name="y", unchecked=["rest"])
    with pytest.raises(DeclarationError, match="has no variables to leave out"):
        server.add_resource("y://a", lambda: "", name="y", unchecked=["a"])
    with pytest.raises(DeclarationError, match="list of names"):
        server.add_resource("y://{a}", lambda a: "", name="y", unchecked="a")


def test_resources_read_unconvertible_variable_is_not_found() -> None:
    assert read(make(), "files:///a?rev=new") == {
        "code": -32602,
        "message": "Resource not found",
        "data": {"uri": "files:///a?rev=new"},
    }


def value_of(value: Any, **options: Any) -> Any:
    server = Server("s")
    server.add_resource("x://y", lambda: value, name="y", **options)
    answer = answered(server, "resources/read", {"uri": "x://y"})
    return answer.get("contents", answer)


@pytest.mark.requirement("CONT-6")
@pytest.mark.parametrize(
    ("value", "contents"),
    [
        ("hi", [{"uri": "x://y", "mimeType": "text/plain", "text": "hi"}]),
        ("", [{"uri": "x://y", "mimeType": "text/plain", "text": ""}]),
        (b"hi", [{"uri": "x://y", "mimeType": "application/octet-stream", "blob": "aGk="}]),
        (
            bytearray(b"hi"),
            [{"uri": "x://y", "mimeType": "application/octet-stream", "blob": "aGk="}],
        ),
        ({"a": 1}, [{"uri": "x://y", "mimeType": "application/json", "text": '{"a":1}'}]),
        (["a"], [{"uri": "x://y", "mimeType": "application/json", "text": '["a"]'}]),
        ([], [{"uri": "x://y", "mimeType": "application/json", "text": "[]"}]),
        (Point(1), [{"uri": "x://y", "mimeType": "application/json", "text": '{"x":1}'}]),
        (Image(b"hi"), [{"uri": "x://y", "mimeType": "image/png", "blob": "aGk="}]),
        (Audio(b"hi"), [{"uri": "x://y", "mimeType": "audio/wav", "blob": "aGk="}]),
        (File("hi", "x://z"), [{"uri": "x://z", "text": "hi"}]),
        (ResourceContents(uri="x://z", text="hi"), [{"uri": "x://z", "text": "hi"}]),
        (
            ["a", ResourceContents(uri="x://z", text="hi"), b"hi"],
            [
                {"uri": "x://y", "mimeType": "text/plain", "text": "a"},
                {"uri": "x://z", "text": "hi"},
                {"uri": "x://y", "mimeType": "application/octet-stream", "blob": "aGk="},
            ],
        ),
    ],
)
def test_resources_read_converts_the_value(value: Any, contents: Any) -> None:
    assert value_of(value) == contents
    if len(contents) == 1 and isinstance(value, str | bytes | dict):
        assert value_of(value, mime_type="a/b")[0]["mimeType"] == "a/b"


@pytest.mark.requirement("RES-7", "RES-9")
@pytest.mark.parametrize("value", [None, object(), [b"x", None]])
def test_resources_read_unusable_value_is_an_internal_error(value: Any) -> None:
    assert value_of(value) == {"code": -32603, "message": "Internal error (reference ref)"}


def test_resources_read_result_of_the_function_is_sent_unchanged() -> None:
    mine = ReadResourceResult(contents=[ResourceContents(uri="a:", text="b")], ttl_ms=5)
    assert value_of(mine) == [{"uri": "a:", "text": "b"}]


def test_resources_read_mcp_error_of_the_function_is_sent_unchanged() -> None:
    server = Server("s")

    @server.resource("x://y")
    def locked() -> str:
        raise McpError(403, "Locked")

    assert read(server, "x://y") == {"code": 403, "message": "Locked"}


@pytest.mark.parametrize(
    ("uri", "function", "options", "why"),
    [
        ("no uri", lambda: "", {}, "is no URI"),
        ("{x}", lambda x: "", {}, "is no URI"),
        ("x://y", lambda z: "", {}, "takes z, but 'x://y' has no variables"),
        ("x://{a}", lambda: "", {}, r"no parameter for \{a\}"),
        ("x://{a}", lambda a, b: "", {}, "'b' is no variable"),
        ("x://{a}", lambda a, b=1: "", {}, "'b' is no variable"),
        ("x://h{?a}", lambda a: "", {}, "may leave 'a' out, so it needs a default"),
        ("x://{a}{b}", lambda a, b: "", {}, "cannot be matched"),
        ("x://{a", lambda a: "", {}, "never closed"),
        ("x://{a}", lambda a: "", {"size": 3}, "has no size"),
        ("x://y", lambda: "", {"icons": [Icon("x.png")]}, "icon"),
        ("x://y", lambda: "", {"meta": {"a b": 1}}, "_meta"),
        ("taken://x", lambda: "", {}, "there is a resource 'taken://x' already"),
        ("taken://{x}/t", lambda x: "", {}, "there is a resource template"),
    ],
)
def test_resource_invalid_declaration_raises(
    uri: str, function: Any, options: Any, why: str
) -> None:
    server = Server("s")
    server.add_resource("taken://x", lambda: "", name="x")
    server.add_resource("taken://{x}/t", lambda x: "", name="x")
    with pytest.raises(DeclarationError, match=why):
        server.add_resource(uri, function, **options)


async def _slow() -> str:
    return ""


class Nameless:
    def __call__(self) -> str:
        return ""


def test_resource_unusable_function_raises() -> None:
    server = Server("s")
    with pytest.raises(DeclarationError, match="thread=True is for a plain def"):
        server.add_resource("x://y", _slow, thread=True)
    with pytest.raises(DeclarationError, match="no name of its own"):
        server.add_resource("x://y", Nameless())
    made = make()
    assert repr(made._resources["notes://today"]).startswith("<resource 'notes://today': function ")
    assert repr(made._templates["notes://{day}"]).startswith(
        "<resource template 'notes://{day}': function "
    )
