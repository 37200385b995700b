"""Cases for clients: repeatable, storable, and excuses for what the server does."""

from __future__ import annotations

import json
import re
import zlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ALL, ConnectFailed
from mcp_core.trace import ROWS
from mcp_trio.oracle.fuzz._case import Case, Outcome, decode_case, encode_case
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz.client import _source
from mcp_trio.oracle.fuzz.client._client_play import ClientPlayer
from mcp_trio.oracle.fuzz.client._client_target import ClientTarget, fill_server
from mcp_trio.oracle.fuzz.client._questions import RIGHT_QUESTIONS
from mcp_trio.oracle.fuzz.client._script_case import EXCUSED, is_excused
from mcp_trio.oracle.fuzz.client._source import (
    ClientOffers,
    ScriptChoices,
    ScriptSource,
    probe_client,
)

if TYPE_CHECKING:
    from collections.abc import Callable

METHODS = ["initialize", "tools/list", "tools/call"]


def drawn(seed: int, count: int = 300, *, http: bool = False) -> list[Case]:
    offers = ClientOffers(
        servers={tuple(ALL): METHODS, (ALL[1],): METHODS}, refused=[(ALL[0],)], called=["add"]
    )
    return ScriptSource(ScriptChoices(offers, http=http), seed).draw(count)


def test_cases_of_one_seed_are_the_same() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_cases_can_be_stored_as_json() -> None:
    for case in drawn(3, http=True):
        assert decode_case(json.loads(json.dumps(encode_case(case))), "client") == case


def test_first_cases_are_correct_servers_and_single_steps() -> None:
    cases = drawn(4, 103)
    assert [case[0][1] for case in cases[:3]] == [list(ALL), [ALL[1]], [ALL[0]]]
    assert all(case[0] == ("serve", case[0][1], ["sum", "add"]) for case in cases)
    assert {len(case) for case in cases[:3]} == {1}
    assert {len(case) for case in cases[3:60]} == {2}


def test_http_steps_are_for_http() -> None:
    kinds = {step[0] for case in drawn(5) for step in case}
    assert kinds == {"serve", "answer", "always", "push"}
    assert "http" in {step[0] for case in drawn(5, http=True) for step in case}


def test_questions_come_after_the_opening_and_often() -> None:
    cases = [case for case in drawn(7, 1_000) if case[0][1] != [ALL[0]]]  # one is refused
    steps = [step for case in cases for step in case if step[0] == "push"]
    asked = [step for step in steps if step[1] in ("sampling", "elicitation", "roots")]
    assert len(asked) > len(steps) / 4
    assert all(step[2] > 0 for step in asked)


def test_first_cases_have_each_right_question_and_each_kind_without_end() -> None:
    steps = {step[:2] + step[3:] for case in drawn(8, 250) if len(case) == 2 for step in case[1:]}
    named = {"sampling": "sampling/createMessage", "elicitation": "elicitation/create"}
    for name, method in named.items():
        assert {("push", name, number) for number in range(RIGHT_QUESTIONS[method])} <= steps
    assert {("always", "cursor", 0), ("always", "page", 1), ("always", "input", 0)} <= steps
    assert {("answer", "revision", 0), ("answer", "output", 2)} <= steps


def test_first_cases_page_each_list() -> None:
    methods = ["server/discover", "tools/list", "resources/list", "tools/list", "tools/call"]
    choices = ScriptChoices(ClientOffers(servers={(ALL[0],): methods}), http=False)
    cases = ScriptSource(choices, 1).draw(150)
    pages = {case[1][2] for case in cases if len(case) == 2 and case[1][:2] == ("always", "page")}
    assert pages == {1, 2}


def test_pages_are_for_lists() -> None:
    places = [step[2] for case in drawn(6, 2_000) for step in case if step[1] == "page"]
    assert places.count(1) > len(places) / 2


