"""Steps of `--stress`: bounded, refused without harm, and a server that they harm is found."""

from __future__ import annotations

import json
import subprocess
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL
from mcp_trio.oracle.fuzz._case import encode_case
from mcp_trio.oracle.fuzz._damage import has_damage
from mcp_trio.oracle.fuzz.draw._stress import draw_heavy, draw_stress
from mcp_trio.oracle.fuzz.play._stress_budget import (
    MAX_BYTES,
    MAX_CONNECTIONS,
    MAX_DEPTH,
    MAX_REQUESTS,
    StressBudget,
)
from mcp_trio.oracle.fuzz.play._stress_steps import STRESS_STEPS
from mcp_trio.testing import find_faults
from tests.trio_.oracle.fuzz.targets import BROKEN, small_server

if TYPE_CHECKING:
    from collections.abc import Iterator

D, E = "2025-11-25", "2026-07-28"
OPEN = {each: ("open", each, "whole", "all") for each in ALL}
HTTP_ONLY = {"heads", "half", "release"}
ALL_STEPS = {*STRESS_STEPS, *HTTP_ONLY, "burst"}


@pytest.mark.parametrize("http", [False, True])
@pytest.mark.parametrize("modern", [False, True])
def test_stress_is_drawn_in_all_kinds_and_stored_as_json(http: bool, modern: bool) -> None:
    random = Random(1)
    drawn = [draw_stress(random.randrange, http=http, modern=modern) for _ in range(400)]
    drawn += [draw_heavy(random.randrange) for _ in range(50)]
    names = {step[0] for phrase in drawn for step in phrase}
    assert names == (ALL_STEPS if http else ALL_STEPS - {"heads", "half"})
    for phrase in drawn:
        json.dumps(encode_case(phrase), allow_nan=False)
        if any(step[0] in ("heads", "streams") and step[-1] > 4 for step in phrase):
            assert phrase[-1] == ("release",)  # the next request must be possible


def test_heavy_messages_are_damage_and_other_stress_is_not() -> None:
    """Some servers don't read them, and neither does the judge."""
    random = Random(1)
    for _ in range(100):
        assert has_damage(draw_heavy(random.randrange))
        assert not has_damage(draw_stress(random.randrange, http=True, modern=False))


def test_large_messages_are_on_both_sides_of_our_own_limit() -> None:
    """A server that takes 4 MiB must take a little less, and may refuse a little more."""
    random = Random(1)
    drawn = [step for _ in range(200) for step in draw_heavy(random.randrange)]
    sizes = {step[2] for step in drawn if step[0] == "large"}
    limit = 4 * 1024 * 1024
    assert any(limit - 10_000 < size < limit for size in sizes)
    assert any(limit < size < limit + 10_000 for size in sizes)
    assert max(sizes) <= MAX_BYTES


def test_budget_ends_with_its_limits() -> None:
    budget = StressBudget()
    assert budget.take_connections(3) == 3
    assert budget.take_connections(10**9) == MAX_CONNECTIONS - 3
    assert budget.take_connections(1) == budget.take_connections(-1) == 0
    assert budget.take_bytes(MAX_BYTES)
    assert not budget.take_bytes(1)
    assert not StressBudget().take_bytes(-1)


