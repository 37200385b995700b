"""The options of `mcp-trio servers`: what each sets, and which don't fit; and the list's texts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_trio.cli._errors import MISUSE, CliError
from mcp_trio.cli.servers import _list, _parser

URL = "https://docs.example.com/mcp"


def keywords_of(*words: str) -> dict[str, Any]:
    """Return the keyword arguments of a subcommand, which isn't run."""
    run: Any = _parser.parse(words)
    found: dict[str, Any] = run.keywords
    return found


CHANGE = {"config": None, "dry_run": False, "yes": False}


@pytest.mark.parametrize(
    ("words", "usual", "rows"),
    [
        (
            ("list",),
            {"config": None, "as_json": False, "connects": True, "timeout": 60.0},
            {
                "--json": {"as_json": True},
                "--no-connect": {"connects": False},
                "--timeout 3": {"timeout": 3.0},
                "--config a.json": {"config": Path("a.json")},
            },
        ),
        (
            ("approve", "a"),
            {"config": None, "all_servers": False, "timeout": 60.0},
            {"--timeout 3": {"timeout": 3.0}, "--config a.json": {"config": Path("a.json")}},
        ),
        (
            ("get", "a"),
            {"config": None, "as_json": False},
            {"--json": {"as_json": True}, "--config a.json": {"config": Path("a.json")}},
        ),
        (
            ("add", "a", URL),
            {**CHANGE, "scope": "user", "replace": False},
            {
                "--scope project": {"scope": "project"},
                "--replace": {"replace": True},
                "--dry-run": {"dry_run": True},
                "--yes": {"yes": True},
                "--config a.json": {"config": Path("a.json")},
            },
        ),
        (
            ("import", "--from", "cursor"),
            {**CHANGE, "scope": "user", "replace": False},
            {
                "--scope local": {"scope": "local"},
                "--replace": {"replace": True},
                "--dry-run": {"dry_run": True},
                "--yes": {"yes": True},
                "--config a.json": {"config": Path("a.json")},
            },
        ),
        (
            ("remove", "a"),
            {**CHANGE, "scope": None},
            {
                "--scope user": {"scope": "user"},
                "--dry-run": {"dry_run": True},
                "--yes": {"yes": True},
                "--config a.json": {"config": Path("a.json")},
            },
        ),
        (
            ("enable", "a"),
            {"config": None, "scope": None},
            {"--scope user": {"scope": "user"}, "--config a.json": {"config": Path("a.json")}},
        ),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
def test_option_of_a_subcommand_changes_only_what_it_is_for(
    words: tuple[str, ...], usual: dict[str, Any], rows: dict[str, dict[str, Any]]
) -> None:
    """Without options nothing is replaced, and nothing is changed without a question."""
    assert keywords_of(*words) == usual
    for option, changes in rows.items():
        assert keywords_of(*words, *option.split()) == {**usual, **changes}


def test_subcommands_have_the_servers_that_are_named() -> None:
    for words, arguments in (
        (("approve", "a", "b"), (["a", "b"],)),
        (("approve", "--all"), ([],)),
        (("get", "a"), ("a",)),
        (("remove", "a"), ("a",)),
        (("enable", "a"), ("a", True)),
        (("disable", "a"), ("a", False)),
    ):
        run: Any = _parser.parse(words)
        assert run.args == arguments
    assert keywords_of("approve", "--all")["all_servers"] is True
    run = _parser.parse(["import", "--from-file", "f.json", "a", "b"])
    assert run.args == (None, Path("f.json"), ["a", "b"])


def test_servers_without_a_subcommand_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert _parser.parse([])() == MISUSE
    assert "Adds, shows and changes the servers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "members"),
    [
        ((URL,), {"url": URL}),
        ((URL, "--transport", "sse"), {"url": URL, "transport": "sse"}),
        ((URL, "--header", "A: b"), {"url": URL, "headers": (("A", "b"),)}),
        (("--", "node", "s.js"), {"command": ("node", "s.js")}),
        (("--env", "A=1", "--", "node"), {"command": ("node",), "variables": (("A", "1"),)}),
        (("--cwd", "/", "--", "node"), {"command": ("node",), "cwd": Path("/")}),
        (
            (URL, "--allow-tool", "t", "--allow-tool", "u", "--deny-tool", "v"),
            {"url": URL, "allowed_tools": ("t", "u"), "denied_tools": ("v",)},
        ),
    ],
)
def test_added_server_has_what_the_line_says(words: tuple[str, ...], members: Any) -> None:
    """Without options it gets no variables and no headers, and all its tools may be used."""
    run: Any = _parser.parse(["add", "a", *words])
    name, server = run.args
    usual: dict[str, Any] = {
        "url": "",
        "command": (),
        "transport": None,
        "variables": (),
        "headers": (),
        "cwd": None,
        "allowed_tools": (),
        "denied_tools": (),
    }
    assert name == "a"
    found = {each: getattr(server, each) for each in usual}
    found |= {each: tuple(found[each]) for each in ("variables", "headers")}
    assert found == {**usual, **members}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", ""), "the name of a server must not be empty"),
        (("add", "a"), "which server? give its URL or file, or after -- COMMAND"),
        (("add", "a", URL, "--", "node"), "which server? leave one of them out"),
        (("add", "a", URL, "-m", "b"), "which server? leave one of them out"),
        (("add", "a", "--asyncio", URL), "--asyncio"),
        (("add", "a", "--asyncio", "--", "node"), "--asyncio"),
        (("add", "a", "--env", "A=1", URL), "--env is for a server that is started, not for a URL"),
        (("add", "a", "--cwd", "/", URL), "--cwd is for a server that is started"),
        (("add", "a", "--header", "A: b", "--", "node"), "--header is for the URL of a server"),
        (("add", "a", "--transport", "ws", "--", "node"), "--transport is for the URL of a server"),
        (("add", "a", "--config", "c", "--scope", "user", URL), "leave --scope out"),
        (("remove", "a", "--config", "c", "--scope", "user"), "leave --scope out"),
        (("approve",), "give the names of servers, or --all, and not both"),
        (("approve", "a", "--all"), "give the names of servers, or --all, and not both"),
        (("import",), "one of the arguments --from --from-file is required"),
        (("import", "--from", "cursor", "--from-file", "f"), "not allowed with argument"),
    ],
)
def test_options_of_servers_that_do_not_fit_are_refused(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _parser.parse(words)
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "a", "node"), "node is neither a URL nor a Python file"),
        (("add", "a", "ftp://x/"), "ftp://x/"),
        (("add", "a", "--", "ftp://x/"), "ftp://x/"),
        (("approve", "a", "--yes"), "servers approve has no --yes"),
    ],
)
def test_server_of_another_kind_names_the_cure(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(CliError, match=says):
        _parser.parse(words)


# -- The list --------------------------------------------------------------------------------------


class _TableLines:
    """A screen that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, *parts: str | tuple[str, str]) -> None:
        self.lines.append("".join(each if isinstance(each, str) else each[0] for each in parts))


def pins(**members: Any) -> Any:
    usual: dict[str, Any] = {"changed": (), "new": (), "gone": (), "ambiguous": ()}
    return SimpleNamespace(**{**usual, **members})


def row(name: str = "a", state: str = "ready", **members: Any) -> Any:
    place = SimpleNamespace(file="f.json", line=3)
    server = SimpleNamespace(transport="stdio", place=place)
    scoped: Any = SimpleNamespace(scope="user", server=server)
    return _list._Row(name, scoped, state, **members)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({}, ""),
        ({"tools": 0}, "not pinned yet"),
        ({"tools": 2, "is_pinned": True}, ""),
        ({"tools": 2, "is_pinned": True, "pins": pins()}, ""),
        (
            {"tools": 2, "is_pinned": True, "pins": pins(changed=[1], new=[1, 2], gone=[1])},
            "1 changed, 2 new, 1 gone",
        ),
        ({"tools": 2, "is_pinned": True, "pins": pins(ambiguous=[1])}, "1 ambiguous"),
        ({"tools": 2, "is_pinned": True, "warnings": [1]}, "1 warning"),
        ({"tools": 2, "warnings": [1, 2]}, "not pinned yet, 2 warnings"),
    ],
)
def test_changes_of_a_server_are_counted(members: dict[str, Any], text: str) -> None:
    assert row(**members).changes == text


def test_table_has_a_line_for_each_server_and_its_reason() -> None:
    """A long name moves the rest of its line, and of no other one. A reason is cut."""
    screen: Any = _TableLines()
    rows = [row(tools=12), row("n" * 41, "unapproved"), row("茶", "failed", reason="r" * 600)]
    _list._show_table(rows, screen)
    head, first, second, third, reason = screen.lines
    width = 40 + 2
    assert head == f"{'NAME':{width}}SCOPE  TRANSPORT  STATE       TOOLS  CHANGES"
    assert first == f"{'a':{width}}user   stdio      ready       12     not pinned yet"
    assert second == f"{'n' * 41}  user   stdio     unapproved"
    assert third == f"茶{' ' * (width - 2)}user   stdio      failed"
    assert reason == f"    {'r' * 500}… (600 characters)"


def test_table_has_five_warnings_of_a_server() -> None:
    definition = SimpleNamespace(kind="tool", name="t")
    for count, more in ((5, []), (6, ["    (1 more warnings: --json has them)"])):
        screen: Any = _TableLines()
        warnings = [(definition, SimpleNamespace(path=f"p{n}", text="x")) for n in range(count)]
        _list._show_table([row(warnings=warnings)], screen)
        shown = [f"    ! tool t: p{number} x" for number in range(5)]
        assert screen.lines[2:] == [*shown, *more]


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([], []),
        ([row(), row(state="failed"), row(pins=pins(gone=[1], ambiguous=[1]))], []),
        (
            [row(), row("b", "unapproved")],
            ["mcp-trio: to approve 1 of 2 servers: mcp-trio servers approve b"],
        ),
        (
            [row("b", pins=pins(changed=[1])), row("c", pins=pins(new=[1]))],
            ["mcp-trio: to approve 2 of 2 servers: mcp-trio servers approve b (or --all)"],
        ),
    ],
)
def test_cure_names_the_first_server_to_approve(rows: list[Any], lines: list[str]) -> None:
    screen: Any = _TableLines()
    _list._show_cures(rows, None, screen)
    assert screen.lines == lines


def test_server_as_json_has_what_is_known() -> None:
    """Without a connection nothing is said about tools and pins."""
    place = {"name": "a", "scope": "user", "file": "f.json", "line": 3, "transport": "stdio"}
    assert _list._row_json(row(state="disabled")) == {**place, "state": "disabled"}
    assert _list._row_json(row(state="failed", reason="a\nb"))["reason"] == "a\\nb"
    assert _list._row_json(row(tools=2)) == {
        **place,
        "state": "ready",
        "tools": 2,
        "pinned": False,
        "warnings": [],
    }
    one, two = (SimpleNamespace(kind="tool", name=each) for each in "xy")
    known = pins(changed=[(one, two)], new=[one], gone=[two], ambiguous=[one, two])
    warning = SimpleNamespace(kind="hidden", path="p", text="t")
    found = _list._row_json(row(tools=2, is_pinned=True, pins=known, warnings=[(one, warning)]))
    x, y = ({"kind": "tool", "name": each} for each in "xy")
    assert (found["changed"], found["new"], found["gone"], found["ambiguous"]) == (
        *([y], [x]),
        *([y], [x, y]),
    )
    assert found["warnings"] == [{**x, "warning": "hidden", "path": "p", "text": "t"}]