@pytest.mark.parametrize(
    ("row", "level", "disturbed", "excused"),
    [
        ("RPC-7", "MUST", {"pairing"}, True),
        ("RPC-7", "MUST", {"pages"}, False),
        ("RPC-4", "MUST", {"pairing", "handshake"}, False),
        ("RPC-4", "MUST", {"session"}, True),
        ("TSK-13", "SHOULD", {"tasks"}, True),
        ("ROOT-2", "schema", {"pairing"}, False),
        ("ROOT-2", "schema", {"handshake"}, True),
        ("ROOT-2", "schema", {"revision"}, True),
        ("LIFE-5", "SHOULD", {"handshake"}, True),
        ("LIFE-5", "SHOULD", {"revision"}, False),
        ("ELIC-10", "SHOULD", {"questions"}, True),
        ("ELIC-10", "SHOULD", {"pairing"}, False),
        ("PAGE-1", "schema", {"pages"}, True),
    ],
)
def test_row_is_excused_by_what_it_needs(
    row: str, level: str, disturbed: set[str], excused: bool
) -> None:
    assert is_excused(row, level, disturbed) is excused


def test_excuses_are_for_rows_that_there_are() -> None:
    """One with another name would excuse nothing, and a right client would get the finding."""
    assert set().union(*EXCUSED.values()) <= ROWS.keys()


@pytest.mark.parametrize(
    ("row", "excused"),
    [("TSK-2", True), ("TX-1", True), ("CXL-5", True), ("CXL-4", False), ("RPC-7", False)],
)
def test_disturbed_tasks_excuse_all_rows_of_tasks(row: str, excused: bool) -> None:
    assert is_excused(row, "MUST", {"tasks"}) is excused
    assert not is_excused(row, "MUST", set())
    assert not is_excused(row, "schema", {"acme"})


def test_server_in_a_command_becomes_words_or_text() -> None:
    relay = ["python", "a b.py"]
    assert fill_server(["client", "--", "{server}"], relay) == ["client", "--", *relay]
    assert fill_server(["client", "-s={server}"], relay) == ["client", "-s=python 'a b.py'"]


@pytest.mark.parametrize(
    ("word", "way", "transport"),
    [("{server}", "relay", "stdio"), ("{url}", "http", "http"), ("x", "pipes", "stdio")],
)
def test_command_says_how_the_client_is_reached(word: str, way: str, transport: str) -> None:
    target = ClientTarget(["client", word])
    assert target.way == way
    assert target.header().transport == transport
    assert target.header().observer == "server"


# -- Probing a client ------------------------------------------------------------------------------

OLDER, NEWER, MODERN = "2025-06-18", "2025-11-25", "2026-07-28"


def session_of(revision: str = "", methods: tuple[str, ...] = (), **more: Any) -> Any:
    """Return a session after a play with a correct server."""
    server = {
        "revision": revision,
        "methods": list(methods),
        "called": more.pop("called", []),
        "client_info": more.pop("info", {"name": "client", "version": "1"}),
    }
    session = {"messages": 1, "describe": lambda: "; it has failed", **more}
    return SimpleNamespace(server=SimpleNamespace(**server), **session)


