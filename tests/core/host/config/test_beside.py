"""Settings beside the servers of a file that restrict them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.host import ConfigFile, InvalidConfig, merge_servers, read_config, read_entry
from mcp_core.host.config import _beside
from mcp_core.host.config._beside import find_restrictions_beside
from mcp_core.host.config._tree import ValueTree
from tests.core.host.config.examples import TIMEOUTS

# A file of each format by its path, and the member with its servers.
PLACES = {
    "claude": ("/home/u/.claude.json", "mcpServers"),
    "mcp.json": (".mcp.json", "mcpServers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "zed": ("zed/settings.json", "context_servers"),
    "vscode": (".vscode/settings.json", "mcp"),
}


def text_of(place: str, beside: dict[str, Any]) -> str:
    """Return a file with the servers x and y, and these settings beside them."""
    _, member = PLACES[place]
    servers: Any = {"x": {"command": "c"}, "y": {"command": "c"}}
    if member == "mcp":
        servers = {"servers": servers}
    return json.dumps({member: servers, **beside})


def read(place: str, beside: dict[str, Any]) -> ConfigFile:
    return read_config(text_of(place, beside), file=PLACES[place][0])


def tools_of(tool: str, **rule: Any) -> dict[str, Any]:
    return {"agent": {"tool_permissions": {"tools": {tool: rule}}}}


def profile_of(**profile: Any) -> dict[str, Any]:
    return {"agent": {"default_profile": "mine", "profiles": {"mine": profile}}}


# place, settings, what x is in place of a usable server
ROWS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("mcp.json", {"disabledMcpServers": ["x"]}, {"disabled": True}),
    ("mcp.json", {"disabledMcpjsonServers": ["x"]}, {"disabled": True}),
    ("claude", {"disabledMcpServers": ["x"]}, {"disabled": True}),
    ("vscode", {"disabled_mcp_servers": ["x"]}, {"disabled": True}),
    ("vscode", {"chat.mcp.access": "none"}, {"disabled": True}),
    ("vscode", {"chat.mcp.enabled": False}, {"disabled": True}),
    ("gemini", {"admin": {"mcp": {"enabled": False}}}, {"disabled": True}),
    ("gemini", {"tools": {"exclude": ["mcp_x_*"]}}, {"disabled": True}),
    ("gemini", {"tools": {"exclude": ["x__*"]}}, {"disabled": True}),
    *(
        ("gemini", {"tools": {"exclude": [entry]}}, {"disabled": True})
        for entry in ("*", "mcp_*", "*__*")
    ),
    ("gemini", {"tools": {"exclude": ["mcp_x_write"]}}, {"denied_tools": {"write"}}),
    ("gemini", {"tools": {"exclude": ["x__write"]}}, {"denied_tools": {"write"}}),
    ("gemini", {"tools": {"exclude": ["write"]}}, {"denied_tools": {"write"}}),
    ("gemini", {"excludeTools": ["write"]}, {"denied_tools": {"write"}}),
    ("zed", tools_of("mcp:x:write", default="deny"), {"denied_tools": {"write"}}),
    ("zed", tools_of("mcp:x:write", always_deny=[{"pattern": "a"}]), {"denied_tools": {"write"}}),
    ("zed", tools_of("mcp:x:write", default="confirm"), {"asks_always": True}),
    ("zed", tools_of("mcp:x:write", always_confirm=[{"pattern": "a"}]), {"asks_always": True}),
    ("zed", {"agent": {"tool_permissions": {"default": "confirm"}}}, {"asks_always": True}),
    ("zed", {"agent": {"tool_permissions": {"default": "deny"}}}, {"allowed_tools": set()}),
    (
        "zed",
        {
            "agent": {
                "tool_permissions": {
                    "default": "deny",
                    "tools": {"mcp:x:read": {"default": "allow"}},
                }
            }
        },
        {"allowed_tools": {"read"}},
    ),
    (
        "zed",
        {
            "agent": {
                "tool_permissions": {
                    "default": "deny",
                    "tools": {
                        "mcp:x:read": {"default": "allow"},
                        "mcp:x:write": {"default": "deny"},
                    },
                }
            }
        },
        {"allowed_tools": {"read"}, "denied_tools": {"write"}},
    ),
    (
        "zed",
        profile_of(
            enable_all_context_servers=True,
            context_servers={"x": {"tools": {"write": False, "read": True}}},
        ),
        {"denied_tools": {"write"}},
    ),
    (
        "zed",
        profile_of(
            enable_all_context_servers=False,
            context_servers={"x": {"tools": {"write": False, "read": True}}},
        ),
        {"allowed_tools": {"read"}, "denied_tools": {"write"}},
    ),
    ("zed", profile_of(enable_all_context_servers=False), {"allowed_tools": set()}),
    ("zed", profile_of(), {"allowed_tools": set()}),
    ("zed", profile_of(enable_all_context_servers=None), {"allowed_tools": set()}),
    ("zed", profile_of(enable_all_context_servers="yes"), {"allowed_tools": set()}),
    (
        "zed",
        profile_of(context_servers={"x": {"tools": {"read": True}}}),
        {"allowed_tools": {"read"}},
    ),
    ("zed", {"agent": {"default_profile": "minimal"}}, {"allowed_tools": set()}),
    ("zed", {"agent": {"default_profile": "ask"}}, {"allowed_tools": set()}),
    (
        "zed",
        {"agent": {"default_profile": "minimal", "profiles": {"minimal": {"name": "m"}}}},
        {"allowed_tools": set()},
    ),
    (
        "zed",
        {"agent": {"profiles": {"write": {"enable_all_context_servers": False}}}},
        {"allowed_tools": set()},
    ),
]


@pytest.mark.parametrize(("place", "beside", "expected"), ROWS)
def test_setting_beside_the_servers_restricts_them(
    place: str, beside: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A setting that names x leaves y alone, and a denied tool has the place of that setting."""
    found = read(place, beside)
    assert found.problems == ()
    server = found.servers["x"]
    for field, value in expected.items():
        given = getattr(server, field)
        assert (value <= set(given)) if isinstance(value, set) else (given == value)
    for tool in expected.get("denied_tools", ()):
        assert "its file denies it" in (server.find_tool_denial(tool) or "")
        assert server.place_of("denied_tools") != server.place
    if "allowed_tools" in expected:
        assert server.find_tool_denial("other") is not None
    if any(mark in json.dumps(beside) for mark in ('["x"]', "x_", ":x:")):
        assert not found.servers["y"].disabled
        assert not found.servers["y"].asks_always


