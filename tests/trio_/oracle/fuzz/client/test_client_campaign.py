"""A run against a client in memory: what its process does, and what is found."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair

from mcp_trio.oracle.fuzz._echo import Echo
from mcp_trio.oracle.fuzz.campaign._campaign import CampaignOptions
from mcp_trio.oracle.fuzz.client._client_campaign import ClientCampaign
from mcp_trio.oracle.fuzz.client._client_play import ClientPlayer
from mcp_trio.oracle.fuzz.client._client_target import ClientTarget
from mcp_trio.oracle.fuzz.client._lines import LineConversation
from mcp_trio.oracle.fuzz.client._source import ClientOffers, ScriptChoices
from mcp_trio.testing._faults import _find_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trio.testing import MockClock

    from mcp_trio.oracle.fuzz.client._client_session import ClientSession

OLD = "2025-11-25"
CASE: Any = [("serve", [OLD], ["sum"])]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": OLD,
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


class ClientProcess:
    """A client's process. It sends messages, reads what comes, and ends with a status."""

    pid = 0
    stderr_tail = b""
    returncode: int | None = None

    def __init__(self, stderr: bytes) -> None:
        self.stderr_tail = stderr

    def describe(self, more: str = "") -> str:
        """Return nothing: no message names it."""
        return ""


class MemoryClient(ClientTarget):
    """The command of a client that sends `messages`, each after a response to those before.

    Args:
        messages: what it sends.
        status: its exit status, negative for a signal.
        stays: whether it goes on once its server has ended.
        stderr: what it writes there.
        start_seconds: how long it takes until its first message.
    """

    def __init__(
        self,
        *messages: Any,
        status: int = 0,
        stays: bool = False,
        stderr: bytes = b"",
        start_seconds: float = 0.0,
    ) -> None:
        super().__init__(("memory",))
        self._sent = messages
        self._status = status
        self._stays = stays
        self._stderr = stderr
        self._start_seconds = start_seconds

    @asynccontextmanager
    async def start(self, session: ClientSession, timeout: float) -> AsyncIterator[Any]:
        """Start it, with a stream to the fuzzer's server."""
        ours, theirs = memory_stream_pair()
        child = ClientProcess(self._stderr)
        session.stderr = self._stderr

        async def run() -> None:
            await trio.sleep(self._start_seconds)
            for message in self._sent:
                await theirs.send_all(json.dumps(message).encode() + b"\n")
                if "id" in message:
                    await theirs.receive_some()
            if self._stays:
                await trio.sleep_forever()
            await theirs.aclose()
            child.returncode = self._status

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            nursery.start_soon(LineConversation(session, ours, timeout).run)
            yield child
            nursery.cancel_scope.cancel()