async def probed(
    monkeypatch: pytest.MonkeyPatch,
    control: Callable[[tuple[str, ...]], Any],
    *,
    hangs_with: tuple[str, ...] = (),
) -> tuple[ClientOffers, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    """Probe a client. Return what it offers, and the revisions and tools of each server."""
    controls: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    async def play(target: Any, revisions: Any, offers: ClientOffers, timeout: float) -> Any:
        assert timeout == 2
        controls.append((revisions, tuple(offers.called)))
        return control(revisions), revisions == hangs_with

    monkeypatch.setattr(_source, "_control", play)
    target: Any = SimpleNamespace(name="the client", way="pipes")
    return await probe_client(target, (MODERN, NEWER, OLDER)), controls


EVERY = (MODERN, NEWER, OLDER)


async def test_client_is_probed_with_servers_of_all_and_of_some_revisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first server is played again, with the tools that the client has called."""

    def control(revisions: tuple[str, ...]) -> Any:
        if revisions == (OLDER,):
            return session_of(OLDER, ("initialize",), called=["late"])
        return session_of(revisions[-1], ("initialize", "ping"), called=["add"])

    offers, controls = await probed(monkeypatch, control)
    assert controls == [
        (EVERY, ()),
        *((each, ("add",)) for each in (EVERY, (NEWER, OLDER), (MODERN,), (NEWER,), (OLDER,))),
    ]
    assert list(offers.servers) == [EVERY, (NEWER, OLDER), (MODERN,), (NEWER,)]
    assert set(map(tuple, offers.servers.values())) == {("initialize", "ping")}
    assert (offers.refused, offers.called) == ([(OLDER,)], ["add"])
    assert offers.revisions == [MODERN, NEWER, OLDER]
    assert (offers.name, offers.ends) == ("client 1", True)


@pytest.mark.parametrize("hangs_with", [EVERY, (NEWER,), (OLDER,)])
async def test_client_that_hangs_after_one_server_does_not_end_with_its_connection(
    monkeypatch: pytest.MonkeyPatch, hangs_with: tuple[str, ...]
) -> None:
    """A client that only begins is one that works with the first server. Names are shortened."""
    long = {"name": "a\x1b" + "b" * 200}

    def control(revisions: tuple[str, ...]) -> Any:
        return session_of(NEWER, ("initialize",) * (1 + (revisions != EVERY)), info=long)

    offers, _ = await probed(monkeypatch, control, hangs_with=hangs_with)
    assert offers.ends is False
    assert len(offers.servers) == 5
    assert offers.revisions == [NEWER]
    assert offers.name == "a\\u001b" + "b" * 98


async def test_client_that_takes_some_revisions_refuses_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def control(revisions: tuple[str, ...]) -> Any:
        return session_of(OLDER, ("initialize", "ping")) if OLDER in revisions else session_of()

    offers, _ = await probed(monkeypatch, control)
    assert list(offers.servers) == [EVERY, (NEWER, OLDER), (OLDER,)]
    assert offers.refused == [(MODERN,), (NEWER,)]


@pytest.mark.parametrize(
    ("found", "count", "reason"),
    [
        ({"messages": 0}, 1, "it has sent no message; it has failed"),
        ({}, 5, "it speaks no revision of the server; it has failed"),
    ],
)
async def test_client_without_any_conversation_is_an_error_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, found: Any, count: int, reason: str
) -> None:
    """One that is silent isn't started again: it would be as silent with fewer revisions."""
    controls: list[Any] = []

    def control(revisions: tuple[str, ...]) -> Any:
        controls.append(revisions)
        return session_of(**found)

    with pytest.raises(ConnectFailed) as failed:
        await probed(monkeypatch, control)
    assert len(controls) == count
    assert str(failed.value).startswith(f"no conversation with the client: {reason}")
    assert "Is that an MCP client? A client that starts its server needs" in str(failed.value)


def test_modern_answers_and_endless_ones_are_drawn_for_servers_that_have_them() -> None:
    """After the first cases, which have each step once."""
    for revisions, is_modern in ((MODERN,), True), ((OLDER,), False):
        offers = ClientOffers(servers={revisions: ["initialize", "tools/list", "tools/call"]})
        source = ScriptSource(ScriptChoices(offers, http=False), 1)
        source.draw(source.fixed)
        steps = {step[:2] for case in source.draw(300) for step in case[1:]}
        assert (("answer", "acknowledged") in steps) is is_modern
        assert {"answer", "always", "push"} == {kind for kind, _ in steps}


# -- What is drawn ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "http", "digest", "single"),
    [(1, False, 0xFD87ACC5, 179), (1, True, 0xB7905C15, 195), (2, True, 0x6C23F709, 195)],
)
def test_seed_gives_the_same_cases_on_every_machine(
    seed: int, http: bool, digest: int, single: int
) -> None:
    """A run is repeated with its seed elsewhere, with another Python.

    If the kinds of steps or their probabilities are changed on purpose, the digests change.
    """
    offers = ClientOffers(
        servers={EVERY: METHODS, (MODERN,): ["server/discover", *METHODS, "prompts/list"]},
        refused=[(OLDER,)],
        called=["add"],
    )
    source = ScriptSource(ScriptChoices(offers, http=http), seed)
    assert source.fixed == single
    cases = source.draw(single + 400)
    assert source.fixed == 0
    text = json.dumps([encode_case(case) for case in cases])
    assert zlib.crc32(text.encode()) == digest