class FakeSession:
    """A session that counts what it would send."""

    number = 1
    is_open = True
    ended = ""
    last_sent = ""

    def __init__(self, revision: str, transport: str) -> None:
        self.revision, self.transport = revision, transport
        self.sent: list[bytes] = []
        self.held: list[bytes] = []
        self.beside = 0
        self.notes: list[Any] = []
        self.may_read = trio.Event()
        self.may_read.set()
        self.open: dict[int, Any] = {}

    def time(self) -> float:
        return 0.0

    def record(self, line: Any) -> None:
        self.notes.append(line)

    def encode_post(self, message: Any, *headers: tuple[bytes, bytes]) -> bytes:
        lines = [b"POST /mcp HTTP/1.1", *(b"%b: %b" % each for each in headers), b"", b""]
        return b"\r\n".join(lines) + json.dumps(message).encode()

    def encode_get(self) -> bytes:
        return b"GET /mcp HTTP/1.1\r\n\r\n"

    async def hold(self, *requests: bytes, max_read: int | None = None) -> bool:
        await trio.lowlevel.checkpoint()
        self.held.append(b"".join(requests))
        return True

    async def begin_beside(self) -> bool:
        await trio.lowlevel.checkpoint()
        self.beside += 1
        return True

    async def send_data(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append(data)

    async def send(self, message: Any) -> None:
        await self.send_data(json.dumps(message).encode())

    def pause_reading(self) -> None:
        self.may_read = trio.Event()

    def resume_reading(self) -> None:
        self.may_read.set()


class FakePlayer:
    def __init__(self, revision: str, transport: str) -> None:
        self.session = FakeSession(revision, transport)
        self.stress = StressBudget()

    def make_request(self, method: str, params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    async def play(self, *steps: tuple[Any, ...]) -> FakeSession:
        for name, *words in steps:
            await STRESS_STEPS[name](self, *words)
        return self.session


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("revision", [D, E])
async def test_stress_step_with_too_large_a_number_is_bounded(
    revision: str, transport: str, autojump_clock: Any
) -> None:
    """A case from a file may name any number."""
    for step in (
        *(("large", what, 10**12) for what in ("message", "header", "headers", "target")),
        ("large", "announced", 10**12),
        ("deep", "array", 10**12),
        ("heads", 10**9),
        ("unread", 10**9),
        *(("streams", what, 10**9) for what in ("listen", "get", "session")),
    ):
        session = await FakePlayer(revision, transport).play(step)
        connections = len(session.held) + session.beside
        assert connections <= MAX_CONNECTIONS
        assert len(session.sent) <= max(MAX_REQUESTS, 2 * MAX_CONNECTIONS)
        assert sum(map(len, session.sent)) + sum(map(len, session.held)) <= MAX_BYTES
        if transport == "stdio":
            assert connections == 0


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(
    "step",
    [
        *(("large", what, 10) for what in ("message", "header", "target")),
        *(("deep", how, 5) for how in ("array", "object")),
    ],
)
async def test_stress_step_beyond_the_bytes_of_its_case_sends_nothing(
    step: tuple[Any, ...], transport: str
) -> None:
    player = FakePlayer(D, transport)
    session = await player.play(step)
    assert (
        session.sent or session.held or (transport == "stdio" and step[1] in ("header", "target"))
    )
    player = FakePlayer(D, transport)
    assert player.stress.take_bytes(MAX_BYTES)
    session = await player.play(step)
    assert (session.sent, session.held) == ([], [])


@pytest.mark.parametrize(
    ("depth", "is_sent"),
    [(-1, False), (0, False), (1, True), (MAX_DEPTH, True), (MAX_DEPTH + 1, False)],
)
async def test_deep_message_has_a_limit(depth: int, is_sent: bool) -> None:
    session = await FakePlayer(D, "stdio").play(("deep", "array", depth))
    assert len(session.sent) == len(session.notes) == is_sent


async def test_large_message_has_the_size_that_is_named() -> None:
    [data] = (await FakePlayer(D, "stdio").play(("large", "message", 70_000))).sent
    assert len(data) == 70_000
    assert json.loads(data)["method"] == "ping"


async def test_deep_message_has_the_depth_that_is_named() -> None:
    [data] = (await FakePlayer(D, "stdio").play(("deep", "object", 50))).sent
    value, depth = json.loads(data)["params"]["a"], 0
    while isinstance(value, dict):
        value, depth = value["a"], depth + 1
    assert (depth, value) == (50, 1)


async def test_stress_before_the_conversation_does_nothing() -> None:
    for transport in "stdio", "http":
        steps = ("large", "message", 10), ("heads", 1), ("unread", 1)
        session = await FakePlayer("", transport).play(*steps)
        assert (session.sent, session.held, session.notes) == ([], [], [])


async def test_unread_server_that_ends_gets_no_more_requests(autojump_clock: Any) -> None:
    """The trace would show requests that were never written."""

    class EndingSession(FakeSession):
        async def send_data(self, data: bytes) -> None:
            await super().send_data(data)
            if len(self.sent) == 3:
                self.ended = "it does not read its stdin"

    player = FakePlayer(D, "stdio")
    player.session = EndingSession(D, "stdio")
    assert len((await player.play(("unread", 100))).sent) == 3


async def test_unread_server_is_read_again_after_half_a_second(autojump_clock: Any) -> None:
    """It may read nothing itself until then, and a play that is cancelled reads on at once."""

    class BlockedSession(FakeSession):
        async def send_data(self, data: bytes) -> None:
            assert self.may_read.is_set() is (trio.current_time() >= began + 0.5)
            await super().send_data(data)
            if len(self.sent) > 2:
                await self.may_read.wait()

    for seconds, count in (60, 5), (0.1, 3):
        began = trio.current_time()
        player = FakePlayer(D, "stdio")
        player.session = session = BlockedSession(D, "stdio")
        with trio.move_on_after(seconds):
            await player.play(("unread", 5))
        assert trio.current_time() == began + min(seconds, 0.5)
        assert len(session.sent) == count
        assert session.may_read.is_set()


@pytest.mark.parametrize(
    ("count", "takes", "requests"),
    [(1, 99, [1] * 8), (17, 99, [2] * 8), (17, 0, [2])],
)
async def test_unread_requests_over_http_are_shared_by_a_few_connections(
    count: int, takes: int, requests: list[int]
) -> None:
    """`takes` is how many connections the server accepts. Each is a further one of the case."""

    class FullSession(FakeSession):
        async def hold(self, *requests: bytes, max_read: int | None = None) -> bool:
            return await super().hold(*requests) and len(self.held) <= takes

    player = FakePlayer(D, "http")
    player.session = FullSession(D, "http")
    session = await player.play(("unread", count))
    assert [each.count(b"POST /mcp") for each in session.held] == requests
    assert session.sent == []


async def test_stress_is_noted_in_the_trace() -> None:
    [note] = (await FakePlayer(D, "http").play(("heads", 2))).notes
    assert (note.kind, note.text) == ("note", "stress: heads 2")


@pytest.mark.parametrize(
    ("what", "revision", "transport", "counts"),
    [
        ("listen", E, "http", (3, 0, 0)),
        ("listen", E, "stdio", (0, 6, 0)),  # each is cancelled in the end
        ("listen", D, "http", (0, 0, 0)),
        ("listen", D, "stdio", (0, 0, 0)),
        ("get", D, "http", (3, 0, 0)),
        ("get", E, "http", (0, 0, 0)),
        ("get", D, "stdio", (0, 0, 0)),
        ("session", D, "http", (0, 0, 3)),
        ("session", E, "http", (0, 0, 0)),
        ("session", D, "stdio", (0, 0, 0)),
    ],
)
async def test_streams_are_those_of_the_revision_and_the_transport(
    what: str, revision: str, transport: str, counts: tuple[int, int, int], autojump_clock: Any
) -> None:
    player = FakePlayer(revision, transport)
    player.session.open = {1: None}
    session = await player.play(("streams", what, 3))
    assert (len(session.held), len(session.sent), session.beside) == counts
    assert [note.text for note in session.notes] == [f"stress: streams {what} 3"]
    methods = [json.loads(each)["method"] for each in session.sent]
    assert methods == ["subscriptions/listen"] * 3 + ["notifications/cancelled"] * 3 or not methods
    assert all(json.loads(each)["params"]["requestId"] == 1 for each in session.sent[3:])


async def test_streams_before_the_handshake_are_none() -> None:
    player = FakePlayer(D, "http")
    player.session.is_open = False
    session = await player.play(("streams", "get", 3))
    assert (session.held, session.notes) == ([], [])


async def test_large_parts_of_a_head_have_the_size_that_is_named() -> None:
    """An announced body isn't sent, and half a head is no more than that."""
    held = {}
    for what in ("header", "headers", "target", "announced"):
        [held[what]] = (await FakePlayer(D, "http").play(("large", what, 30))).held
    assert b"x-mcp-trio-fuzz: " + b"a" * 30 + b"\r\n" in held["header"]
    lines = held["headers"].split(b"\r\n\r\n")[0].split(b"\r\n")
    assert len(set(lines)) == 31
    assert held["target"].startswith(b"POST /mcp?a=" + b"a" * 30 + b" HTTP/1.1\r\n")
    assert held["announced"] == b"POST /mcp HTTP/1.1\r\ncontent-length: 30\r\n\r\n"
    [half] = (await FakePlayer(D, "http").play(("heads", 1))).held
    assert half == b"POST /mcp HTTP/1.1"[: len(half)]
    assert 5 < len(half) < 18
    over_stdio = await FakePlayer(D, "stdio").play(("heads", 1), ("large", "header", 5))
    assert (over_stdio.held, [note.text for note in over_stdio.notes]) == (
        [],
        ["stress: large header 5"],
    )


# -- Programs --------------------------------------------------------------------------------------

# It does not wait until its client reads.
NOT_BLOCKING = "os.set_blocking(1, False)"
LONG_LIST = """
    if method == "tools/list":
        tool = {"name": "a", "description": "a" * 5_000, "inputSchema": {"type": "object"}}
        send(id, result={"tools": [tool]})
        continue"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("server", "steps", "found"),
    [
        (
            small_server(on_message="if len(line) > 1_000_000: os._exit(3)"),
            [("large", "message", 2_000_000)],
            "crash",
        ),
        # Its JSON is read by recursion, and the error is not handled.
        (small_server(), [("deep", "array", 100_000)], "crash"),
        (
            small_server(on_message="if len(line) > 1_000_000: time.sleep(3600)"),
            [("large", "message", 2_000_000)],
            "RPC-35",
        ),
        (small_server(NOT_BLOCKING, LONG_LIST), [("unread", 100)], "crash"),
    ],
    ids=["dies of size", "dies of depth", "hangs", "dies unread"],
)
def test_stress_finds_a_process_that_it_harms(
    server: tuple[str, ...], steps: list[Any], found: str
) -> None:
    assert found in find_faults(server, [OPEN[D], *steps], response_timeout=0.5)


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Iterator[str]:
    process = subprocess.Popen(
        [*BROKEN, *request.param, "--http"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


HALVES = ("--fault", "hangs-on-half-bodies")


@pytest.mark.process
@pytest.mark.parametrize("served", [HALVES], indirect=True)
def test_server_that_hangs_after_half_bodies_is_found_in_one_case(served: str) -> None:
    halves: list[tuple[Any, ...]] = [OPEN[D], *[("half",)] * 3]
    # The server may answer the request after them before it has begun to read all three.
    assert any(
        list(find_faults(served, halves, response_timeout=0.5)) == ["RPC-35"] for _ in range(20)
    )
    assert find_faults(served, [*halves, ("release",)], response_timeout=0.5) == {}


EVERYTHING: list[tuple[Any, ...]] = [
    ("large", "message", 4 * 1024 * 1024 - 4_096),
    ("large", "message", 8 * 1024 * 1024),
    ("large", "header", 65_536),
    ("large", "headers", 2_000),
    ("large", "target", 65_536),
    ("large", "announced", 2**40),
    ("deep", "object", 100_000),
    ("slow",),
    ("unread", 100),
    ("heads", 16),
    ("streams", "get", 10),
    ("streams", "session", 10),
    ("streams", "listen", 10),
    ("release",),
    ("burst", 100, "ping", {}),
]


@pytest.mark.process
@pytest.mark.parametrize("revision", [D, E])
@pytest.mark.parametrize("served", [()], indirect=True)
def test_server_without_fault_withstands_stress(served: str, revision: str) -> None:
    steps = [step for step in EVERYTHING if step[0] != "burst" or revision == D]
    for target in (served, BROKEN):
        assert find_faults(target, [OPEN[revision], *steps]) == {}
