"""Servers that the command has probed and remembers. The server counts the probes."""

from __future__ import annotations

import json
import os
import stat
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_core import DIALECTS, Peer
from mcp_core import types as t
from mcp_core.drivers import HandshakeCache, server_key
from mcp_trio.cli.state._handshakes import RememberedServer
from tests.harness.world.command import run

if TYPE_CHECKING:
    from subprocess import CompletedProcess

DISCOVER, INITIALIZE = "server/discover", "initialize"
D = "2025-11-25"
HIDDEN = "hunter2"
NOW = 1_800_000_000.0

# A server of one era, which notes each method that it is sent.
SCRIPT = """
    import json, sys
    from pathlib import Path

    here = Path(__file__).parent
    kind, version = (here / "kind").read_text().split()

    def respond(id, **members):
        print(json.dumps({"jsonrpc": "2.0", "id": id, **members}), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        method, id = message["method"], message.get("id")
        with (here / "methods").open("a") as methods:
            methods.write(method + "\\n")
        if method == "server/discover" and kind == "fragile":
            sys.exit("unknown method")
        elif kind == "stateless" and method == "server/discover":
            versions = {"supportedVersions": ["2026-07-28"], "resultType": "complete"}
            respond(id, result={"capabilities": {}, "ttlMs": 0, "cacheScope": "private"} | versions)
        elif kind == "mute" and method == "initialize":
            pass
        elif kind != "stateless" and method == "initialize":
            info = {"name": "s", "version": version}
            revision = {"protocolVersion": "2025-11-25", "capabilities": {}}
            respond(id, result=revision | {"serverInfo": info})
        elif id is not None:
            code = -32020 if kind == "stateless" else -32602
            respond(id, error={"code": code, "message": "Invalid request parameters"})
"""