def test_step_that_has_shown_a_fault_is_drawn_rarely() -> None:
    """One in twenty is left. The first cases have each step nevertheless."""
    counts = []
    for avoided in (set[tuple[str, str]](), {("push", "junk"), ("answer", "shape")}):
        choices = ScriptChoices(ClientOffers(servers={(MODERN,): METHODS}), http=False)
        choices.avoided |= avoided
        source = ScriptSource(choices, 1)
        first = {step[:2] for case in source.draw(source.fixed) for step in case[1:]}
        assert {("push", "junk"), ("answer", "shape")} <= first
        steps = [step[:2] for case in source.draw(600) for step in case[1:]]
        counts.append(steps.count(("push", "junk")) + steps.count(("answer", "shape")))
    assert counts[1] < counts[0] / 5
    assert counts[1]


@pytest.mark.parametrize(
    ("methods", "places"),
    [([], {0}), (["a"], {0}), (["a", "b"], {0, 1}), (["a"] * 5, {*range(5)}), (["a"] * 50, None)],
)
def test_place_is_one_of_the_clients_first_requests(
    methods: list[str], places: set[int] | None
) -> None:
    """Nothing is asked before the opening, if there is a request after it."""
    choices = ScriptChoices(ClientOffers(servers={(MODERN,): methods}), http=False)
    source = ScriptSource(choices, 1)
    steps = [step for case in source.draw(900) for step in case[1:]]
    assert {step[2] for step in steps} == (set(range(13)) if places is None else places)
    asked = {step[2] for step in steps if step[1] in ("ping", "roots", "sampling")}
    assert (0 in asked) is (len(methods) < 2)


def test_offers_of_a_client_before_its_probe_are_empty() -> None:
    offers = ClientOffers()
    assert (offers.servers, offers.refused, offers.called, offers.ends) == ({}, [], [], True)
    offers.servers |= {(MODERN,): ["a", "b"], (OLDER,): ["a", "b", "c"]}
    offers.called += ["sum", "add"]
    assert offers.requests == 3
    choices = ScriptChoices(offers, http=False)
    assert (choices.tools, choices.avoided, choices.names) == (["sum", "add"], set(), ())


@pytest.mark.parametrize(
    ("way", "cure"),
    [
        ("pipes", "A client that starts its server needs {server} in its command, and one that"),
        ("relay", "The words in place of {server} are a command that speaks MCP on stdin"),
        ("http", "The word in place of {url} is the URL of a server that speaks Streamable HTTP"),
    ],
)
@pytest.mark.parametrize("hangs", [True, False])
async def test_client_is_played_with_a_correct_server(
    way: str, cure: str, hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each play has a process and a session of its own, and 2 s for a response."""
    played: list[tuple[float, Case, Any]] = []
    sessions: list[Any] = []

    async def open_session() -> Any:
        sessions.append(session_of(MODERN if hangs else "", ("server/discover",), called=["b"]))
        return sessions[-1]

    class NotedPlayer(ClientPlayer):
        async def play(self, case: Case, session: Any) -> Outcome:
            played.append((self._timeout, case, session))
            rows = ["hang", "RPC-4"] if hangs else ["RPC-4"]
            return Outcome(faults=[TargetFault(kind="row", row=row) for row in rows])

    monkeypatch.setattr(_source, "ClientPlayer", NotedPlayer)
    target: Any = SimpleNamespace(name="the client", way=way, open=open_session)
    if hangs:
        offers = await probe_client(target, (MODERN,))
        assert (offers.ends, offers.called, offers.servers) == (
            *(False, ["b"]),
            {(MODERN,): ["server/discover"]},
        )
        tools = [["sum"], ["sum", "b"]]
        assert [case for _, case, _ in played] == [[("serve", [MODERN], each)] for each in tools]
    else:
        with pytest.raises(ConnectFailed, match=re.escape(cure)):
            await probe_client(target, (MODERN,), 2.0)
    assert [session for _, _, session in played] == sessions
    assert {timeout for timeout, _, _ in played} == {2.0}