@pytest.mark.parametrize(
    ("place", "beside"),
    [
        ("mcp.json", {"disabledMcpServers": "x"}),
        ("mcp.json", {"disabledMcpServers": {"x": True}}),
        ("mcp.json", {"disabledMcpServers": "x", "disabledMcpjsonServers": "x"}),
        ("vscode", {"chat.mcp.access": "registry"}),
        ("gemini", {"tools": {"exclude": "x__write"}}),
        ("gemini", {"tools": ["x"]}),
        ("gemini", {"admin": {"mcp": {"enabled": "false"}}}),
        ("gemini", {"admin": {"mcp": {"enabled": 0}}}),
        ("gemini", {"admin": {"mcp": []}}),
        ("gemini", {"tools": {"exclude": [1]}}),
        ("gemini", {"tools": {"exclude": ["mcp_x_" + "a" * 300]}}),
        ("gemini", {"tools": {"exclude": ["mcp_x_wr*"]}}),
        ("gemini", {"tools": {"exclude": ["mcp_*_write"]}}),
        ("gemini", {"tools": {"exclude": ["write(a)"]}}),
        ("zed", {"agent": {"tool_permissions": "deny"}}),
        ("zed", {"agent": {"tool_permissions": {"default": "never"}}}),
        ("zed", {"agent": {"tool_permissions": {"tools": []}}}),
        ("zed", {"agent": {"default_profile": {}}}),
        ("zed", {"agent": {"default_profile": "of another file"}}),
        ("zed", {"agent": []}),
        ("zed", {"agent": "x"}),
        ("zed", {"agent": {"profiles": []}}),
        ("zed", {"agent": {"profiles": {"write": []}}}),
        ("zed", {"agent": {"profiles": {"write": {"enable_all_context_servers": "no"}}}}),
        ("zed", {"agent": {"profiles": {"write": {"context_servers": []}}}}),
        ("zed", {"agent": {"profiles": {"write": {"context_servers": {"x": []}}}}}),
        ("zed", {"agent": {"profiles": {"write": {"context_servers": {"x": {"tools": [1]}}}}}}),
        ("zed", {"agent": {"tool_permissions": []}}),
        ("zed", tools_of("mcp:x:*", default="deny")),
        ("zed", tools_of("mcp:x:write", default="never")),
    ],
)
def test_setting_beside_the_servers_that_is_not_understood_leaves_them_out(
    place: str, beside: dict[str, Any]
) -> None:
    found = read(place, beside)
    assert "x" not in found.servers
    assert "x" in found.broken
    problem = next(each for each in found.problems if each.server == "x")
    assert problem.restricts
    cure = "remove it"
    if str(problem.place.member).endswith("]"):
        cure = "name servers in `mcp.excluded`, and single tools here"
    assert problem.problem == f"restricts this server in a way that is not understood: {cure}"
    assert problem.place.member


