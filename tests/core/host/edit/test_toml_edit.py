"""Changes of one table in a TOML text: the value that results, and the lines that stay."""

from __future__ import annotations

import sys
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import ConfigFileError, require_tomlkit
from mcp_core.host.edit import _toml_edit
from mcp_core.host.edit._toml_edit import read_toml, set_toml_flag, set_toml_members

PATH = ("mcp_servers", "us")
ENTRY = {"command": "/p", "args": ["a"], "env": {"A": "1"}}
TABLE = '[mcp_servers.us]\ncommand = "/p"\nargs = ["a"]\n\n[mcp_servers.us.env]\nA = "1"\n'

# name, text before, text after setting mcp_servers.us to ENTRY
CASES = [
    ("empty", "", TABLE),
    ("no newline at the end", "a = 1", f"a = 1\n{TABLE}"),
    (
        "between siblings and others",
        (
            '# mine\nmodel = "x"  # why\n\n[mcp_servers.x]\nargs = ["a",\n  "b", # b\n]\n\n'
            "[tui]\na = 1\n"
        ),
        (
            '# mine\nmodel = "x"  # why\n\n[mcp_servers.x]\nargs = ["a",\n  "b", # b\n]\n\n'
            f"{TABLE}\n[tui]\na = 1\n"
        ),
    ),
    (
        "changed in place",
        (
            '[mcp_servers.us]\n# ours\ncommand = "/q" # c\nargs = ["a"] # a\nz = 1\n\n'
            '[mcp_servers.us.env]\nA = "0" # secret\n\n# about the rest\n[tui]\n'
        ),
        (
            '[mcp_servers.us]\n# ours\ncommand = "/p" # c\nargs = ["a"] # a\n\n'
            '[mcp_servers.us.env]\nA = "1" # secret\n\n# about the rest\n[tui]\n'
        ),
    ),
    ("CRLF", "[t]\r\nb = 2\r\n", "[t]\r\nb = 2\r\n\r\n" + TABLE.replace("\n", "\r\n")),
    (
        "header in a string",
        'a = """\n[mcp_servers.us]\ncommand = 1\n"""\n',
        f'a = """\n[mcp_servers.us]\ncommand = 1\n"""\n\n{TABLE}',
    ),
]


@pytest.mark.parametrize(
    ("before", "after"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_set_toml_members_keeps_all_other_lines(before: str, after: str) -> None:
    assert set_toml_members(before, PATH, ENTRY) == after
    assert set_toml_members(after, PATH, ENTRY) == after


def test_set_toml_members_inline_table_stays_inline() -> None:
    text = '[mcp_servers]\nus = {command = "/q"} # us\nb = 1\n'
    result = set_toml_members(text, PATH, ENTRY)
    assert read_toml(result) == {"mcp_servers": {"us": ENTRY, "b": 1}}
    header, line, *rest = result.splitlines()
    assert (header, rest) == ("[mcp_servers]", ["b = 1"])
    assert line.startswith('us = {command = "/p",')
    assert line.endswith("# us")


# text, line, the beginning of the problem
REFUSED = [
    ("a = 1\nb =\n", 2, "invalid value"),
    ("a = 1\na = 2\n", 2, "cannot overwrite a value"),
    ('a = "', 1, ""),
    ("a = 1\n\nmcp_servers = 3\n", 3, "this is not a table"),
    ("[mcp_servers]\nus = 3\n", 2, "this is not a table"),
    ('\nmcp_servers = {x = {command = "y"}}\n', 2, "mcp_servers.us cannot be changed without"),
    ("[[mcp_servers]]\na = 1\n", 1, ""),
    # dotted keys, for which tomlkit raises an IndexError
    ("[mcp_servers]\nus.c = 1\nus.d = 2\nb.c = 3\n", 1, "mcp_servers.us cannot be changed"),
]


@pytest.mark.parametrize(("text", "line", "problem"), REFUSED)
def test_set_toml_members_is_refused_with_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        set_toml_members(text, PATH, ENTRY)
    assert caught.value.line == line
    assert caught.value.problem.startswith(problem)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[m.a]\nc = 1 # c\n\n# t\n[t]\n", "[m.a]\nc = 1 # c\noff = true\n\n# t\n[t]\n"),
        ("  [m.a]\r\n  c = 1\r\n[m.a.b]", "  [m.a]\r\n  c = 1\r\n  off = true\r\n[m.a.b]"),
        ("[m.a]", "[m.a]\noff = true\n"),
        ("[m.a]\noff = false # why\n", "[m.a]\noff = true # why\n"),
        ("[m]\na.c = 1\nb = 2\n", "[m]\na.c = 1\na.off = true\nb = 2\n"),
        ("m = {a = {c = 1}}\n", "m = {a = {c = 1,off = true}}\n"),
        ("m.a.c = 1\n[t]\n", "m.a.c = 1\nm.a.off = true\n[t]\n"),
    ],
)
def test_set_toml_flag_keeps_comments_with_what_follows(before: str, after: str) -> None:
    assert set_toml_flag(before, ("m", "a", "off"), True) == after
    assert set_toml_flag(after, ("m", "a", "off"), True) == after


