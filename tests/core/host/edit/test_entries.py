"""Plans that add, replace, remove, disable and enable entries, in files of six formats."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import (
    CLIENT_FORMATS,
    ConfigFileError,
    ServerEntry,
    describe_change,
    entry_members,
    find_entry_line,
    plan_disabling,
    plan_enabling,
    plan_entry,
    plan_removal,
    read_config,
)
from mcp_core.host.edit._changes import MemberChange

NAMES = ["a", "ü.b/c", "x" * 200, "\x1b[2J\n", "a b", '"', "mcpServers"]
FORMATS = ["claude-code", "cursor", "codex"]
WRITTEN = [name for name, each in CLIENT_FORMATS.items() if each.is_written]
SERVER = ServerEntry(name="us", command="/py", args=("-m", "x"), env={"K": "v"})
CLAUDE = CLIENT_FORMATS["claude-code"]
CODEX = CLIENT_FORMATS["codex"]
GEMINI = CLIENT_FORMATS["gemini"]
FILE = """\
{
  "other": [1, 2],
  "mcpServers": {
    "a": {"command": "x"},
    "b": 5
  }
}
"""
TOML = '# mine\nmodel = "x"\n\n[mcp_servers.a]\ncommand = "x" # c\n\n# about t\n[t]\nz = 1\n'


def apply(changes: list[MemberChange], text: str) -> str:
    for change in changes:
        text = change.apply(text)
    return text


@pytest.mark.parametrize("client", WRITTEN)
@pytest.mark.parametrize("name", NAMES)
def test_entry_of_any_name_is_added_found_and_removed(client: str, name: str) -> None:
    form = CLIENT_FORMATS[client]
    before = TOML if form.syntax is None else FILE.replace("mcpServers", form.servers[0])
    members = entry_members(form, SERVER)
    text = plan_entry(form, name, members, before).apply(before)
    server = read_config(text, file="f", format=client).servers[name]
    assert (server.command, server.args, server.env) == ("/py", ("-m", "x"), {"K": "v"})
    assert find_entry_line(form, name, text) == server.place.line
    assert not plan_entry(form, name, members, text).is_needed
    removed = apply(plan_removal(form, name, text), text)
    assert plan_removal(form, name, removed) == []
    if name != "a" and form.syntax is not None:
        assert removed == before
    elif name != "a":  # tomlkit puts a table behind comments
        assert removed.split() == before.split()


@pytest.mark.parametrize("client", WRITTEN)
def test_entry_is_added_to_an_empty_file(client: str) -> None:
    form = CLIENT_FORMATS[client]
    text = plan_entry(form, "us", entry_members(form, SERVER), "").apply("")
    assert list(read_config(text, file="f", format=client).servers) == ["us"]


@pytest.mark.parametrize("client", sorted(CLIENT_FORMATS.keys() - WRITTEN))
def test_entry_of_a_file_that_is_only_read_is_removed_and_never_written(client: str) -> None:
    form = CLIENT_FORMATS[client]
    around = '{"z": 1, %s"a": {}, "us": {"command": "x"}%s}'
    inner = "".join(f'"{name}": {{' for name in form.servers), "}" * len(form.servers)
    before = around % inner
    with pytest.raises(ValueError, match="and writes no entries into it: add the server there"):
        entry_members(form, SERVER)
    assert find_entry_line(form, "us", before) == 1
    assert apply(plan_removal(form, "us", before), before) == before.replace(
        ', "us": {"command": "x"}', ""
    )


@pytest.mark.parametrize("form", [CLAUDE, CODEX])
def test_entry_replaced_inherits_nothing(form: Any) -> None:
    old = ServerEntry(name="us", command="/old", args=("-m", "x"), env={"S": "secret"})
    text = plan_entry(form, "us", entry_members(form, old), "").apply("")
    change = plan_entry(form, "us", entry_members(form, SERVER), text)
    assert "secret" not in "".join(line for _, line in describe_change(change))
    assert "secret" not in change.apply(text)


def test_broken_entries_are_removed() -> None:
    text = '{"mcpServers": {"a": null, "b": 5, "c": {"command": 1, "args": {}}, "d": []}}'
    for name in "abcd":
        change = plan_removal(CLAUDE, name, text)
        text = apply(change, text)
    assert text == '{"mcpServers": {}}'
    text = "[mcp_servers]\na = 5\n"
    assert apply(plan_removal(CODEX, "a", text), text) == "[mcp_servers]\n"


def test_removal_next_to_a_repeated_name_works_and_of_it_is_refused() -> None:
    text = '{"mcpServers": {"a": {}, "b": {}, \n"a": {}}}'
    assert apply(plan_removal(CLAUDE, "b", text), text) == '{"mcpServers": {"a": {}, \n"a": {}}}'
    with pytest.raises(ConfigFileError, match='line 2: "a" is there a second time'):
        apply(plan_removal(CLAUDE, "a", text), text)


@pytest.mark.parametrize(
    ("form", "text", "problem"),
    [
        (CLAUDE, "[", "line 1: this object or array has no end"),
        (CLAUDE, "[]", "line 1: the file is not an object"),
        (CLAUDE, '{\n"mcpServers": []}', 'line 2: "mcpServers" is not an object'),
        (CLAUDE, "{} // c", "line 1: a comment, with which"),
        (CODEX, "mcp_servers = 1", "mcp_servers is not a table"),
        (CODEX, "\nx", "line 2: "),
    ],
)
def test_plan_for_unusable_file_is_refused_with_line(form: Any, text: str, problem: str) -> None:
    for plan in (
        lambda: plan_removal(form, "a", text),
        lambda: plan_entry(form, "a", {}, text),
        lambda: find_entry_line(form, "a", text),
        lambda: plan_enabling(form, "a", text),
    ):
        with pytest.raises(ConfigFileError, match=problem):
            plan()


# format, text, text when a is disabled
DISABLED = [
    (CLAUDE, FILE, FILE.replace('"x"}', '"x", "disabled": true}')),
    (CODEX, TOML, TOML.replace("# c\n", "# c\nenabled = false\n")),
    (
        GEMINI,
        '{"mcpServers": {"a": {}}}',
        '{"mcpServers": {"a": {}}, "mcp": {"excluded": ["a"]}}',
    ),
    (
        GEMINI,
        '{"mcp": {"excluded": ["b"], "allowed": ["a"]}, "mcpServers": {"a": {}}}',
        '{"mcp": {"excluded": ["b", "a"], "allowed": ["a"]}, "mcpServers": {"a": {}}}',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("form", "text", "disabled"), DISABLED)
def test_disabling_is_read_back_and_undone_by_enabling(form: Any, text: str, disabled: str) -> None:
    assert apply(plan_enabling(form, "a", text), text) == text
    assert apply(plan_disabling(form, "a", text), text) == disabled
    assert plan_disabling(form, "a", disabled) == []
    enabled = apply(plan_enabling(form, "a", disabled), disabled)
    if form is GEMINI:
        assert "a" not in enabled.partition("excluded")[2].partition("]")[0]
    else:
        assert enabled == text
    if "{}" not in text:
        for version, expected in (disabled, True), (enabled, False):
            config = read_config(version, file="f", format=form.name)
            assert config.servers["a"].disabled is expected


@pytest.mark.parametrize(
    ("form", "text", "enabled"),
    [
        (CLAUDE, '{"mcpServers": {"a": {"disabled": 1}}}', '{"mcpServers": {"a": {}}}'),
        (CLAUDE, '{"mcpServers": {"a": {"enabled": false}}}', '{"mcpServers": {"a": {}}}'),
        (
            CODEX,
            "[mcp_servers]\na = {disabled = true, enabled = false, x = 1}\n",
            "[mcp_servers]\na = {  x = 1}\n",
        ),
        (
            GEMINI,
            '{"mcpServers": {"a": {"disabled": true}}, "mcp": {"allowed": [], "excluded": ["a"]}}',
            '{"mcpServers": {"a": {}}, "mcp": {"allowed": ["a"], "excluded": []}}',
        ),
        (
            CLIENT_FORMATS["vscode"],
            '{"servers": {"a": {"disabled": true}}}',
            '{"servers": {"a": {}}}',
        ),
    ],
)
def test_enabling_removes_all_that_turns_a_server_off(form: Any, text: str, enabled: str) -> None:
    assert apply(plan_enabling(form, "a", text), text) == enabled


@pytest.mark.parametrize("name", ["claude-desktop", "cursor", "vscode"])
def test_disabling_in_format_without_a_way_is_refused(name: str) -> None:
    form = CLIENT_FORMATS[name]
    with pytest.raises(ValueError, match=f"the file of {form.title} cannot turn a server off"):
        plan_disabling(form, "a", f'{{"{form.servers[0]}": {{"a": {{}}}}}}')


@pytest.mark.parametrize(
    ("form", "text", "problem"),
    [
        (CLAUDE, '{"mcpServers": {\n"a": 5}}', "line 2: the entry of the server is not an object"),
        (CODEX, "\nmcp_servers.a = 5", "line 2: the entry of the server is not an object"),
        (GEMINI, '{"mcpServers": {"a": {}},\n"mcp": 1}', 'line 2: "mcp" is not an object'),
        (
            GEMINI,
            '{"mcpServers": {"a": {}},\n"mcp": {"excluded": "a"}}',
            "line 2: mcp.excluded is not an array",
        ),
    ],
)
def test_disabling_of_broken_entry_or_list_is_refused(form: Any, text: str, problem: str) -> None:
    with pytest.raises(ConfigFileError, match=problem):
        plan_disabling(form, "a", text)


def test_description_of_changes_shows_what_goes_and_comes() -> None:
    (change,) = plan_removal(CODEX, "a", TOML)
    assert list(describe_change(change)) == [("-", "[mcp_servers.a]"), ("-", 'command = "x"')]
    (change,) = plan_disabling(CLAUDE, "a", FILE)
    assert list(describe_change(change)) == [("+", '"disabled": true')]
    (change,) = plan_disabling(CODEX, "a", TOML)
    assert list(describe_change(change)) == [("+", "mcp_servers.a.enabled = false")]


@given(st.text(st.sampled_from('{}[]":,/*\n a\\"=.#'), max_size=40), st.sampled_from(FORMATS))
def test_plans_for_any_text_are_made_or_refused(text: str, name: str) -> None:
    form = CLIENT_FORMATS[name]
    text = text.replace('"a"', f'"{form.servers[0]}"')
    with suppress(ConfigFileError):
        plan_entry(form, "us", entry_members(form, SERVER), text).apply(text)
    with suppress(ConfigFileError):
        apply(plan_removal(form, "a", text), text)
    with suppress(ConfigFileError):
        if find_entry_line(form, "a", text) is not None:
            apply(plan_enabling(form, "a", text), text)


def test_enabling_of_gemini_removes_a_name_in_other_letters() -> None:
    text = '{"mcpServers": {"a": {}}, "mcp": {"excluded": ["A ", "b"]}}'
    enabled = apply(plan_enabling(GEMINI, "a", text), text)
    assert enabled == '{"mcpServers": {"a": {}}, "mcp": {"excluded": ["b"]}}'


@pytest.mark.parametrize(
    ("lists", "is_off"),
    [
        ('"excludeMCPServers": ["A"]', True),
        ('"excludeMCPServers": ["b"]', False),
        ('"excludeMCPServers": "a"', True),
        ('"allowMCPServers": ["b"]', True),
        ('"allowMCPServers": ["a"]', False),
        ('"allowMCPServers": null', False),
    ],
)
def test_enabling_of_gemini_names_an_older_list_that_turns_it_off(lists: str, is_off: bool) -> None:
    text = f'{{"mcpServers": {{"a": {{}}}},\n {lists}}}'
    if is_off:
        with pytest.raises(ConfigFileError, match=r"^line 2: .* turns the server off too"):
            plan_enabling(GEMINI, "a", text)
    else:
        assert plan_enabling(GEMINI, "a", text) == []
