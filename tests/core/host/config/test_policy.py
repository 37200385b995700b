"""Lists of allowed and denied servers, by name, command and address."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import (
    ConfigVariables,
    InvalidConfig,
    ServerConfig,
    ServerPolicy,
    expand_server,
    find_denial,
    read_config,
    read_policy,
)
from mcp_core.host.config._policy import matches_text
from mcp_core.host.config._url_readings import plain_host, read_target
from tests.levels import fewer_examples


def policy_of(allowed: list[Any] | None = None, denied: list[Any] | None = None) -> ServerPolicy:
    members = {"allowedMcpServers": allowed, "deniedMcpServers": denied}
    found = {name: entries for name, entries in members.items() if entries is not None}
    return read_policy(json.dumps(found), file="managed.json")


def server(entry: dict[str, Any], name: str = "x") -> ServerConfig:
    return read_config(json.dumps({"mcpServers": {name: entry}}), file=".mcp.json").servers[name]


def remote(url: str, name: str = "x", type: str = "http") -> ServerConfig:
    return server({"type": type, "url": url}, name)


NPX = server({"command": "npx", "args": ["-y", "server"]})

# The tables of code.claude.com/docs/en/managed-mcp, and what they leave open.
URLS = [
    ("https://mcp.example.com/*", "https://mcp.example.com/api", True),
    ("https://mcp.example.com/*", "https://mcp.example.com/", True),
    ("https://mcp.example.com/*", "https://mcp.example.com", True),
    ("https://mcp.example.com/*", "https://MCP.Example.com./api", True),
    ("https://Mcp.Example.com./*", "https://mcp.example.com/api", True),
    ("https://mcp.example.com/*", "https://mcp.example.com.evil.org/", False),
    ("https://mcp.example.com/*", "https://evil.org/mcp.example.com/", False),
    ("https://mcp.example.com/*", "https://mcp.example.com:8443/", False),
    ("https://mcp.example.com/*", "https://mcp.example.com:443/", True),
    ("https://mcp.example.com/*", "http://mcp.example.com/", False),
    ("https://mcp.example.com/*", "https://mcp.example.com@evil.org/", False),
    ("https://mcp.example.com", "https://mcp.example.com/any/path?q", True),
    ("https://*.example.com/*", "https://a.b.example.com/x", True),
    ("https://*.example.com/*", "https://example.com/x", False),
    ("https://*.example.com/*", "https://evil.org/.example.com/x", False),
    ("https://*.example.com/*", "https://evil.org?.example.com/x", False),
    ("http://localhost:*/*", "http://localhost:3000/mcp", True),
    ("http://localhost:*/*", "http://localhost/mcp", True),
    ("http://localhost:3000", "http://localhost:3001/mcp", False),
    ("http://localhost:3000", "http://localhost:3000/mcp", True),
    ("*://mcp.example.com/*", "http://mcp.example.com/", True),
    ("https://h/Api/*", "https://h/api/x", False),
    ("https://h/api", "https://h/api/x", False),
    ("https://h/api", "https://h/api?key=1", True),
    ("https://h/api?key=*", "https://h/api?key=1", True),
    ("https://h/api?key=*", "https://h/api", False),
    ("https://h/api/*", "https://h/api/../other", False),
    ("https://h/api/*", "https://h/api/%2e%2E/other", False),
    ("https://[::1]:*/*", "https://[::1]:8443/mcp", True),
    ("https://bücher.example/*", "https://xn--bcher-kva.example/", True),
    ("*", "https://anything.example/", True),
    ("*", "not a URL", False),
]


# Each is /admin/x to some server or proxy.
SAME_PATHS = [
    "/admin/x", "//admin/x", "/./admin/x", "/a/../admin/x", "/a/..;/admin/x", "/a/..;b=1/admin/x",
    "/admin;a=1/x", "/admin/;/x", "/%61dmin/x", "/%2561dmin/x", "/%252561dmin/x", "/Admin/x",
    "/a/%2e%2e/admin/x", "/a/%252e%252e/admin/x", "/%2fadmin/x", "/admin%2fx", "/admin%252fx",
    "/a\\..\\admin\\x", "/admin%5cx", "/admin%09/x", "/%u0061dmin/x", "/admin%c0%afx",
    "/a/%c0%ae%c0%ae/admin/x", "/ａdmin/x", "/a%2f..%2fadmin%2fx", "/a/b/../../admin/x",
    "/admin/x%00.png", "/%" + "25" * 70 + "61dmin/x",
]  # fmt: skip
OTHER_PATHS = [
    "/",
    "/x/admin",
    "/administrator/x",
    "/adminx",
    "/a/b;admin/x",
    "/?/admin/x",
    "/admi",
]
DENIED = "https://h/admin/*"
LOOPBACK = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1", "127.0.0.1.",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "１２７.0.0.1", "127%2e0.0.1",
]  # fmt: skip
# Numbers and dots that no parser takes for an address.
NO_ADDRESSES = [
    "1.2.3.4.0", "1.2.3.4.5", "1_0.0.0.1", "+1.0.0.1", "256.0.0.1", "1.2.3.256", "09.0.0.1",
    "1..2", "4294967296", "0.0x1000000", "1" * 20, "a.b", ":::1",
]  # fmt: skip
BOOKS = ["BÜCHER.example", "bu\u0308cher.example", "xn--bcher-kva.example", "ｂücher.example"]


@pytest.mark.parametrize("host", NO_ADDRESSES)
def test_name_that_is_like_an_address_stays_a_name(host: str) -> None:
    assert plain_host(host) == host


@pytest.mark.parametrize(
    ("host", "address"),
    [("4294967295", "255.255.255.255"), ("1.2.3", "1.2.0.3"), ("1.65535", "1.0.255.255")],
)
def test_address_with_few_parts_is_filled_up(host: str, address: str) -> None:
    assert plain_host(host) == address


@pytest.mark.parametrize(("pattern", "url", "matches"), URLS)
def test_allowed_url_matches_part_by_part(pattern: str, url: str, matches: bool) -> None:
    denial = find_denial(policy_of(allowed=[{"serverUrl": pattern}]), remote(url))
    assert denial == (None if matches else "its address is not in allowedMcpServers")


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("https://*.evil.org/*", "https://a.evil.org/x", True),
        ("https://*.evil.org/*", "https://a.evil.org:8443/x", True),
        ("https://evil.org:443/*", "https://evil.org:8443/x", False),
        ("https://evil.org/a/*", "https://evil.org/b/../a/x", True),
        ("https://evil.org/admin/*", "https://evil.org/%61dmin/x", True),
        ("https://evil.org/admin/*", "https://evil.org/other", False),
        ("https://evil.org/*", "https://good.org/evil.org/", False),
        ("https://evil.org/*", "https://u:p@evil.org/", True),
        *((DENIED, f"https://h{path}", True) for path in SAME_PATHS),
        *((DENIED, f"https://h{path}", False) for path in OTHER_PATHS),
        *(("http://127.0.0.1/*", f"http://{host}/x", True) for host in LOOPBACK),
        *(
            ("http://[::1]/*", f"http://{host}/x", True)
            for host in ("[0:0:0:0:0:0:0:1]", "[::0001]")
        ),
        *(("https://bücher.example/*", f"https://{host}/x", True) for host in BOOKS),
        ("https://0x7f.1/*", "https://127.0.0.1/", True),
        ("https://evil.org/*", "https://evil.org\\.good.org/", True),
        ("https://evil.org/*", "https://evil%2eorg/", True),
        ("https://evil.org/*", "https://EVIL.org.:8443/", True),
        ("https://h/a?key=*", "https://h/a?%6bey=1", True),
        ("https://h/a?key=*", "https://h/%2561?key=1", True),
    ],
)
def test_denied_url_is_read_strictly(pattern: str, url: str, matches: bool) -> None:
    denial = find_denial(policy_of(denied=[{"serverUrl": pattern}]), remote(url))
    assert denial == ("denied by managed.json:1:23: deniedMcpServers[0]" if matches else None)


@pytest.mark.parametrize(
    ("pattern", "url", "allowed"),
    [
        ("https://h/api/*", "https://h/api/x", True),
        ("https://h/api/*", "https://h/api/a%20b", True),
        ("https://h/a%20b/*", "https://h/a%20b/x", True),
        ("https://h/api/*", "https://h/api//x", True),  # below it in each reading
        ("https://h/api/*", "https://h/api;v=1/x", False),
        ("https://h/api/*", "https://h/%61pi/x", False),
        ("https://h/api/*", "https://h//api/x", False),
        ("https://h/api/*", "https://h/api/..;/admin", False),
        ("https://h/api/*", "https://h/api/%2e%2e/admin", False),
        ("https://h/api/*", "https://h/api/%252e%252e/admin", False),
        ("https://h/api/*", "https://h/api/%252e%252e%252fadmin", False),
        ("https://h/api/*", "https://h/api/..%5cadmin", False),
        ("https://h/api/*", "https://h/api/%c0%ae%c0%ae/admin", False),
        ("https://h/api/*", "https://h/api/%u002e%u002e/admin", False),
        ("https://h/api/*", "https://h/api/．．/admin", False),
        ("https://h/api/*", "https://h/api/%" + "25" * 70 + "61", False),  # too many readings
        ("https://h/api/*", "https://h/api/" + "x" * 5_000, False),  # too long to be compared
        ("https://*.good.org/*", "https://evil.org\\.good.org/", False),
        ("https://*.good.org/*", "https://evil.org%2f.good.org/", False),
        ("http://127.0.0.1/*", "http://127.0.0.1/x", True),
        ("http://127.0.0.1/*", "http://0x7f.1/x", False),
        ("http://[::1]/*", "http://[0:0:0:0:0:0:0:1]/x", True),
        ("http://[::ffff:127.0.0.1]/*", "http://[::ffff:127.0.0.1]/x", False),
    ],
)
def test_allowed_url_is_allowed_in_all_readings(pattern: str, url: str, allowed: bool) -> None:
    denial = find_denial(policy_of([{"serverUrl": pattern}]), remote(url))
    assert denial == (None if allowed else "its address is not in allowedMcpServers")


PIECES = [
    "/",
    "//",
    "a",
    "b",
    ".",
    "..",
    ";",
    ";x",
    "\\",
    "%2f",
    "%252f",
    "%2e",
    "%61",
    "%25",
    "%5c",
    "A",
]


@fewer_examples(2)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_reading_of_an_address_decides_as_the_address(path: str) -> None:
    """If a reading is denied, so is the address; if the address is allowed, so is each reading."""
    denying, allowing = (
        policy_of(denied=[{"serverUrl": "https://h/a/*"}]),
        policy_of([{"serverUrl": "https://h/a/*"}]),
    )
    address = remote(f"https://h/{path}")
    for reading in read_target(f"/{path}") or ():
        if not reading.startswith("/") or any(each in reading for each in "\0#?\t\n"):
            continue
        read = remote(f"https://h{reading}")
        if find_denial(denying, read) is not None:
            assert find_denial(denying, address) is not None
        if find_denial(allowing, address) is None:
            assert find_denial(allowing, read) is None


@given(st.text(max_size=40))
def test_readings_of_any_path_are_few_and_readings_of_readings_are_no_others(path: str) -> None:
    readings = read_target(path.partition("?")[0])
    if readings is not None:
        assert len(readings) <= 64
        for each in readings:
            if "?" not in each:
                assert (read_target(each) or frozenset()) <= readings


@pytest.mark.perf
@pytest.mark.parametrize(
    "path", ["%25" * 1300, "/" * 4000, ";" * 4000, "../" * 1300, "\\" * 4000, "a;/" * 1300]
)
def test_readings_of_a_long_path_take_little_time(path: str) -> None:
    start = time.process_time()
    read_target(f"/{path}")
    assert time.process_time() - start < 2


def test_websocket_url_has_its_own_scheme() -> None:
    policy = policy_of(allowed=[{"serverUrl": "wss://h/*"}])
    assert find_denial(policy, remote("wss://h/x", type="ws")) is None
    assert find_denial(policy, remote("https://h/x")) is not None


NAME, COMMAND = {"serverName": "x"}, {"serverCommand": ["npx", "-y", "server"]}
URL = {"serverUrl": "https://h/*"}


@pytest.mark.parametrize(
    ("allowed", "stdio", "http"),
    [
        (None, True, True),
        ([], False, False),
        ([NAME], True, True),
        ([{"serverName": "X"}], False, False),
        ([COMMAND], True, False),
        ([URL], False, True),
        ([NAME, {"serverCommand": ["node"]}], False, True),
        ([NAME, {"serverUrl": "https://other/*"}], True, False),
        ([{"serverCommand": ["npx", "server"]}], False, False),
        ([{"serverCommand": ["npx", "-y", "server", "--flag"]}], False, False),
        ([COMMAND, URL], True, True),
    ],
)
def test_allowed_name_counts_without_stricter_entries_of_the_kind(
    allowed: list[Any] | None, stdio: bool, http: bool
) -> None:
    policy = policy_of(allowed)
    assert (find_denial(policy, NPX) is None) == stdio
    assert (find_denial(policy, remote("https://h/x")) is None) == http


# -- Commands --------------------------------------------------------------------------------------

REDIRECTING = """
    PATH Path NODE_OPTIONS NODE_PATH npm_config_registry NPM_CONFIG_PREFIX npm-config-userconfig
    npm_config_//registry.npmjs.org/:_authToken LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES
    PYTHONPATH PYTHONSTARTUP PYTHONHOME PIP_INDEX_URL UV_INDEX_URL UV_PYTHON UV_DEFAULT_INDEX
    VIRTUAL_ENV BASH_ENV ENV IFS ZDOTDIR BASH_FUNC_npx%% PERL5OPT PERL5LIB RUBYOPT RUBYLIB GEM_HOME
    JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH GIT_SSH_COMMAND GIT_CONFIG_GLOBAL DOCKER_HOST
    HTTPS_PROXY https_proxy ALL_PROXY NO_PROXY SSL_CERT_FILE NODE_EXTRA_CA_CERTS HOME USERPROFILE
    XDG_CONFIG_HOME APPDATA PATHEXT ComSpec DOTNET_STARTUP_HOOKS GOPROXY GOFLAGS RUSTC_WRAPPER
    LUA_INIT DENO_DIR BUN_INSTALL YARN_RC_FILENAME COREPACK_HOME GCONV_PATH GLIBC_TUNABLES TMPDIR
    ELECTRON_RUN_AS_NODE PUPPETEER_EXECUTABLE_PATH PHPRC CARGO_HOME SOME_PLUGIN_PATH MY_PRELOAD