class CountedServer:
    """A server, the command that uses it, and the file in which the command remembers it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.file = place / "cache" / "mcp-trio" / "handshakes.json"
        (place / "server.py").write_text(textwrap.dedent(SCRIPT))
        self.becomes("stateful")

    def becomes(self, kind: str, version: str = "1") -> None:
        (self._place / "kind").write_text(f"{kind} {version}")

    def inspected(self, *options: str) -> CompletedProcess[str]:
        (self._place / "methods").write_text("")
        target = (sys.executable, "-S", str(self._place / "server.py"), f"--token={HIDDEN}")
        environment = {"XDG_CACHE_HOME": str(self._place / "cache")}
        return run("inspect", *options, "--", *target, env=environment)

    def inspected_by_name(self, *options: str) -> CompletedProcess[str]:
        """Run the command with a configuration file that names the server."""
        (self._place / "methods").write_text("")
        args = ["-S", str(self._place / "server.py"), "--token=${TOKEN}"]
        file = self._place / ".mcp.json"
        servers = {"counted": {"command": sys.executable, "args": args}}
        file.write_text(json.dumps({"mcpServers": servers}))
        environment = {
            "XDG_CACHE_HOME": str(self._place / "cache"),
            "XDG_STATE_HOME": str(self._place / "state"),
            "TOKEN": HIDDEN,
        }
        words = ("--config", str(file), "--approve-server", "counted")
        return run("inspect", *options, *words, env=environment)

    def methods(self, *options: str, by_name: bool = False) -> list[str]:
        """Run the command, and return which of the two requests the server got, in order."""
        result = (self.inspected_by_name if by_name else self.inspected)(*options)
        assert result.returncode == 0, result.stderr
        sent = (self._place / "methods").read_text().split()
        return [method for method in sent if method in (DISCOVER, INITIALIZE)]


@pytest.fixture
def counted(tmp_path: Path) -> CountedServer:
    return CountedServer(tmp_path)


def test_command_probes_server_once(counted: CountedServer) -> None:
    assert counted.methods() == [DISCOVER, INITIALIZE]
    assert counted.methods() == [INITIALIZE]
    assert counted.methods("--cwd", "/") == [DISCOVER, INITIALIZE]  # another server
    assert counted.methods() == [INITIALIZE]
    assert stat.S_IMODE(counted.file.stat().st_mode) == 0o600
    assert [*counted.file.parent.iterdir()] == [counted.file]
    text = counted.file.read_text()
    assert HIDDEN not in text
    assert len(json.loads(text)) == 2


def test_command_probes_configured_server_once(counted: CountedServer) -> None:
    assert counted.methods(by_name=True) == [DISCOVER, INITIALIZE]
    assert counted.methods(by_name=True) == [INITIALIZE]
    counted.becomes("stateful", "2")
    assert counted.methods(by_name=True) == [INITIALIZE]
    assert counted.methods(by_name=True) == [DISCOVER, INITIALIZE]
    text = counted.file.read_text()
    assert HIDDEN not in text
    assert len(json.loads(text)) == 1


def test_command_starts_server_that_ends_at_probe_once_the_next_time(
    counted: CountedServer,
) -> None:
    counted.becomes("fragile")
    assert counted.methods() == [DISCOVER, INITIALIZE]
    result = counted.inspected()
    assert (result.returncode, result.stderr) == (0, "")
    assert counted.methods() == [INITIALIZE]


def test_command_remembered_server_was_upgraded_is_probed_again(counted: CountedServer) -> None:
    counted.methods()
    counted.becomes("stateless")
    assert counted.methods() == [INITIALIZE, DISCOVER]
    assert counted.methods() == [DISCOVER]
    counted.becomes("stateful")
    assert counted.methods() == [DISCOVER, INITIALIZE]
    assert counted.methods() == [INITIALIZE]


def test_command_remembered_server_of_other_version_is_probed_next_time(
    counted: CountedServer,
) -> None:
    counted.methods()
    counted.becomes("stateful", "2")
    assert counted.methods() == [INITIALIZE]
    assert counted.methods() == [DISCOVER, INITIALIZE]
    assert counted.methods() == [INITIALIZE]


def test_command_remembered_server_without_connection_is_probed_next_time(
    counted: CountedServer,
) -> None:
    counted.methods()
    counted.becomes("mute")
    failed = counted.inspected("--timeout", "0.2")
    assert failed.returncode == 3
    counted.becomes("stateful")
    assert counted.methods() == [DISCOVER, INITIALIZE]


def test_command_revision_option_overrides_memory(counted: CountedServer) -> None:
    assert counted.methods("--revision", D) == [INITIALIZE]
    assert counted.methods() == [DISCOVER, INITIALIZE]  # nothing was learned
    assert counted.methods("--revision", D) == [INITIALIZE]
    assert counted.inspected("--revision", "2026-07-28").returncode == 3
    counted.becomes("stateless")
    assert counted.methods("--revision", "2026-07-28") == [DISCOVER]


@pytest.mark.parametrize("damage", ["text", "pipe", "directory", "unreadable"])
def test_command_damaged_memory_counts_as_empty(counted: CountedServer, damage: str) -> None:
    counted.file.parent.mkdir(parents=True)
    if damage == "pipe":
        os.mkfifo(counted.file)
    elif damage == "directory":
        counted.file.mkdir()
    elif damage == "unreadable":
        counted.file.symlink_to(counted.file)
    else:
        counted.file.write_text('{"' + "x" * 2_000_000)
    assert counted.methods() == [DISCOVER, INITIALIZE]
    expected = [DISCOVER, INITIALIZE] if damage == "directory" else [INITIALIZE]
    assert counted.methods() == expected
    assert [*counted.file.parent.iterdir()] == [counted.file]


def test_command_memory_that_cannot_be_written_is_no_error(counted: CountedServer) -> None:
    counted.file.parent.parent.write_text("a file, not a directory")
    assert counted.methods() == [DISCOVER, INITIALIZE]
    assert counted.methods() == [DISCOVER, INITIALIZE]


class FakeClient:
    peer = Peer(DIALECTS[D], t.ServerCapabilities())
    needs_handshake = True


def remembers(server: str | tuple[str, ...], cwd: Path | None = None, **env: str) -> None:
    with RememberedServer(server, env, cwd) as remembered:
        remembered.connected(FakeClient())  # type: ignore[arg-type]


def knows(server: str | tuple[str, ...], cwd: Path | None = None, **env: str) -> bool:
    with RememberedServer(server, env, cwd) as remembered:
        remembered._connected = True
        return remembered.known_peer is not None


@pytest.mark.parametrize("caches", [None, "relative", ""])
def test_memory_default_directory_is_in_home(
    caches: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    if caches is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", caches)
    monkeypatch.setenv("HOME", str(tmp_path))
    remembers("http://x/mcp")
    assert (tmp_path / ".cache" / "mcp-trio" / "handshakes.json").is_file()
    assert stat.S_IMODE((tmp_path / ".cache" / "mcp-trio").stat().st_mode) == 0o700
    assert knows("http://X:80/mcp")
    assert not knows("http://x/other")


def test_memory_lasts_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remembers("http://x/mcp")
    file = tmp_path / "mcp-trio" / "handshakes.json"
    (entry,) = json.loads(file.read_text()).values()
    for age, is_known in (24 * 3600 - 60, True), (24 * 3600, False):
        aged = {**entry, "probed_at": entry["probed_at"] - age}
        file.write_text(json.dumps({server_key("http://x/mcp"): aged}))
        assert knows("http://x/mcp") is is_known


def test_memory_of_command_has_its_program_and_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words with another program on PATH, or in another directory, are another server."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("one", "two"):
        program = tmp_path / name / "serve"
        program.parent.mkdir()
        program.write_text("")
        program.chmod(0o755)
    one, two = tmp_path / "one", tmp_path / "two"
    monkeypatch.chdir(one)
    remembers(("serve", "x"), PATH=str(one))
    assert knows(("serve", "x"), PATH=str(one))
    assert knows((str(one / "serve"), "x"))
    assert knows(("./serve", "x"), one) is knows(("./serve", "x"), None)
    assert not knows(("serve", "x"), PATH=str(two))
    assert not knows(("serve", "x"), two, PATH=str(one))
    assert not knows(("serve", "y"), PATH=str(one))
    remembers(("no-such-program",))
    data = (tmp_path / "cache" / "mcp-trio" / "handshakes.json").read_bytes()
    assert HandshakeCache(data).learn(server_key(("no-such-program",), str(one)), None, NOW)


def test_memory_block_without_connection_forgets_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remembers("http://x/mcp")
    with pytest.raises(KeyError), RememberedServer("http://x/mcp", {}, None):
        raise KeyError
    assert not knows("http://x/mcp")


def test_memory_failed_rename_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "mcp-trio" / "handshakes.json"
    file.mkdir(parents=True)
    remembers("http://x/mcp")
    assert [*file.parent.iterdir()] == [file]