def test_set_toml_members_without_tomlkit_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    assert read_toml("a = 1") == {"a": 1}
    for function in require_tomlkit, lambda: set_toml_members("", PATH, ENTRY):
        with pytest.raises(ImportError, match=r"pip install 'mcp-trio\[config\]'"):
            function()


LINES = st.sampled_from(
    [
        "# comment\n", "\n", "a = 1\n", 'b = "x" # why\n', "[t]\n", "[t.u]\n",
        "c = [1,\n 2, # two\n]\n",
        "[mcp_servers]\n", "[mcp_servers.x]\n", 'command = "y"\n', 'env = {A = "1"}\n',
        "[mcp_servers.x.env]\n", '[mcp_servers."us"]\n', "mcp_servers.x.z = 1\n", "us.z = 1\n",
        "[[list]]\n", "d = 1979-05-27\n",
    ]
)  # fmt: skip
members = st.fixed_dictionaries(
    {"command": st.text(max_size=5)},
    optional={
        "args": st.lists(st.text(max_size=5), max_size=3),
        "env": st.dictionaries(st.sampled_from(["A", "B", "a b"]), st.text(max_size=5), max_size=2),
    },
)


@given(lines=st.lists(LINES, max_size=10), newline=st.sampled_from(["\n", "\r\n"]), members=members)
def test_set_toml_members_any_file_is_changed_as_meant_or_refused(
    lines: list[str], newline: str, members: dict[str, Any]
) -> None:
    """Valid TOML may still be too odd to edit safely: then nothing is written."""
    text = "".join(lines).replace("\n", newline)
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(ConfigFileError):
            set_toml_members(text, PATH, members)
        return
    try:
        result = set_toml_members(text, PATH, members)
    except ConfigFileError:
        return
    servers = before.get("mcp_servers", {})
    assert tomllib.loads(result) == {**before, "mcp_servers": {**servers, "us": members}}
    if "us" not in servers:
        kept = iter(result.splitlines())
        assert all(line in kept for line in text.splitlines() if line.strip())


def test_set_toml_members_plain_codex_files_are_never_refused() -> None:
    """The property above allows refusals. These are the files that people have."""
    text = (
        'model = "x"\n[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a.env]\nK = "v"\n[tui]\nz = 1\n'
    )
    for count in range(text.count("\n") + 1):
        part = "".join(text.splitlines(keepends=True)[:count])
        assert read_toml(set_toml_members(part, PATH, ENTRY))["mcp_servers"]["us"] == ENTRY


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("a = 1\nb = ?", (2, 5), "invalid value"),
        ("a = " + "[" * 100_000, (1, None), "arrays or tables are nested too deeply"),
        ("a = " + "[" * 250 + "]" * 250, (1, None), "arrays or tables are nested too deeply"),
        ("a = " + "1" * 5_000, (1, None), "a number has too many digits"),
    ],
    ids=["position", "nesting", "nesting that Python reads", "digits"],
)
def test_read_toml_invalid_text_is_a_config_file_error(
    text: str, place: tuple[int, int | None], problem: str
) -> None:
    with pytest.raises(ConfigFileError) as caught:
        read_toml(text)
    assert ((caught.value.line, caught.value.column), caught.value.problem) == (place, problem)


@pytest.mark.parametrize(
    ("path", "text", "starts"),
    [
        (["a"], "[a]", True),
        (["a"], "[a.b]", True),
        (["a"], "a = 1", True),
        (["a", "b"], "[a]\nb = 1", True),
        (["a", "b"], "[[a]]\nb = 1", True),
        (["a"], "[b]", False),
        (["a", "b"], "[a]", False),
        (["a", "b"], "a = 1", False),
        (["a", "b"], "a = []", False),
        (["a"], "[", False),
    ],
)
def test_table_or_value_at_a_path_is_found(path: list[str], text: str, starts: bool) -> None:
    assert _toml_edit._starts_with(path, text) is starts
