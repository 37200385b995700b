"""`mcp-trio login`, stored tokens, and tokens given by the user."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from functools import partial
from subprocess import PIPE
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
import trio

from mcp_core.auth import AuthorizationFailed
from mcp_trio import FileStorage
from mcp_trio.cli import main
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._session import Target, _explain_errors
from tests.fakes.keychain import FileKeychain, LockedKeychain, configure
from tests.harness.world.command import COMMAND, GREETER, run
from tests.harness.world.oauth import oauth_world, state_in
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.harness.world.oauth import OAuthWorld

# A browser that also writes its argument into a file, as `ps` shows it to other users. The text has
# no colon, which separates browsers in the environment variable.
VISITS = (
    "import os, sys, urllib.request;"
    "print(sys.argv[1], file=open(os.environ['ARGUMENTS'], 'a'));"
    "urllib.request.urlopen(sys.argv[1], timeout=10).read()"
)
BROWSER = f"{shlex.join([sys.executable, '-c', VISITS])} %s"


@pytest.fixture
async def world() -> AsyncIterator[OAuthWorld]:
    async with oauth_world() as world:
        yield world


async def run_command(home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {"XDG_DATA_HOME": str(home), "BROWSER": BROWSER, **env}
    environment["ARGUMENTS"] = str(home / "arguments")
    result = await trio.to_thread.run_sync(partial(run, *words, env=environment))
    assert "CANARY" not in result.stdout + result.stderr
    return result


async def test_login_token_is_used_by_other_commands(world: OAuthWorld, tmp_path: Path) -> None:
    result = await run_command(tmp_path, "login", world.url)
    assert result.returncode == 0, result.stderr
    assert "log in with your browser" in result.stderr
    page = result.stderr.partition("go to ")[2].split()[0]
    started = (tmp_path / "arguments").read_text()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/start/[\w-]{43}\n", started)
    assert state_in(page) not in started
    assert result.stderr.endswith("mcp-trio: logged in; the other commands use this login now\n")
    result = await run_command(tmp_path, "inspect", "--revision", "2025-11-25", world.url)
    assert "add" in result.stdout
    assert world.tokens == 1


async def test_login_without_browser_prints_the_address_only(
    world: OAuthWorld, tmp_path: Path
) -> None:
    """The user may open it on another machine, whose port is forwarded to this one."""
    words = *COMMAND[1:], "login", "--no-browser", world.url
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "BROWSER": "false %s"}
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(
                trio.run_process,
                [sys.executable, *words],
                env=environment,
                stderr=PIPE,
                check=False,
            )
        )
        line = b""
        while not line.endswith(b"\n"):
            line += await process.stderr.receive_some()
        page = line.decode().removeprefix("mcp-trio: log in at ").strip()
        assert page.startswith(f"{world.root}/authorize?")
        await trio.to_thread.run_sync(lambda: urlopen(page, timeout=PATIENCE).read())
        line = await process.stderr.receive_some()
        assert line.startswith(b"mcp-trio: logged in")


@pytest.mark.parametrize("url", ["{url}", "${{PLACE}}"])
async def test_login_at_configured_server_is_used_by_its_name(
    world: OAuthWorld, tmp_path: Path, url: str
) -> None:
    """The URL may be a variable; the token belongs to its value, and one login is enough."""
    path = tmp_path / ".config" / "mcp-trio" / "mcp.json"
    path.parent.mkdir(parents=True)
    entry = {"type": "http", "url": url.format(url=world.url)}
    path.write_text(json.dumps({"mcpServers": {"oauth": entry}}))
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "PLACE": world.url}
    env["XDG_STATE_HOME"] = str(tmp_path / "state")
    inspect = ["inspect", "--revision", "2025-11-25", "--server", "oauth"]
    result = await run_command(tmp_path, *inspect, **env)
    assert result.returncode == 3
    assert "`mcp-trio login --server oauth` gets a token" in result.stderr
    result = await run_command(tmp_path, "login", "--server", "oauth", **env)
    assert (result.returncode, "logged in" in result.stderr) == (0, True), result.stderr
    result = await run_command(tmp_path, *inspect, **env)
    assert "add" in result.stdout
    assert world.tokens == 1


async def test_login_again_replaces_token_only_on_success(
    world: OAuthWorld, tmp_path: Path
) -> None:
    for scope in "one", "two":
        result = await run_command(tmp_path, "login", "--scope", scope, world.url)
        assert result.returncode == 0, result.stderr
    world.token_error = "invalid_grant"
    result = await run_command(tmp_path, "login", world.url)
    assert result.returncode == 3
    assert list(world.scopes.values()) == ["one", "two"]
    result = await run_command(tmp_path, "inspect", "--revision", "2025-11-25", world.url)
    assert result.returncode == 0, result.stderr
    assert world.posted[-1][1] == "CANARY-token-2"


async def test_login_client_id_is_bound_to_one_authorization_server(
    world: OAuthWorld, tmp_path: Path
) -> None:
    """A compromised MCP server must not make the next login send the client id elsewhere."""
    kept = FileStorage(tmp_path / "mcp-trio" / "tokens")
    assert (await run_command(tmp_path, "login", "--client-id", "us", world.url)).returncode == 0
    world.good.clear()
    result = await run_command(
        tmp_path, "inspect", "--revision", "2025-11-25", world.url
    )  # uses the stored client id
    assert result.returncode == 0, result.stderr
    assert world.requests[-1][1] == {
        "grant_type": "refresh_token", "refresh_token": "CANARY-refresh-1", "client_id": "us",
        "resource": world.url,
    }  # fmt: skip
    assert kept.load("issuer:us") == world.root.encode()
    kept.save("issuer:us", b"https://as.example")
    result = await run_command(tmp_path, "login", "--client-id", "us", world.url)
    assert result.returncode == 3
    assert "was made for 'https://as.example'" in result.stderr
    assert world.tokens == 2
    words = "login", "--client-id", "us", "--issuer", world.root, world.url
    result = await run_command(tmp_path, *words)
    assert result.returncode == 0, result.stderr


async def test_login_client_secret_is_stored_with_tokens(world: OAuthWorld, tmp_path: Path) -> None:
    """The secret need not be given again. It is stored in a file that only the user can read."""
    world.methods, secret = ["client_secret_post"], "CANARY-secret"
    words = "login", "--client-id", "us", "--client-secret-env", "OURS", "--issuer"
    result = await run_command(tmp_path, *words, "https://as.example", world.url, OURS=secret)
    assert result.returncode == 3
    assert "was made for 'https://as.example'" in result.stderr
    result = await run_command(tmp_path, *words, world.root, world.url, OURS=secret)
    assert result.returncode == 0, result.stderr
    assert "/register" not in dict(world.requests)
    for command in "inspect", "inspect":
        world.good.clear()
        result = await run_command(tmp_path, command, "--revision", "2025-11-25", world.url)
        assert result.returncode == 0, result.stderr
    shown = [fields.get("client_secret") for path, fields in world.requests if path == "/token"]
    assert shown == [secret] * 3
    files = [*(tmp_path / "mcp-trio" / "tokens").iterdir()]
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * len(files)
    assert sum(secret in file.read_text() for file in files) == 1


async def test_login_settings_are_stored_and_used_by_other_commands(
    world: OAuthWorld, tmp_path: Path
) -> None:
    """With an authorization server like a big cloud's: another issuer, no list for PKCE."""
    world.deviate()
    settings = {
        "--metadata-issuer": ["--metadata-issuer", "https://as.example/{tenant}"],
        "--assume-pkce": ["--assume-pkce"],
        "--no-resource": ["--no-resource", "--scope", "api://x/a"],
    }
    given = ["--issuer", world.root]
    for option, words in settings.items():
        result = await run_command(tmp_path, "login", *given, world.url)
        assert result.returncode == 3
        assert f"{option}`)" in result.stderr, "the refusal names what would help"
        given += words
    result = await run_command(tmp_path, "login", *given, world.url)
    assert result.returncode == 0, result.stderr
    world.good.clear()
    result = await run_command(tmp_path, "inspect", "--revision", "2025-11-25", world.url)
    assert result.returncode == 0, result.stderr
    sent = [fields for path, fields in world.requests if path in ("/authorize", "/token")]
    assert ["resource" in fields for fields in sent[-3:]] == [False] * 3
    assert sent[-3]["scope"] == "api://x/a"
    assert sent[-1]["grant_type"] == "refresh_token"


