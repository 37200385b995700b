"""`examples/selectors_loop.py`: the program, its server with other clients, and unkind ones."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_core import ALL, DIALECTS
from tests.examples.programs import command, load
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "selectors_loop.py"


def test_selectors_loop_prints_votes_of_twenty_clients(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", *command(NAME)[1:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == "", "no socket is left open"
    votes = Counter(line.partition(":")[0] for line in done.stdout.splitlines())
    assert votes == {"oolong": 7, "sencha": 13}
    assert "oolong: 7\n" in done.stdout
    assert "sencha: 13\n" in done.stdout


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Run the server without its clients, and yield its port."""
    words = [*command(NAME), "0"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.kill()


@pytest.mark.parametrize("version", ALL)
async def test_selectors_loop_serves_client_beside_unkind_ones(version: str, port: int) -> None:
    """Clients that send garbage, do not read, or reset the connection disturb no other one."""
    garbage = await trio.open_tcp_stream("127.0.0.1", port)
    unread = await trio.open_tcp_stream("127.0.0.1", port)
    reset = await trio.open_tcp_stream("127.0.0.1", port)
    async with garbage, unread, reset:
        await garbage.send_all(b"no JSON\n" * 1_000)
        with trio.move_on_after(0.2) as scope:
            await unread.send_all(b'{"jsonrpc":"2.0","id":1,"method":"nothing"}\n' * 200_000)
        assert scope.cancelled_caught, "the server stops reading"
        await reset.send_all(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        reset.socket.close()
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with mcp_trio.connect_stream(stream, versions=[version]) as client:
            assert client.peer.dialect is DIALECTS[version]
            for count in (1, 2):
                assert (await client.call_tool("vote", {"tea": "oolong"})).text == str(count)
            await client.ping()


def test_selectors_loop_client_of_closed_port_reports_it() -> None:
    program = load(NAME)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    assert outcome_of(program, address).endswith("Connection refused")


def test_selectors_loop_client_reports_lost_server() -> None:
    program = load(NAME)
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))

        def close_at_once() -> None:
            listener.accept()[0].close()

        outcome = outcome_of(program, listener.getsockname(), close_at_once)
    assert "the server ended the connection before it was open" in outcome


def outcome_of(program: Any, address: tuple[str, int], then: Any = lambda: None) -> str:
    """Run one client to its end, and return what it reports."""
    loop = program.Loop()
    with loop.selector:
        voter = program.Voter(loop, address, "oolong")
        then()
        while loop.links:
            loop.step()
    outcome: str = voter.outcome
    return outcome


def test_selectors_loop_handler_that_waits_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The client gets only a reference; the author reads the cause on stderr."""
    program = load(NAME)

    async def vote(tea: str) -> None:
        """Wait for the poll to end."""

    program.server.remove_tool("vote")
    program.server.add_tool(vote)
    loop = program.Loop()
    with socket.create_server(("127.0.0.1", 0)) as listener, loop.selector:
        loop.listen(listener)
        voter = program.Voter(loop, listener.getsockname(), "oolong")
        while loop.links:
            loop.step()
    assert "internal error (reference 1)" in voter.outcome
    assert "TypeError: this loop runs no `async def` and no thread" in capsys.readouterr().err
