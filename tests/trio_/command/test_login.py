"""`mcp-trio login`, and tokens that the other commands show: stored ones, and those of the user's own."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from tests.trio_.command.program import GREETER, run
from tests.trio_.oauth_world import oauth_world

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.trio_.oauth_world import World

VISITS = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10).read()"
BROWSER = f"{shlex.join([sys.executable, '-c', VISITS])} %s"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with oauth_world() as world:
        yield world


async def ran(home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    told = {"XDG_DATA_HOME": str(home), "BROWSER": BROWSER, **env}
    result = await trio.to_thread.run_sync(partial(run, *words, env=told))
    assert "CANARY" not in result.stdout + result.stderr
    return result


async def test_log_in_once_and_use_it(world: World, tmp_path: Path) -> None:
    result = await ran(tmp_path, "login", world.url)
    assert result.returncode == 0, result.stderr
    assert "log in in your browser" in result.stderr
    assert result.stderr.endswith("mcp-trio: logged in; the other commands use that now\n")
    result = await ran(tmp_path, "inspect", "--revision", "2025-11-25", world.url)
    assert "add" in result.stdout
    assert world.tokens == 1


async def test_log_in_anew(world: World, tmp_path: Path) -> None:
    for scope in "one", "two":
        result = await ran(tmp_path, "login", "--scope", scope, world.url)
        assert result.returncode == 0, result.stderr
    world.token_error = "invalid_grant"
    result = await ran(tmp_path, "login", world.url)
    assert result.returncode == 3
    assert list(world.scopes.values()) == ["one", "two"]
    result = await ran(tmp_path, "inspect", "--revision", "2025-11-25", world.url)
    assert result.returncode == 0, result.stderr
    assert world.posted[-1][1] == "CANARY-token-2"


async def test_a_server_that_wants_no_token(world: World, tmp_path: Path) -> None:
    world.good.add("")
    result = await ran(tmp_path, "login", world.url)
    assert result.stderr == "mcp-trio: the server lets us in without\n"


async def test_whoever_is_not_logged_in_is_told_how(world: World, tmp_path: Path) -> None:
    result = await ran(tmp_path, "inspect", "--revision", "2025-11-25", world.url)
    assert result.returncode == 3
    assert f"`mcp-trio login {world.url}`" in result.stderr
    assert world.count("/authorize") == 0


async def test_a_token_of_ones_own(world: World, tmp_path: Path) -> None:
    world.good.add("mine")
    words = "inspect", "--revision", "2025-11-25"
    result = await ran(tmp_path, *words, "--token-env", "MINE", world.url, MINE="mine")
    assert result.returncode == 0, result.stderr
    result = await ran(tmp_path, *words, "--header", "Authorization: Bearer mine", world.url)
    assert result.returncode == 0, result.stderr
    result = await ran(tmp_path, *words, "--token-env", "MINE", world.url, MINE="other")
    assert result.returncode == 3
    assert "401" in result.stderr
    assert world.asked == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("inspect", "--token-env", "NOTHING", "http://x/"), "holds no token"),
        (("inspect", "--header", "x", "http://x/"), "no colon"),
        (("inspect", "--header", "Host: x", "http://x/"), "set by the protocol"),
        (("inspect", "--header", "X: secret\nY: z", "http://x/"), "no header may have"),
        (("inspect", "--header", "X: y", *GREETER), "are about HTTP"),
        (("login", "x"), "give a URL that begins with"),
        (("login",), "required: URL"),
    ],
)
def test_what_is_not_understood(words: tuple[str, ...], text: str) -> None:
    result = run(*words)
    assert result.returncode == 2
    assert text in result.stderr
    assert "secret" not in result.stderr


async def test_a_login_that_fails(world: World, tmp_path: Path) -> None:
    world.token_error = "invalid_grant"
    result = await ran(tmp_path, "login", world.url)
    assert result.returncode == 3
    assert "invalid_grant" in result.stderr
    assert "Traceback" not in result.stderr
