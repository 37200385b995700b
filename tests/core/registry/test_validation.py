"""Checks of names, URIs, icons and `_meta` keys."""

from __future__ import annotations

import warnings
from datetime import date
from typing import Any

import pytest

from mcp_core.registry import DeclarationError, Server
from mcp_core.registry._validation import (
    check_annotations,
    check_icons,
    check_meta,
    check_tool_name,
    check_uri,
    time_text,
)
from mcp_core.types import Annotations, Icon


@pytest.mark.requirement("TOOL-19")
@pytest.mark.parametrize("name", ["a", "get_weather", "admin.tools.list", "DATA-9", "x" * 128])
def test_check_tool_name_valid_name_does_not_warn(name: str) -> None:
    check_tool_name(name)


@pytest.mark.requirement("TOOL-19")
@pytest.mark.parametrize("name", ["", "get weather", "a/b", "a,b", "é", "x" * 129, "a\n"])
def test_check_tool_name_unusual_name_warns(name: str) -> None:
    with pytest.warns(UserWarning, match="is not 1 to 128 characters"):
        check_tool_name(name)


def test_warn_author_points_at_the_line_of_the_declaration() -> None:
    server = Server("s")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        @server.tool(name="a b")
        def first() -> None:
            """Do."""

        @server.tool
        def second() -> None: ...

        server.add_tool(lambda: None, name="c d", description="Do.")
    assert [warning.filename for warning in caught] == [__file__] * 3


@pytest.mark.requirement("RES-11")
@pytest.mark.parametrize(
    "uri", ["a:", "notes://today", "file:///x/y%20z", "urn:isbn:1", "a+b-c.d://x?y#z", "x://é"]
)
def test_check_uri_valid_uri_passes(uri: str) -> None:
    check_uri(uri, "f")


@pytest.mark.requirement("RES-11", "RES-12")
@pytest.mark.parametrize(
    "uri",
    [
        "",
        "notes",
        "/x",
        "1a:b",
        "a b:c",
        "x://a b",
        "x:\n",
        'x:"',
        "x:{y}",
        "x:\x7f",
        "x:\x85",
        "x:a\\b",
    ],
)
def test_check_uri_invalid_uri_raises(uri: str) -> None:
    with pytest.raises(DeclarationError, match=r"f: .* is no URI"):
        check_uri(uri, "f")


def test_check_icons_scheme_must_be_https_or_data() -> None:
    good = [
        Icon("https://example.com/i.png"),
        Icon("data:image/png;base64,AAAA"),
        Icon("HTTPS://example.com"),
    ]
    assert check_icons(good, "f") == good
    assert check_icons(tuple(good), "f") == good
    assert check_icons(None, "f") is None
    assert check_icons([], "f") is None
    for source in ("javascript:alert(1)", "file:///x", "http://example.com/i.png", "i.png", ""):
        with pytest.raises(DeclarationError, match="icon"):
            check_icons([Icon(source)], "f")


@pytest.mark.parametrize("priority", [None, 0, 0.5, 1])
def test_check_annotations_priority_in_range_passes(priority: float | None) -> None:
    annotations = Annotations(priority=priority)
    assert check_annotations(annotations, "f") is annotations
    assert check_annotations(None, "f") is None


@pytest.mark.parametrize(
    ("audience", "is_valid"),
    [
        (None, True),
        ([], True),
        (["user"], True),
        (["user", "assistant"], True),
        (["bot"], False),
        (["user", "bot"], False),
        ("user", False),
        ("", False),
    ],
)
def test_check_annotations_audience_is_a_list_of_roles(audience: Any, is_valid: bool) -> None:
    annotations = Annotations(audience=audience)
    if is_valid:
        assert check_annotations(annotations, "f") is annotations
    else:
        with pytest.raises(DeclarationError, match=r"f: the audience .* is not a list of 'user'"):
            check_annotations(annotations, "f")


@pytest.mark.parametrize("priority", [2.0, -0.1, 1.0001, float("nan")])
def test_resource_priority_out_of_range_raises_at_declaration(priority: float) -> None:
    server = Server("s")

    def notes() -> str:
        return ""  # pragma: no cover

    declare = server.resource("notes://all", annotations=Annotations(priority=priority))
    with pytest.raises(DeclarationError, match=r"the priority .* is not from 0 .* to 1"):
        declare(notes)


def test_server_tasks_extension_raises_at_declaration() -> None:
    with pytest.raises(DeclarationError, match="is declared by itself"):
        Server("s", extensions={"io.modelcontextprotocol/tasks": {}})
    Server("s", extensions={"com.example/tasks": {}})


@pytest.mark.requirement("META-2")
@pytest.mark.parametrize(
    "key", ["a", "a.b", "a-b_c.d1", "com.example/", "com.example/a", "x-1.y2/name", "9", "", "a/b"]
)
def test_check_meta_valid_key_passes(key: str) -> None:
    assert check_meta({key: 1}, "f") == {key: 1}


@pytest.mark.requirement("META-2")
@pytest.mark.parametrize(
    "key",
    ["-a", "a-", ".a", "a b", "a/b/c", "1a.b/c", "a-.b/c", "a..b/c", "/a", "é", "a/-b", "a\n"],
)
def test_check_meta_invalid_key_raises(key: str) -> None:
    with pytest.raises(DeclarationError, match="is no key for _meta"):
        check_meta({key: 1}, "f")


def test_check_meta_empty_returns_no_meta() -> None:
    assert check_meta(None, "f") is None
    assert check_meta({}, "f") is None


@pytest.mark.requirement("TOOL-19", "RES-15", "PRM-8")
def test_server_declares_no_name_and_no_uri_twice() -> None:
    server = Server("s")
    server.add_tool(lambda: "", name="t", description="Do.")
    server.add_prompt(lambda: "", name="p", description="Do.")
    server.add_resource("x:1", lambda: "", name="r")
    with pytest.raises(DeclarationError, match="there is a tool 't' already"):
        server.add_tool(lambda: "", name="t", description="Do more.")
    with pytest.raises(DeclarationError, match="there is a prompt 'p' already"):
        server.add_prompt(lambda: "", name="p", description="Do more.")
    with pytest.raises(DeclarationError, match="there is a resource 'x:1' already"):
        server.add_resource("x:1", lambda: "", name="other")


@pytest.mark.parametrize("value", [5, None, date(2026, 1, 2)])
def test_time_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=f"is a datetime or a text, not {type(value).__name__}$"):
        time_text(value)