async def faults_of(
    client: MemoryClient, **options: Any
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return row and sentence of the faults of one play, and its notes."""
    outcome = await ClientPlayer(**options).play(CASE, await client.open())
    return [(each.row, each.sentence) for each in outcome.faults], outcome.notes


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        *((status, None) for status in (0, 1, 2, 130, 143, 255)),
        *((-number, None) for number in (1, 2, 13, 15)),
        *((-number, f"signal {number}") for number in (3, 4, 6, 9, 11, 14)),
        *((status, f"exit status {status}") for status in (132, 134, 135, 136, 139)),
    ],
)
async def test_status_of_a_client_is_a_crash_if_no_program_ends_like_that(
    status: int, shown: str | None, autojump_clock: MockClock
) -> None:
    """Signals of a user or a system are harmless, as is SIGPIPE. A shell adds 128 to a signal."""
    client = MemoryClient(INITIALIZE, INITIALIZED, status=status, stderr=b"one\nlast words\n\n")
    faults, notes = await faults_of(client)
    if shown is None:
        assert (faults, notes) == ([], [])
    else:
        assert faults == [("crash", f"the client has ended with {shown}; last words")]


async def test_traceback_of_a_client_that_fails_is_noted(autojump_clock: MockClock) -> None:
    stderr = b"Traceback (most recent call last):\n  x\nKeyError: 'a'\n"
    faults, notes = await faults_of(MemoryClient(INITIALIZE, status=1, stderr=stderr))
    assert faults == []
    assert notes == ["the client ends with a traceback: KeyError: 'a'"]
    assert await faults_of(MemoryClient(INITIALIZE, stderr=stderr)) == ([], [])


@pytest.mark.parametrize("judges_hangs", [True, False])
async def test_client_that_stays_without_its_server_hangs(
    judges_hangs: bool, autojump_clock: MockClock
) -> None:
    client = MemoryClient(INITIALIZE, INITIALIZED, stays=True)
    faults, _ = await faults_of(client, judges_hangs=judges_hangs)
    assert [row for row, _ in faults] == (["hang"] if judges_hangs else [])


@pytest.mark.parametrize(
    ("message", "rows", "plays"), [(LIST, [], 3), ({**LIST, "id": 1}, ["RPC-4"], 1)]
)
async def test_client_of_a_case_is_played_three_times_until_it_has_a_fault(
    message: Any,
    rows: list[str],
    plays: int,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`find_client_faults` runs this."""
    begun = 0
    echoes: list[Echo] = []

    class CountedClient(MemoryClient):
        def __init__(self, command: Any, **options: Any) -> None:
            super().__init__(INITIALIZE, INITIALIZED, message)

        async def open(self, *, keep: bool = False) -> ClientSession:
            nonlocal begun
            begun += 1
            return await super().open(keep=keep)

    async def begin(echo: Echo) -> None:
        """Start no program: then no machine counts as slow."""
        echoes.append(echo)

    monkeypatch.setattr("mcp_trio.oracle.fuzz.client._client_target.ClientTarget", CountedClient)
    monkeypatch.setattr(Echo, "begin", begin)
    found = await _find_client(["memory"], list(CASE), None, False, None, 2.0)
    assert (list(found), begun, len(echoes)) == (rows, plays, 1)


class MachineEcho(Echo):
    """The echo of a machine that is slow, or isn't."""

    def __init__(self, *, is_slow: bool) -> None:
        super().__init__()
        self._is_slow = is_slow

    async def is_slow(self) -> bool:
        """Return the given value."""
        return self._is_slow


async def campaign_of(
    client: MemoryClient, *, cases: int = 2, echo: Echo | None = None, **options: Any
) -> ClientCampaign:
    """Play cases against a client, and return the run."""
    choices = ScriptChoices(ClientOffers(servers={(OLD,): ["tools/list"]}), http=False)
    campaign = ClientCampaign(
        client, None, choices, CampaignOptions(seconds=None, **options), echo=echo
    )
    await campaign.run([CASE] * cases)
    return campaign


@pytest.mark.parametrize(
    ("start_seconds", "is_slow", "played"),
    [(0.25, False, 7), (1.3, False, 5), (1.15, True, 7), (1.9, True, 5)],
)
async def test_client_that_starts_slowly_is_lost_unless_the_machine_is_slow(
    start_seconds: float,
    is_slow: bool,
    played: int,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run ends after five cases without a request. A start isn't a part of a case's time."""
    monkeypatch.setattr("mcp_trio.oracle.fuzz.client._client_play.OPEN_TIMEOUT", 0.3)
    monkeypatch.setattr("mcp_trio.oracle.fuzz.client._client_play.MAX_SECONDS", 0.3)
    monkeypatch.setattr("mcp_trio.oracle.fuzz.client._client_play.MIN_EXIT_TIMEOUT", 0.3)
    client = MemoryClient(INITIALIZE, INITIALIZED, LIST, start_seconds=start_seconds)
    echo = MachineEcho(is_slow=is_slow)
    campaign = await campaign_of(client, cases=7, echo=echo, response_timeout=0.1)
    lost = "the target failed 5 times in a row to begin a conversation"
    assert (campaign.cases, campaign.is_lost) == (played, played == 5)
    assert campaign.notes == ([lost] if campaign.is_lost else [])
    assert campaign.messages == (0 if campaign.is_lost else 21)


async def test_fault_of_a_client_is_confirmed_and_its_case_is_as_short_as_it_can_be(
    autojump_clock: MockClock,
) -> None:
    """It uses an id twice. A fault of the server's side is none of the client."""
    again = {**LIST, "id": 1}
    campaign = await campaign_of(MemoryClient(INITIALIZE, INITIALIZED, again))
    [finding] = campaign.findings
    assert finding.fault.row == "RPC-4"
    assert finding.is_solid
    assert finding.case == CASE
    assert "RPC-4" in campaign.opportunities
    assert campaign.rows_seen() == len(campaign.opportunities)


async def test_client_without_fault_has_no_finding(autojump_clock: MockClock) -> None:
    campaign = await campaign_of(MemoryClient(INITIALIZE, INITIALIZED, LIST))
    assert (campaign.findings, campaign.notes) == ([], [])


async def test_hang_is_a_finding_once(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It looks whether the client has ended a hundred times a second.
    monkeypatch.setattr("mcp_trio.oracle.fuzz.client._client_play.MIN_EXIT_TIMEOUT", 0.5)
    client = MemoryClient(INITIALIZE, INITIALIZED, stays=True)
    campaign = await campaign_of(client, response_timeout=0.2)
    assert [each.fault.row for each in campaign.findings] == ["hang"]
    assert not campaign._judges_hangs