@pytest.mark.parametrize(
    ("place", "beside", "member"),
    [
        ("mcp.json", '"disabledMcpServers": ["x"], "disabledMcpServers": []', "disabledMcpServers"),
        ("gemini", '"tools": {"exclude": ["x__*"]}, "tools": {}', "tools"),
        ("gemini", '"tools": {"exclude": ["x__*"], "exclude": []}', "tools.exclude"),
        ("vscode", '"chat.mcp.access": "none", "chat.mcp.access": "all"', '"chat.mcp.access"'),
        ("zed", '"agent": {"tool_permissions": {}}, "agent": {}', "agent"),
        (
            "zed",
            (
                '"agent": {"tool_permissions": {"tools": '
                '{"mcp:x:a": {"default": "deny", "default": "allow"}}}}'
            ),
            'agent.tool_permissions.tools."mcp:x:a".default',
        ),
    ],
)
def test_setting_that_is_there_twice_leaves_the_servers_out(
    place: str, beside: str, member: str
) -> None:
    """One of the two restricts, and programs read either."""
    file, servers = PLACES[place]
    entries = '{"x": {"command": "c"}}'
    entries = f'{{"servers": {entries}}}' if servers == "mcp" else entries
    found = read_config(f'{{"{servers}": {entries}, {beside}}}', file=file)
    assert found.broken == {"x"}
    assert {each.place.member for each in found.problems} == {member}


@pytest.mark.parametrize(
    ("place", "beside"),
    [
        ("mcp.json", {"disabledMcpServers": []}),
        ("mcp.json", {"disabledMcpServers": None}),
        ("mcp.json", {"chat.mcp.access": "none"}),  # a setting of another program
        ("claude", {"projects": {"/p": ["disabledMcpServers"], "/q": 1}}),
        ("mcp.json", {"enabledMcpjsonServers": ["y"], "enableAllProjectMcpServers": True}),
        ("mcp.json", {"deniedMcpServers": [{"serverName": "x"}]}),  # an administrator's, elsewhere
        ("vscode", {"chat.mcp.access": "all", "chat.mcp.enabled": True}),
        ("vscode", {"chat.mcp.access": True}),  # as older versions have it
        ("vscode", {"remote.disabledServers": ["x"]}),
        ("gemini", {"tools": {"exclude": ["run_shell_command(rm -rf)", "mcp_y_write"]}}),
        ("gemini", {"tools": {"core": ["read_file"], "allowed": ["write"]}}),
        ("gemini", {"tools": None, "admin": {"mcp": None}}),
        ("gemini", {"admin": {"mcp": {"enabled": True}}}),
        ("gemini", {"tools": {"exclude": [f"run_shell_command({'a' * 400})"]}}),
        ("zed", tools_of("terminal", default="deny")),
        ("zed", tools_of("mcp:other:write", default="deny")),
        ("zed", tools_of("mcp:x:write", default="allow", always_allow=[{"pattern": "a"}])),
        ("zed", {"agent": {"tool_permissions": {"default": "allow"}}}),
        ("zed", {"agent": {"profiles": {"other": {"enable_all_context_servers": False}}}}),
        ("zed", {"agent": None}),
        ("zed", {"agent": {"profiles": None, "tool_permissions": {"tools": None}}}),
        ("zed", profile_of(enable_all_context_servers=True)),
        ("zed", {"agent": {"profiles": {"write": {"context_servers": {"x": None}}}}}),
    ],
)
def test_setting_beside_the_servers_that_restricts_nothing_is_left_alone(
    place: str, beside: dict[str, Any]
) -> None:
    found = read(place, beside)
    assert found.problems == ()
    server = found.servers["x"]
    assert not server.disabled
    assert not server.asks_always
    assert server.find_tool_denial("write") is None
    if place == "zed":
        assert list(find_restrictions_beside("zed", ValueTree(beside), ["x", "y"])) == []