async def test_login_with_unwritable_storage_fails(world: OAuthWorld, tmp_path: Path) -> None:
    (tmp_path / "mcp-trio").write_text("this is no directory")
    result = await run_command(tmp_path, "login", world.url)
    assert result.returncode == 3
    assert "succeeded, but its token cannot be stored: " in result.stderr
    assert "logged in; the other commands" not in result.stderr


async def test_login_with_keychain_stores_tokens_there_only(
    world: OAuthWorld, tmp_path: Path
) -> None:
    """No file holds a token, so a command without `--keychain` isn't logged in."""
    keychain = configure(tmp_path, FileKeychain)
    result = await run_command(tmp_path, "login", "--keychain", world.url, **keychain)
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith(
        "logged in; with --keychain the other commands use this login now\n"
    )
    names = [name for name, _, _ in json.loads((tmp_path / "keychain.json").read_text())]
    assert f"mcp-trio tokens:{world.url}" in names
    stored = FileStorage(tmp_path / "mcp-trio" / "tokens").directory.iterdir()
    assert {file.read_bytes() for file in stored} <= {b""}  # locks
    words = "inspect", "--revision", "2025-11-25"
    result = await run_command(tmp_path, *words, "--keychain", world.url, **keychain)
    assert result.returncode == 0, result.stderr
    result = await run_command(tmp_path, *words, world.url, **keychain)
    assert result.returncode == 3
    assert f"`mcp-trio login {world.url}`" in result.stderr
    # Again, as another user perhaps, and not from the stored tokens.
    result = await run_command(tmp_path, "login", "--keychain", world.url, **keychain)
    assert result.returncode == 0, result.stderr
    assert world.tokens == 2


