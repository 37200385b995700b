"""A judged conversation: a clean one passes, and a fault of either side fails the test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio
from mcp_core.trace import HttpHead, InvalidTrace, TraceLine
from mcp_trio.testing import FoundFaults, NothingJudged, _judging, connect_judged, judge_trace
from tests.harness.jsonrpc import request

if TYPE_CHECKING:
    from pathlib import Path

server = mcp_trio.Server("judged")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def trace(path: Path, *messages: tuple[str, dict[str, Any] | str]) -> Path:
    """Write a trace of 2025-11-25 with these messages after the handshake."""
    opening: list[tuple[str, dict[str, Any] | str]] = [
        (
            "client",
            {
                "id": 0,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "c", "version": "1"},
                },
            },
        ),
        (
            "server",
            {
                "id": 0,
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"},
                },
            },
        ),
        ("client", {"method": "notifications/initialized"}),
    ]
    lines: list[dict[str, Any]] = [{"mcp-trace": 1, "observer": "client", "transport": "stdio"}]
    for number, (sender, message) in enumerate([*opening, *messages]):
        raw = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0"} | message)
        lines.append({"t": number / 10, "from": sender, "raw": raw})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


SCHEMA = {"type": "object"}
PING = ("client", {"id": 1, "method": "ping"})
PONG = ("server", {"id": 1, "result": {}})


async def test_clean_conversation_passes() -> None:
    async with connect_judged(server) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


async def test_record_keeps_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "kept.mcp.jsonl"
    async with connect_judged(server, record=path, versions=["2025-11-25"]) as client:
        await client.list_tools()
    assert '"method":"initialize"' in path.read_text().replace("\\", "")
    judge_trace(path)


async def test_exception_of_the_block_propagates_unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_trio.testing._judging.judge_trace", pytest.fail)
    with pytest.raises(ZeroDivisionError):
        async with connect_judged(server):
            raise ZeroDivisionError


def test_fault_fails_with_rule_link_and_messages(tmp_path: Path) -> None:
    path = trace(tmp_path / "a", PING, PONG, PONG)
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path)
    assert [(each.row, each.side) for each in failure.value.findings] == [("RPC-7", "server")]
    assert failure.value.trace == path
    text = str(failure.value)
    assert text.startswith("the conversation breaks 1 rule of the specification:\n  MUST server")
    assert "https://modelcontextprotocol.io/specification/2025-11-25/basic" in text
    assert 'line 7, server: {"jsonrpc": "2.0", "id": 1, "result": {}}' in text


def test_text_of_many_faults_is_bounded(tmp_path: Path) -> None:
    junk = ("server", "x\x1b[2J" * 10_000)
    path = trace(tmp_path / "a", *[junk] * 50)
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path)
    assert len(failure.value.findings) == 50
    assert len(str(failure.value)) < 40_000
    assert str(failure.value).endswith("and 30 more")
    assert "\x1b" not in str(failure.value)


@pytest.mark.parametrize(("level", "fails"), [("must", False), ("should", True), ("all", True)])
def test_level_selects_the_rules(tmp_path: Path, level: Any, fails: bool) -> None:
    long_name = "n" * 200  # SHOULD: up to 128 characters
    tools = ("server", {"id": 1, "result": {"tools": [{"name": long_name, "inputSchema": SCHEMA}]}})
    path = trace(tmp_path / "a", ("client", {"id": 1, "method": "tools/list"}), tools)
    if not fails:
        judge_trace(path, level=level)
        return
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path, level=level)
    assert "SHOULD" in {each.level for each in failure.value.findings}


def test_inconclusive_finding_is_no_fault(tmp_path: Path) -> None:
    path = trace(tmp_path / "a", PONG)
    path.write_text(path.read_text().replace('"transport"', '"x"') + '{"t":1,"kind":"lost"}\n')
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + '{"t":0,"kind":"lost","count":3}\n' + lines[-2])
    judge_trace(path)


def test_file_that_is_no_trace_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("{}\n")
    with pytest.raises(InvalidTrace):
        judge_trace(path)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("", "no message is in"),
        ('{"kind":"spawn","t":0}\n', "no message is in"),
        ('{"from":"nobody","raw":"{}"}\n', "line 2 cannot be read"),
        ('{"t":0,"from":"client","raw":""}\n', "no message is in"),
    ],
    ids=["header alone", "event", "damaged", "empty message"],
)
def test_trace_without_messages_is_a_failure(tmp_path: Path, lines: str, says: str) -> None:
    path = tmp_path / "a"
    path.write_text('{"mcp-trace":1}\n' + lines)
    with pytest.raises(NothingJudged, match=says):
        judge_trace(path)


@pytest.mark.parametrize("said", [(), (PING, PONG)])
@pytest.mark.parametrize(
    "fields",
    [{"fuzzer": "client"}, {"finding": {"row": "crash", "side": "server", "verdict": "fail"}}],
)
def test_trace_of_a_fuzzer_is_never_a_success(tmp_path: Path, fields: Any, said: Any) -> None:
    """Both sides are to be judged, and its client isn't. The finding of the header is a fault."""
    path = trace(tmp_path / "a", *said)
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | fields), *lines, ""]))
    with pytest.raises(NothingJudged if "fuzzer" in fields else FoundFaults) as failure:
        judge_trace(path, level="all")
    if "fuzzer" in fields:
        assert "the client was not judged: the header of" in str(failure.value)


