"""How `mcp-trio bench` reaches a target: by its lean engine or the client, and what is measured."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ALL, ConnectFailed, RemoteProtocolError
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._session import Target
from mcp_trio.cli.oracle import _bench_calls
from mcp_trio.cli.oracle._bench_calls import client_of, meter_of, open_one, read_script
from mcp_trio.cli.oracle._bench_targets import BenchTarget
from mcp_trio.oracle.bench._process import ChildrenMeter, ListenerMeter, NoMeter
from mcp_trio.oracle.bench.calls._script import MAX_SCRIPT_BYTES
from mcp_trio.oracle.bench.engine._load import Address, Program
from tests.trio_.cli.oracle.test_bench_targets import named

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LOCAL = "http://127.0.0.1:81"
REMOTE = "https://example.com/mcp"


class Openers:
    """The functions that open loads and clients. `calls` has their names and arguments.

    Connecting to a URL of `refused` raises its error.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.refused: dict[str, ConnectFailed] = {}
        for name in "open_load", "open_client_of", "open_client_at":
            monkeypatch.setattr(_bench_calls, name, self.opener(name))
        monkeypatch.setattr(Target, "connect", lambda target, scope: self.connect(target))

    def opener(self, name: str) -> Any:
        @asynccontextmanager
        async def opened(first: Any, *args: Any, **options: Any) -> AsyncIterator[str]:
            if name == "open_client_at":
                async with first() as first:
                    pass
            self.calls.append((name, first, *args, options))
            yield name

        return opened

    def connect(self, target: Target) -> Any:
        @asynccontextmanager
        async def connected() -> AsyncIterator[str]:
            assert isinstance(target.server, str)
            self.calls.append(("connect", target.server))
            if target.server in self.refused:
                raise self.refused[target.server]
            yield target.server

        return connected() if isinstance(target.server, str) else target


@pytest.fixture
def openers(monkeypatch: pytest.MonkeyPatch) -> Openers:
    return Openers(monkeypatch)


def refusal(status: int) -> ConnectFailed:
    error = ConnectFailed("there is no server")
    error.__cause__ = RemoteProtocolError("it isn't MCP", data={"status": status})
    return error


@pytest.mark.parametrize(
    ("text", "meter", "is_remote"),
    [
        ("python server.py", ChildrenMeter, False),
        (LOCAL, ListenerMeter, False),
        ("http://localhost:81/mcp", ListenerMeter, False),
        (REMOTE, NoMeter, True),
    ],
)
def test_processes_of_a_target_are_known_on_this_machine(
    text: str, meter: type, is_remote: bool
) -> None:
    target = named(text)
    found = meter_of(target)
    assert type(found) is meter
    assert target.is_remote is is_remote
    if isinstance(found, ListenerMeter):
        assert found._port == 81


async def test_lean_engine_is_opened_without_answers(openers: Openers) -> None:
    async with open_one(named(LOCAL), era="2025-06-18", timeout=3.0) as load:
        assert str(load) == "open_load"
    options = {"era": "2025-06-18", "timeout": 3.0}
    assert openers.calls == [("open_load", Address(LOCAL), options)]


async def test_client_of_a_program_gets_its_options(openers: Openers) -> None:
    target = named("python server.py")
    async with open_one(target, era=None, timeout=3.0, answers=()) as load:
        assert str(load) == "open_client_of"
    [(name, program, options, more)] = openers.calls
    assert (name, type(program), more) == ("open_client_of", Program, {"timeout": 3.0})
    assert options["versions"] == ALL
    assert "on_elicit" not in options
    openers.calls.clear()
    async with open_one(target, era="2025-06-18", timeout=3.0, answers=["a=1"]):
        pass
    [(_, _, options, _)] = openers.calls
    assert options["versions"] == ("2025-06-18",)
    assert "on_elicit" in options


@pytest.mark.parametrize(
    ("url", "refused", "used", "port"),
    [
        (f"{LOCAL}/x", {}, [f"{LOCAL}/x"], 81),
        (LOCAL, {}, [LOCAL, LOCAL], 81),
        (LOCAL, {LOCAL: 404}, [LOCAL, f"{LOCAL}/mcp"], 81),
        (REMOTE, {}, [REMOTE], None),
    ],
)
async def test_client_at_a_url_finds_its_endpoint_once(
    url: str, refused: dict[str, int], used: list[str], port: int | None, openers: Openers
) -> None:
    """A URL without a path may be the endpoint itself; else it is at /mcp."""
    openers.refused = {each: refusal(status) for each, status in refused.items()}
    async with open_one(named(url), era=None, timeout=3.0, answers=()) as load:
        assert str(load) == "open_client_at"
    *connected, opened = openers.calls
    assert connected == [("connect", each) for each in used]
    assert opened == ("open_client_at", used[-1], {"port": port, "timeout": 3.0})


async def test_client_at_a_url_without_an_endpoint_has_its_error(openers: Openers) -> None:
    openers.refused = {LOCAL: refusal(403)}
    with pytest.raises(ConnectFailed, match="there is no server"):
        async with open_one(named(LOCAL), era=None, timeout=3.0, answers=()):
            raise AssertionError
    assert openers.calls == [("connect", LOCAL)]


async def test_client_of_a_target_speaks_the_revision(openers: Openers) -> None:
    found: Any = client_of(named("python server.py"), era="2025-06-18", timeout=3.0)
    assert (found.versions, found.timeout, found.answers) == (("2025-06-18",), 3.0, None)


def test_script_as_long_as_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "load.toml"
    text = "[[call]]\nping = true\n"
    path.write_text(text + "#" * (MAX_SCRIPT_BYTES - len(text)))
    assert len(read_script(str(path)).calls) == 1
    path.write_text(text + "#" * (MAX_SCRIPT_BYTES - len(text) + 1))
    with pytest.raises(CliError, match="it has more than 1024 KiB"):
        read_script(str(path))


def test_secret_that_has_another_one_in_it_is_hidden_whole() -> None:
    target = named(LOCAL)
    secrets = {"x-token": "secret-of-a", "x-longer": "secret-of-a-and-b"}
    headers = tuple((name, value) for name, value in secrets.items())
    hidden = BenchTarget("a", replace(target.target, headers=headers))
    assert set(hidden.target.known_secrets) >= set(secrets.values())
    assert hidden.hide("secret-of-a-and-b and secret-of-a") == "... and ..."