def test_name_that_is_there_twice_and_restricts_nothing_is_left_alone() -> None:
    text = '{"a": 1, "a": 2, "mcpServers": {"x": {"command": "c"}}}'
    assert read_config(text, file=".mcp.json").broken == set()


@pytest.mark.parametrize(
    ("beside", "member"),
    [
        ({"tools": ["x"]}, "tools"),
        ({"tools": {"exclude": "x"}}, "tools.exclude"),
        ({"admin": 1}, "admin"),
        ({"admin": {"mcp": []}}, "admin.mcp"),
        ({"admin": {"mcp": {"enabled": 1}}}, "admin.mcp.enabled"),
        ({"excludeTools": {}}, "excludeTools"),
        ({"tools": {"exclude": ["a", 1]}}, "tools.exclude[1]"),
    ],
)
def test_setting_of_gemini_cli_that_is_not_understood_has_its_place(
    beside: dict[str, Any], member: str
) -> None:
    assert {each.place.member for each in read("gemini", beside).problems} == {member}


@pytest.mark.parametrize(
    ("server", "entry", "tools"),
    [
        ("git", "mcp_git_repo_push", ["repo/push", "repo_push"]),
        ("git", "repo_push", ["repo/push"]),
        ("git", "git__repo_push", ["repo push"]),
        ("my server", "mcp_my_server_push", ["push"]),
        ("my server", "mcp__my_server__repo_push", ["repo/push"]),
        ("git", "mcp_git_a__b", ["a\N{GRINNING FACE}b"]),
        (
            "git",
            f"mcp_git_{'a' * 20}___{'a' * 28}_bbb",
            [f"{'a' * 60}/bbb"],
        ),
        ("git", f"{'a' * 28}___{'a' * 32}", ["a" * 64]),
    ],
)
def test_tool_that_gemini_cli_excludes_is_denied_by_the_name_that_it_writes(
    server: str, entry: str, tools: list[str]
) -> None:
    text = json.dumps(
        {"tools": {"exclude": [entry]}, "mcpServers": {server: {"command": "c"}, "b": {"url": ""}}}
    )
    found = read_config(text, file=".gemini/settings.json").servers[server]
    assert [found.find_tool_denial(tool) is not None for tool in tools] == [True] * len(tools)
    assert found.find_tool_denial("pushed") is None


@pytest.mark.parametrize(
    ("entry", "off", "broken"),
    [
        ("mcp_my_server_*", {"my server"}, set()),
        ("mcp_my server_*", {"my server"}, set()),
        ("my_server__*", {"my server"}, set()),
        # It matches tools of `git_hub`, too, or not, by the version.
        ("mcp_git_*", {"git"}, {"git_hub"}),
        (f"mcp_{'s' * 24}___*", set(), {"s" * 30}),
        ("mcp_my_server_re*", set(), {"my server"}),
        ("mcp_my server_re*", set(), {"my server"}),
    ],
)
def test_server_that_gemini_cli_excludes_is_off_by_the_name_that_it_writes(
    entry: str, off: set[str], broken: set[str]
) -> None:
    names = ("my server", "git", "git_hub", "s" * 30)
    text = json.dumps(
        {"tools": {"exclude": [entry]}, "mcpServers": {name: {"command": "c"} for name in names}}
    )
    found = read_config(text, file=".gemini/settings.json")
    assert {name for name, server in found.servers.items() if server.disabled} == off
    assert found.broken == broken
    for problem in found.problems:
        assert problem.problem.endswith(": name servers in `mcp.excluded`, and single tools here")