async def test_keychain_without_token_names_login_command_with_keychain(
    world: OAuthWorld, tmp_path: Path
) -> None:
    keychain = configure(tmp_path, FileKeychain)
    words = "call", "--revision", "2025-11-25", "--keychain", "add", world.url
    result = await run_command(tmp_path, *words, **keychain)
    assert result.returncode == 3
    assert f"`mcp-trio login --keychain {world.url}`" in result.stderr


@pytest.mark.parametrize(
    "words", [("login",), ("inspect", "--revision", "2025-11-25")], ids=lambda words: words[0]
)
async def test_locked_keychain_fails_before_the_login(
    world: OAuthWorld, tmp_path: Path, words: tuple[str, ...]
) -> None:
    keychain = configure(tmp_path, LockedKeychain)
    result = await run_command(tmp_path, *words, "--keychain", world.url, **keychain)
    assert result.returncode == 3
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"mcp-trio: {world.url}: ")
    assert "the keychain is locked, or denied access" in line
    assert "Unlock it, and try again" in line
    assert world.requests == []
    assert not (tmp_path / "mcp-trio").exists()


async def test_login_with_full_keychain_fails(world: OAuthWorld, tmp_path: Path) -> None:
    keychain = configure(tmp_path, FileKeychain) | {"KEYCHAIN_FULL": "yes"}
    result = await run_command(tmp_path, "login", "--keychain", world.url, **keychain)
    assert result.returncode == 3
    assert (
        "succeeded, but its token cannot be stored: the keychain failed (the disk is full)"
        in result.stderr
    )
    assert "logged in; " not in result.stderr