""".split()


@pytest.mark.parametrize("name", REDIRECTING)
def test_allowed_command_with_a_variable_that_redirects_code_is_refused(name: str) -> None:
    """An allowed `npx` with `NODE_OPTIONS`, say, would run any code under the allowed name."""
    policy = policy_of([COMMAND, NAME])
    entry = {"command": "npx", "args": ["-y", "server"], "env": {"GOOD": "1", name: "/x"}}
    denial = find_denial(policy, server(entry))
    assert denial is not None
    assert denial.startswith("allowedMcpServers allows commands, and the variable ")
    assert (
        f"(.mcp.json:1:{json.dumps({'mcpServers': {'x': entry}}).index(json.dumps(name)) + 1}:"
        in (denial)
    )
    # The names in a file of variables, and the list of variables to pass on.
    with_file = server({"command": "npx", "args": ["-y", "server"]})
    assert find_denial(policy, with_file, ["GOOD"]) is None
    assert find_denial(policy, with_file, ["GOOD", name]) is not None
    codex = "[mcp_servers.x]\ncommand = 'npx'\nargs = ['-y', 'server']\nenv_vars = "
    forwarded = read_config(codex + json.dumps([name]), file="config.toml").servers["x"]
    denial = find_denial(policy, forwarded)
    assert denial is not None
    assert "(config.toml:4:1: mcp_servers.x.env_vars)" in denial


@pytest.mark.parametrize(
    "name",
    """
    GITHUB_TOKEN API_KEY COMPANY_API_URL DATABASE_URL GITHUB_HOST GOOGLE_API_KEY LOG_LEVEL DEBUG
    NODE_ENV PYTHONUNBUFFERED TZ LANG LC_ALL AWS_REGION ALLOWED_DIRS PORT MODE ROUTER
    """.split(),
)
def test_allowed_command_keeps_variables_that_are_for_the_server(name: str) -> None:
    entry = {"command": "npx", "args": ["-y", "server"], "env": {name: "${VALUE}"}}
    assert find_denial(policy_of([COMMAND]), server(entry)) is None


def test_variable_that_redirects_code_is_refused_before_values_are_known() -> None:
    entry = {"command": "${NPX}", "args": ["-y", "server"], "env": {"NODE_OPTIONS": "${X}"}}
    assert "NODE_OPTIONS" in (find_denial(policy_of([COMMAND]), server(entry)) or "")
    # Without a list of commands no command is bound.
    for policy in policy_of([NAME]), policy_of(denied=[COMMAND]), policy_of(None):
        assert find_denial(policy, server(entry)) is None
    assert find_denial(policy_of([URL, COMMAND]), remote("https://h/x")) is None


def test_file_of_variables_is_refused_until_it_was_read() -> None:
    entry = {"command": "npx", "args": ["-y", "server"], "envFile": "/e"}
    text = json.dumps({"mcpServers": {"x": entry}})
    config = read_config(text, file=".cursor/mcp.json").servers["x"]
    policy = policy_of([COMMAND])
    assert find_denial(policy, config) is None
    expanded = expand_server(config, ConfigVariables())
    assert "are not known yet" in (find_denial(policy, expanded) or "")
    assert find_denial(policy, expanded, ["GOOD"]) is None
    denial = find_denial(policy, expanded, ["GOOD", "LD_PRELOAD"]) or ""
    assert "LD_PRELOAD (.cursor/mcp.json:1:" in denial
    assert "mcpServers.x.envFile)" in denial


def test_allowed_command_in_another_directory_is_refused() -> None:
    policy = policy_of([{"serverCommand": ["node", "server.js"]}])
    entry = {"command": "node", "args": ["server.js"]}
    assert find_denial(policy, server(entry)) is None
    denial = find_denial(policy, server({**entry, "cwd": "/tmp/other"}))
    assert denial is not None
    assert "a directory (.mcp.json:1:" in denial


@pytest.mark.parametrize(
    "program",
    [
        "/usr/bin/npx", "./npx", "~/bin/npx", "npx.cmd", "NPX.CMD", "npx.exe", "NPX", "npx.ps1",
        "C:\\Program Files\\nodejs\\npx.cmd", "//server/share/npx.EXE", "npx.", "/a/../b/npx",
        " npx",
    ],
)  # fmt: skip
def test_denied_command_is_compared_without_its_directory(program: str) -> None:
    denied = server({"command": program, "args": ["-y", "server"]})
    for entry in COMMAND, {"serverCommand": ["/opt/bin/NPX.exe", "-y", "server"]}:
        assert find_denial(policy_of(denied=[entry]), denied) is not None
    assert find_denial(policy_of([COMMAND]), denied) is not None  # that one is compared exactly


@pytest.mark.parametrize(
    ("program", "args"),
    [("npx", ["server"]), ("npxx", ["-y", "server"]), ("/npx/node", ["-y", "server"]),
     ("npx", ["-y", "Server"]), ("np", ["x", "-y", "server"])],
)  # fmt: skip
def test_denied_command_is_that_with_its_arguments(program: str, args: list[str]) -> None:
    policy = policy_of(denied=[COMMAND])
    assert find_denial(policy, server({"command": program, "args": args})) is None


def test_denied_command_is_found_while_other_texts_have_variables() -> None:
    entry = {"command": "/bin/npx", "args": ["-y", "server"], "env": {"A": "${A}"}}
    assert find_denial(policy_of(denied=[COMMAND]), server(entry)) is not None


@pytest.mark.parametrize("entry", [NAME, COMMAND])
def test_denied_entry_wins_over_allowed_ones(entry: dict[str, Any]) -> None:
    policy = policy_of(allowed=[NAME, COMMAND], denied=[{"serverName": "y"}, entry])
    denial = find_denial(policy, NPX)
    assert denial is not None
    assert denial.endswith("deniedMcpServers[1]")
    assert find_denial(policy_of(denied=[]), NPX) is None


def test_server_with_variables_is_decided_with_their_values() -> None:
    config = remote("https://${HOST}/x")
    allowed, denied = policy_of(allowed=[URL]), policy_of(denied=[URL])
    assert find_denial(allowed, config) is None
    assert find_denial(denied, config) is None
    good = expand_server(config, ConfigVariables(environ={"HOST": "h"}))
    other = expand_server(config, ConfigVariables(environ={"HOST": "other"}))
    assert find_denial(allowed, good) is None
    assert find_denial(allowed, other) is not None
    assert find_denial(denied, good) is not None
    assert find_denial(denied, other) is None
    # Their values do not matter here.
    assert find_denial(policy_of(allowed=[]), config) is not None
    assert find_denial(policy_of(denied=[NAME]), config) is not None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "1:1: the file must be an object"),
        ('{"allowedMcpServers": {}}', "1:2: allowedMcpServers: must be an array"),
        ('{"deniedMcpServers": [],\n"deniedMcpServers": []}', "2:1: deniedMcpServers: is there"),
        ('{"deniedMcpServers": ["x"]}', "1:23: deniedMcpServers[0]: must be an object with one"),
        ('{"deniedMcpServers": [{}]}', "1:23: deniedMcpServers[0]: must be an object with one"),
        ('{"deniedMcpServers": [{"name": "x"}]}', "1:23: deniedMcpServers[0]: must be an obj"),
        (
            '{"deniedMcpServers": [{"serverName": "x", "serverUrl": "*"}]}',
            "1:23: deniedMcpServers[0]: must be an object with one",
        ),
        (
            '{"deniedMcpServers": [{"serverName": 1}]}',
            "1:24: deniedMcpServers[0].serverName: must be a string, not a number",
        ),
        ('{"deniedMcpServers": [{"serverName": " x"}]}', "1:24: deniedMcpServers[0].serverName:"),
        ('{"allowedMcpServers": [{"serverName": "a.b"}]}', "1:25: allowedMcpServers[0].serverN"),
        ('{"deniedMcpServers": [{"serverCommand": []}]}', "1:23: deniedMcpServers[0]: needs a"),
        ('{"deniedMcpServers": [{"serverCommand": "x"}]}', "1:24: deniedMcpServers[0].serverCo"),
        ('{"deniedMcpServers": [{"serverUrl": "h/*"}]}', "1:24: deniedMcpServers[0].serverUrl: "),
        ('{"deniedMcpServers": [{"serverUrl": "https://${H}"}]}', "1:23: deniedMcpServers[0]: has"),
        ('{"deniedMcpServer": [{"serverName": "x"}]}', "1:2: deniedMcpServer: restricts servers, "),
        ('{"deniedMCPServers": [{"serverName": "x"}]}', "1:2: deniedMCPServers: restricts serve"),
        ('{"denied_mcp_servers": [{}]}', "1:2: denied_mcp_servers: restricts servers, and is not"),
        ('{"blockedServers": ["x"]}', "1:2: blockedServers: restricts servers, and is not unde"),
        ('{"allowManagedMcpServersOnly": true}', "1:2: allowManagedMcpServersOnly: restricts se"),
    ],
)
def test_read_policy_wrong_entry_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        read_policy(text, file="f")
    assert str(caught.value).startswith(f"f:{problem}")
    assert len(caught.value.problems) == 1


def test_read_policy_empty_file_allows_all() -> None:
    assert read_policy(b"", file="f") == ServerPolicy(allowed=None, denied=())
    assert policy_of([]).allowed == ()
    other = (
        '{"mcpServers": {"deny": {}}, "$schema": "x", "blockedServers": [], "disableAll": false}'
    )
    assert read_policy(other, file="f") == ServerPolicy()


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [("a", "a", True), ("a", "ab", False), ("*", "", True), ("a*a", "a", False),
     ("a*a", "aa", True), ("a*b*c", "axxbxc", True), ("a*b*b", "ab", False), ("**", "x", True),
     ("a*c", "ab", False), ("a*", "b", False), ("*a", "ab", False)],
)  # fmt: skip
def test_star_stands_for_any_text(pattern: str, text: str, matches: bool) -> None:
    assert matches_text(pattern, text) == matches


@pytest.mark.perf
def test_many_stars_take_linear_time() -> None:
    start = time.process_time()
    assert not matches_text("*a" * 5_000 + "b*c", "a" * 100_000 + "c")
    assert time.process_time() - start < 1


@given(st.text(), st.text(alphabet="ab*/:.?"))
def test_find_denial_any_pattern_and_address_is_decided(url: str, pattern: str) -> None:
    config = remote("https://h/" + url.replace("\0", "").encode("utf-8", "replace").decode())
    try:
        policy = policy_of(allowed=[{"serverUrl": f"https://h/{pattern}"}])
    except InvalidConfig:
        return
    assert find_denial(policy, config) in (None, "its address is not in allowedMcpServers")


@pytest.mark.parametrize(
    ("path", "escapes", "readings"),
    [("/a", 62, 64), ("/a", 63, None), ("/a;b", 30, 64), ("/a;b", 31, None)],
)
def test_target_has_up_to_64_readings(path: str, escapes: int, readings: int | None) -> None:
    """Each reading of the path with each one of the query, which may be decoded again and again."""
    found = read_target(f"{path}?%{'25' * escapes}41")
    assert (None if found is None else len(found)) == readings