def test_long_entries_are_compared_with_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one was searched for each server: 30 of 100 KB with 1,000 servers took 24 s."""
    compared = []
    monkeypatch.setattr(_beside, "_may_begin", lambda *names: compared.append(names))
    text = json.dumps(
        {
            "tools": {"exclude": ["mcp_" + "a" * 1000 + "*", "mcp_" + "a" * 100 + "*"]},
            "mcpServers": {f"s{n}": {"command": "c"} for n in range(10)},
        }
    )
    assert len(read_config(text, file=".gemini/settings.json").broken) == 10
    assert len(compared) == 10 * 6


def test_long_list_beside_many_servers_leaves_them_out() -> None:
    """The comparison of each entry with each server would take long."""
    text = json.dumps(
        {
            "tools": {"exclude": ["a"] * 1001},
            "mcpServers": {f"s{n}": {"command": "c"} for n in range(100)},
        }
    )
    assert len(read_config(text, file=".gemini/settings.json").broken) == 100


@pytest.mark.parametrize("listed", ["x", {"x": True}, ["y", 1], ["x"]])
def test_list_of_one_project_that_is_not_understood_is_named(listed: Any) -> None:
    found = read("claude", {"projects": {"/p": {"disabledMcpServers": listed}}})
    assert [each.ignored for each in found.problems] == [True]
    assert read("claude", {"projects": {"/p": {"disabledMcpServers": None}}}).problems == ()


def test_list_of_one_project_in_claudes_own_file_is_named() -> None:
    """Which project is meant isn't known here, so the server is used."""
    beside = {"projects": {"/p": {"disabledMcpServers": ["x"]}, "/q": {"disabledMcpServers": []}}}
    found = read("claude", beside)
    assert not found.servers["x"].disabled
    (problem,) = found.problems
    assert problem.ignored
    assert str(problem).endswith(
        "turns servers off in one project, which is ignored here: "
        "`disabled` in a server's entry turns it off"
    )


@pytest.mark.parametrize(
    ("agent", "member"),
    [
        ({"default_profile": 1}, "default_profile"),
        ({"default_profile": 1, "profiles": {}}, "default_profile"),
        ({"default_profile": 1, "profiles": []}, "profiles"),
        ({"profiles": []}, "profiles"),
        ({"profiles": {"write": [1]}}, "profiles.write"),
        ({"profiles": {"write": []}}, "profiles.write"),
        ({"profiles": {"write": {"context_servers": []}}}, "profiles.write.context_servers"),
        (
            {"profiles": {"write": {"enable_all_context_servers": 1}}},
            "profiles.write.enable_all_context_servers",
        ),
        (
            {"default_profile": "ask", "profiles": {"ask": {"enable_all_context_servers": 1}}},
            "profiles.ask.enable_all_context_servers",
        ),
        ({"tool_permissions": []}, "tool_permissions"),
    ],
)
def test_zed_profile_that_is_not_understood_has_its_place(
    agent: dict[str, Any], member: str
) -> None:
    found = read("zed", {"agent": agent})
    assert found.broken == {"x", "y"}
    assert {each.place.member for each in found.problems} == {f"agent.{member}"}


@pytest.mark.parametrize(
    ("preset", "member"),
    [([], "x"), ({"tools": [1]}, "x.tools"), ({"tools": "a"}, "x.tools"), ("a", "x")],
)
def test_zed_preset_that_is_not_understood_leaves_only_its_server_out(
    preset: Any, member: str
) -> None:
    found = read("zed", profile_of(context_servers={"x": preset, "y": {"tools": {"a": True}}}))
    assert found.broken == {"x"}
    (problem,) = found.problems
    assert problem.place.member == f"agent.profiles.mine.context_servers.{member}"
    assert found.servers["y"].allowed_tools == ("a",)


@pytest.mark.parametrize(
    ("beside", "allowed", "denied"),
    [
        (
            profile_of(
                enable_all_context_servers=True,
                context_servers={"x": {"tools": {"a": False, "b": True, "c": 1}}},
            ),
            None,
            {"a", "c"},
        ),
        (
            profile_of(context_servers={"x": {"tools": {"a": False, "b": True, "c": 1}}}),
            {"b"},
            {"a", "c"},
        ),
        (
            {
                "agent": {
                    "tool_permissions": {
                        "default": "deny",
                        "tools": {
                            "mcp:x:a": {"default": "allow"},
                            "mcp:x:b": {"default": "confirm"},
                            "mcp:x:c": {"always_allow": []},
                            "mcp:y:d": {"default": "allow"},
                        },
                    }
                }
            },
            {"a", "b"},
            set(),
        ),
    ],
)
def test_zed_setting_restricts_just_the_tools_that_it_names(
    beside: dict[str, Any], allowed: set[str] | None, denied: set[str]
) -> None:
    server = read("zed", beside).servers["x"]
    assert (None if server.allowed_tools is None else set(server.allowed_tools)) == allowed
    assert set(server.denied_tools) == denied