async def test_login_replaces_a_token_file_that_others_can_read(
    world: OAuthWorld, tmp_path: Path
) -> None:
    assert (await run_command(tmp_path, "login", world.url)).returncode == 0
    for file in (tmp_path / "mcp-trio" / "tokens").iterdir():
        file.chmod(0o644)
    result = await run_command(tmp_path, "login", world.url)
    assert result.returncode == 0, result.stderr
    assert f"tokens:{world.url}" not in result.stderr
    stored = FileStorage(tmp_path / "mcp-trio" / "tokens")
    assert b"CANARY-token-2" in (stored.load(f"tokens:{world.url}") or b"")


@pytest.mark.parametrize("command", ["login", "inspect"])
def test_keychain_without_package_names_the_extra(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert main([command, "--keychain", "http://127.0.0.1:1/mcp"]) == 2
    assert capsys.readouterr().err == (
        "mcp-trio: --keychain: the keychain of the system needs keyring:"
        " pip install 'mcp-trio[keyring]'\n"
    )


def test_token_renewal_failed_during_call_names_server() -> None:
    failure = AuthorizationFailed("no answer from the token endpoint")
    with (
        pytest.raises(CliError, match="http://x/: no answer from"),
        _explain_errors(Target(server="http://x/")),
    ):
        raise failure


async def test_login_at_server_without_authorization_needs_none(
    world: OAuthWorld, tmp_path: Path
) -> None:
    world.good.add("")
    result = await run_command(tmp_path, "login", world.url)
    assert result.stderr == "mcp-trio: the server needs no login\n"


async def test_inspect_without_token_names_login_command(world: OAuthWorld, tmp_path: Path) -> None:
    result = await run_command(tmp_path, "inspect", "--revision", "2025-11-25", world.url)
    assert result.returncode == 3
    assert f"`mcp-trio login {world.url}`" in result.stderr
    assert world.count("/authorize") == 0


async def test_call_with_insufficient_scope_names_login_command(
    world: OAuthWorld, tmp_path: Path
) -> None:
    words = "call", "--revision", "2025-11-25", "add", world.url
    assert (await run_command(tmp_path, "login", "--scope", "some", world.url)).returncode == 0
    world.wants = "num:bers"
    result = await run_command(tmp_path, *words)
    assert result.returncode == 3
    login = f"login --scope some --scope num:bers {world.url}"
    assert f"`mcp-trio {login}`" in result.stderr
    assert (await run_command(tmp_path, *login.split())).returncode == 0
    result = await run_command(tmp_path, *words)
    assert result.returncode == 0, result.stderr


async def test_token_from_environment_or_header_is_sent(world: OAuthWorld, tmp_path: Path) -> None:
    world.good.add("mine")
    words = "inspect", "--revision", "2025-11-25"
    result = await run_command(tmp_path, *words, "--token-env", "MINE", world.url, MINE="mine")
    assert result.returncode == 0, result.stderr
    result = await run_command(
        tmp_path, *words, "--header", "Authorization: Bearer mine", world.url
    )
    assert result.returncode == 0, result.stderr
    result = await run_command(tmp_path, *words, "--token-env", "MINE", world.url, MINE="other")
    assert result.returncode == 3
    assert "401 Unauthorized: the server does not accept the access token" in result.stderr
    assert "wants an access token" not in result.stderr
    assert "Check the token that was sent" in result.stderr
    assert world.requests == []


async def test_stored_token_that_is_refused_is_not_called_missing(
    world: OAuthWorld, tmp_path: Path
) -> None:
    world.refresh = False
    assert (await run_command(tmp_path, "login", world.url)).returncode == 0
    world.good.clear()
    result = await run_command(tmp_path, "inspect", world.url)
    assert result.returncode == 3
    assert "does not accept the token of the last login" in result.stderr
    assert f"`mcp-trio login {world.url}`" in result.stderr


SECRET_OF = "login", "--client-id", "a", "--client-secret-env", "NOTHING", "--issuer"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("inspect", "--token-env", "NOTHING", "http://x/"), "holds no token"),
        (("inspect", "--header", "x", "http://x/"), "no colon"),
        (("inspect", "--header", "Host: x", "http://x/"), "set by the protocol"),
        (("inspect", "--header", "X: CANARY\nY: z", "http://x/"), "no header may have"),
        (("inspect", "--header", "X: y", *GREETER), "need a server at a URL"),
        (
            ("inspect", "--token-env", "PATH", "http://mcp.example/"),
            "unencrypted to mcp.example: use https:// instead of http://, or use --allow-cleartext",
        ),
        (
            ("inspect", "--header", "Cookie: CANARY", "ws://mcp.example/"),
            "use wss:// instead of ws://, or use --allow-cleartext",
        ),
        (("login", "--keychain", "ws://x/"), "--keychain needs a server at http:// or https://"),
        (("inspect", "--keychain", *GREETER), "--keychain needs a server at http:// or https://"),
        (("login", "--client-secret-env", "X", "http://x/"), "give --client-id too"),
        (
            ("login", "--client-id", "a", "--client-secret-env", "X", "http://x/"),
            "give --issuer too",
        ),
        (
            (*SECRET_OF, "https://as.example", "http://x/"),
            "holds no secret",
        ),
        (
            ("login", "--issuer", "as.example", "http://x/"),
            "'as.example' is neither https",
        ),
        (("login", "--assume-pkce", "http://x/"), "--assume-pkce needs the authorization server"),
        (("login", "--no-resource", "http://x/"), "--no-resource needs the authorization server"),
        (("login", "--metadata-issuer", "a", "http://x/"), "give --issuer too"),
        (
            ("login", "--no-resource", "--issuer", "https://as.example", "http://x/"),
            "--no-resource needs the scopes that say what the token is for",
        ),
        (
            ("login", "--metadata-issuer", "", "--issuer", "https://as.example", "http://x/"),
            "--metadata-issuer is empty",
        ),
        (("login", "ftp://me:CANARY@x/"), "...@x/ is not supported: give a URL"),
        (("login", "http://me:CANARY@x/"), "must not contain a user name or password"),
        (("login", "x"), "give a URL that begins with"),
        (("login",), "give the URL of the server, or --server NAME"),
    ],
)
def test_login_options_misused_are_explained(words: tuple[str, ...], text: str) -> None:
    result = run(*words)
    assert result.returncode == 2
    assert text in result.stderr
    assert "CANARY" not in result.stderr