@pytest.mark.parametrize("more", [(), (PING,)])
def test_fault_in_a_trace_of_a_fuzzer_is_reported(tmp_path: Path, more: Any) -> None:
    """Though its client isn't judged, and the fault need not be in the last line."""
    path = trace(tmp_path / "a", PING, PONG, PONG, *more)
    header, *lines = path.read_text().splitlines()
    header = json.dumps(json.loads(header) | {"fuzzer": "client"})
    path.write_text("\n".join([header, *lines, ""]))
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path)
    assert {each.row for each in failure.value.findings} >= {"RPC-7"}


def test_trace_with_nothing_but_faults_is_judged(tmp_path: Path) -> None:
    """Neither line is a message, but there is something to report."""
    path = tmp_path / "a"
    lines = '{"t":0,"from":"server","raw":"hello"}\n{"t":0,"kind":"note","text":"x"}\n'
    path.write_text('{"mcp-trace":1,"transport":"stdio"}\n' + lines)
    with pytest.raises(FoundFaults):
        judge_trace(path)


async def test_conversation_without_messages_is_a_failure() -> None:
    async with mcp_trio.connect(server, versions=["2026-07-28"]) as client:
        known = client.peer
    with pytest.raises(NothingJudged, match="let the client send a request"):
        async with connect_judged(server, versions=["2026-07-28"], known_peer=known):
            pass


@pytest.mark.parametrize(
    ("count", "shown", "more"), [(2, 2, []), (20, 20, []), (21, 20, ["  and 1 more"])]
)
def test_text_shows_twenty_faults(tmp_path: Path, count: int, shown: int, more: list[str]) -> None:
    path = trace(tmp_path / "a", *[("server", "junk")] * count)
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path)
    first, *lines = str(failure.value).splitlines()
    assert first == f"the conversation breaks {count} rules of the specification:"
    assert [each for each in lines if not each.startswith("    ")][shown:] == more
    # The first four lines are the header and the handshake.
    places = [each for each in lines if each.startswith("    line ")]
    assert places == [f"    line {number}, server: junk" for number in range(5, shown + 5)]


@pytest.mark.parametrize(("length", "more"), [(500, ""), (501, "... (501 characters)")])
def test_text_shows_five_hundred_characters_of_a_message(
    tmp_path: Path, length: int, more: str
) -> None:
    path = trace(tmp_path / "a", ("server", "x" * length))
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path)
    assert str(failure.value).endswith(f"\n    line 5, server: {'x' * 500}{more}")


def test_text_shows_the_lines_of_a_fault_that_are_there(tmp_path: Path) -> None:
    """A status of HTTP stands for the head that has it."""
    lines = [
        TraceLine(sender="client", http=HttpHead(method="POST")),
        TraceLine(sender="server", http=HttpHead(method="POST", status=404)),
        TraceLine(sender="server", raw="a\x1b"),
        TraceLine(sender="server", data=b"\xff"),
    ]
    assert [_judging._show(each) for each in lines] == [
        "client: HTTP POST",
        "server: HTTP 404",
        r"server: a\u001b",
        r"server: b'\xff'",
    ]


def test_line_that_is_damaged_is_not_shown(tmp_path: Path) -> None:
    path = trace(tmp_path / "a", ("server", "junk"))
    path.write_text(path.read_text() + "no JSON\n")
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path)
    assert "line 5, server: junk" in str(failure.value)
    assert "line 6" not in str(failure.value)


def test_fault_without_a_link_has_no_line_for_it(tmp_path: Path) -> None:
    path = trace(tmp_path / "a", PING, PONG)
    header, *lines = path.read_text().splitlines()
    finding = {"finding": {"row": "crash", "side": "server", "verdict": "fail"}}
    path.write_text("\n".join([json.dumps(json.loads(header) | finding), *lines, ""]))
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path)
    assert [each.row for each in failure.value.findings] == ["crash"]
    assert [each for each in str(failure.value).splitlines() if not each.strip()] == []


def test_file_is_taken_as_the_whole_conversation(tmp_path: Path) -> None:
    """So a request before the handshake is a fault. A part of one could not show that."""
    path = trace(tmp_path / "a")
    header, *opening = path.read_text().splitlines()
    call = {"t": 0, "from": "client", "raw": json.dumps(request(9, "tools/list"))}
    path.write_text("\n".join([header, json.dumps(call), *opening, ""]))
    with pytest.raises(FoundFaults) as failure:
        judge_trace(path)
    assert "client" in {each.side for each in failure.value.findings}