@pytest.mark.parametrize(("size", "is_read"), [(300, True), (301, False)])
def test_name_of_up_to_300_characters_is_compared(size: int, is_read: bool) -> None:
    found = read("gemini", {"tools": {"exclude": ["mcp_x_".ljust(size, "a")]}})
    assert ("x" in found.servers) == is_read


@pytest.mark.parametrize(("same", "may_match"), [(27, False), (28, True)])
def test_pattern_is_compared_with_what_is_kept_of_a_long_name(same: int, may_match: bool) -> None:
    """Gemini CLI keeps 28 characters at the beginning of one."""
    server = "s" * 40
    pattern = f"mcp_{server}"[:same] + "t*"
    text = json.dumps({"tools": {"exclude": [pattern]}, "mcpServers": {server: {"command": "c"}}})
    assert (server in read_config(text, file=".gemini/settings.json").broken) == may_match


@pytest.mark.parametrize(
    ("place", "beside"),
    [
        ("gemini", {"tools": {"exclude": ["write"] * 5}}),
        ("zed", {"agent": {"tool_permissions": {"tools": {f"mcp:z:{n}": {} for n in range(5)}}}}),
    ],
)
def test_most_comparisons_of_entries_with_servers_are_made(
    place: str, beside: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five entries with two servers are ten."""
    monkeypatch.setattr(_beside, "_MAX_COMPARED", 10)
    assert read(place, beside).broken == set()
    monkeypatch.setattr(_beside, "_MAX_COMPARED", 9)
    assert read(place, beside).broken == {"x", "y"}


# -- Timeouts in two units -------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "file", "member", "seconds"), TIMEOUTS)
def test_timeout_is_in_the_unit_of_the_program(
    source: str, file: str, member: str, seconds: float | None
) -> None:
    """45 are 45 s or 45 ms, which is ignored."""
    if file.endswith(".toml"):
        text = f'[mcp_servers.x]\ncommand = "c"\n{member} = 45\n'
    elif "goose" in file:
        text = json.dumps({"extensions": {"x": {"cmd": "c", member: 45}}})
    else:
        servers = "context_servers" if "zed" in file else "mcpServers"
        text = json.dumps({servers: {"x": {"command": "c", member: 45}}})
    found = read_config(text, file=file)
    assert found.servers["x"].call_timeout == seconds
    assert not found.broken
    problems = [each.problem for each in found.problems]
    ignored = "is in milliseconds, and ignored below 1000: write 30000 for 30 seconds"
    assert problems == ([ignored] if seconds is None else [])
    later = read_config(text.replace("45", "45000"), file=file).servers["x"].call_timeout
    assert later == (45.0 if seconds is None else 45000.0)


def test_ignored_timeout_in_the_file_of_an_administrator_stops_nothing() -> None:
    text = '{"mcpServers": {"x": {"command": "c", "timeout": 30}}}'
    merged = merge_servers([("managed", read_config(text, file="managed-mcp.json"))])
    assert list(merged.servers) == ["x"]
    assert [each.ignored for each in merged.problems] == [True]
    with pytest.raises(InvalidConfig):
        merge_servers([("managed", read_config('{"mcpServers": 1}', file="managed-mcp.json"))])


def test_short_timeout_in_an_entry_of_a_program_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"x\.timeout: is in milliseconds, and ignored below 1000"):
        read_entry("x", {"command": "c", "timeout": 30})


def test_zed_permission_of_another_form_is_a_problem_of_its_server() -> None:
    """It may deny a tool, so the server is not used."""
    permissions = {
        "default": "deny",
        "tools": {"mcp:x:read": {"default": "allow"}, "mcp:x:write": "deny"},
    }
    config = read("zed", {"agent": {"tool_permissions": permissions}})
    assert "x" not in config.servers
    assert any("mcp:x:write" in str(each) for each in config.problems)