def test_token_unencrypted_can_be_allowed() -> None:
    result = run("inspect", "--header", "Cookie: a", "--allow-cleartext", "http://nowhere.invalid/")
    assert result.returncode == 3
    assert "nowhere.invalid" in result.stderr


async def test_login_failed_exits_with_3(world: OAuthWorld, tmp_path: Path) -> None:
    world.token_error = "invalid_grant"
    result = await run_command(tmp_path, "login", world.url)
    assert result.returncode == 3
    assert "invalid_grant" in result.stderr
    assert "Traceback" not in result.stderr


async def test_contract_of_protected_server_needs_login_and_has_scopes(
    world: OAuthWorld, tmp_path: Path
) -> None:
    """The scopes are in the server's metadata, which needs no token."""
    world.supported = ["write", "read"]
    file = tmp_path / "a.contract.json"
    words = ("inspect", "--save", str(file), world.url)
    result = await run_command(tmp_path, *words)
    assert result.returncode == 3
    assert f"`mcp-trio login {world.url}` gets a token" in result.stderr
    assert (await run_command(tmp_path, "login", world.url)).returncode == 0
    result = await run_command(tmp_path, *words)
    assert result.returncode == 0, result.stderr
    assert json.loads(file.read_bytes())["scopes"] == ["read", "write"]
    world.supported = ["read"]
    result = await run_command(tmp_path, "inspect", "--against", str(file), world.url)
    assert result.returncode == 1, result.stderr
    assert "breaking    scope write: a scope is gone\n" in result.stdout
