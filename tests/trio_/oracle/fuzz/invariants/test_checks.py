"""Invariants in plays: their findings, values from call to call, and functions that are broken."""

from __future__ import annotations

import json
import re
import sys
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from mcp_trio.oracle.fuzz._case import on_client
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.causes._cause import Cause
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.invariants import _checks
from mcp_trio.oracle.fuzz.invariants._tool_schemas import ToolSchemas
from mcp_trio.oracle.fuzz.play._player import Player
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, played_over_http
from tests.trio_.oracle.fuzz.memory_target import NEW, OLD, MemoryTarget
from tests.trio_.oracle.fuzz.notes_server import (
    CAN_BE_READ,
    CREATED,
    TOOLS,
    NotesServer,
    checks_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_trio.oracle.fuzz._case import Case, Step
    from mcp_trio.oracle.fuzz.invariants._checks import Checks

HAND = ("hand", "read_note", "id", "note_id", 0)
NAME = "created_note_can_be_read"
EVERY = """
@invariant()
def every_result_is_right(call, result):
    {}
"""
ERRORS = EVERY.replace("()", "(errors=True)", 1)


@pytest.fixture(autouse=True)
def import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def opening(revision: str) -> Case:
    return [("open", revision, "whole", "all")]


def create(text: str = "a", *extra: str) -> tuple[Any, ...]:
    return ("call", "create_note", {"text": text}, extra)


def read(id: str = "none", *extra: str) -> tuple[Any, ...]:
    return ("call", "read_note", {"id": id}, extra)


def need(name: str) -> dict[str, Any]:
    """Return a tool that needs a text as its only argument."""
    properties = {name: {"type": "string"}}
    return {"type": "object", "properties": properties, "required": [name]}


# The tools of a server that says which arguments are right.
STRICT = [{**each, "inputSchema": need(*each["inputSchema"]["properties"])} for each in TOOLS]


def play(
    server: NotesServer, case: Case, checks: Checks, seconds: float = 0.0
) -> list[tuple[str, str, str]]:
    """Play a case once. Return kind, row and sentence of what the author's functions find.

    A call takes so many seconds.
    """

    async def run() -> list[tuple[str, str, str]]:
        session = await MemoryTarget(server, times={"tools/call": seconds}).open()
        outcome = await Player(checks=checks.begin()).play(case, session)
        await session.aclose()
        return [
            (each.kind, each.row, each.sentence)
            for each in outcome.faults
            if each.kind == "invariant"
        ]

    return trio.run(run, clock=MockClock(autojump_threshold=0))


def campaign(
    server: NotesServer, checks: Checks, *cases: Case, tools: Any = TOOLS, **options: Any
) -> Campaign:
    """Play cases in a run that draws none, and return the run."""
    offers = Offers(revisions=[NEW, OLD], tools=tools, capabilities={NEW: {}, OLD: {}})
    choices = CaseChoices(offers, ["create_note", "read_note"], invariants=checks.invariants)
    limits = CampaignOptions(**{"seconds": None, **options})
    found = Campaign(MemoryTarget(server), None, choices, limits, checks=checks)
    trio.run(found.run, cases, clock=MockClock(autojump_threshold=0))
    return found


# -- Findings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [OLD, NEW])
def test_failed_assertion_is_a_finding_with_the_functions_name_made_small(
    tmp_path: Path, revision: str
) -> None:
    """It is confirmed on fresh processes like any other, and its cause holds for other seeds."""
    checks = checks_of(tmp_path, CREATED, CAN_BE_READ)
    noise: Step = ("request", "tools/list", {}, "int", "whole")
    case = [*opening(revision), noise, create("bad", "progress"), ("wait",), noise, HAND, read()]
    run = campaign(NotesServer(forgets=("bad",)), checks, case)
    (finding,) = [each for each in run.findings if each.fault.kind == "invariant"]
    fault = finding.fault
    assert (fault.row, fault.level, fault.method) == (
        "created_note_can_be_read",
        "invariant",
        "tools/call",
    )
    assert finding.is_solid
    assert finding.is_failure
    assert re.fullmatch(r'read_note {"id": "note-0"}: no such note', fault.sentence)
    assert [step[0] for step in finding.case] == ["open", "call", "hand", "call"]
    assert finding.case[1] == ("call", "create_note", {"text": "bad"}, ())
    assert finding.cause == Cause("created_note_can_be_read", "result", "read_note")
    assert finding.header is not None


def test_invariant_of_all_tools_is_a_finding_for_each_of_them(tmp_path: Path) -> None:
    checks = checks_of(tmp_path, EVERY.format("assert not result.structured_content, 'x'"))
    case = [*opening(OLD), create(), ("wait",), read("note-0")]
    run = campaign(NotesServer(), checks, case)
    assert sorted(each.cause.scope for each in run.findings if each.cause) == [
        "create_note",
        "read_note",
    ]


def test_baseline_leaves_out_what_one_tool_shows_of_an_invariant(tmp_path: Path) -> None:
    from mcp_trio.oracle.fuzz._report import report_document
    from mcp_trio.oracle.fuzz.causes._baseline import read_baseline

    parts = EVERY.format("assert not result.structured_content, 'x'")
    run = campaign(NotesServer(), checks_of(tmp_path, parts), [*opening(OLD), create()])
    document = json.dumps(report_document(run, Offers(name="a 1"), 1)).encode()
    case = [*opening(OLD), create("other"), ("wait",), read("note-0")]
    again = campaign(
        NotesServer(), checks_of(tmp_path, parts), case, baseline=read_baseline(document)
    )
    assert [each.fault.detail for each in again.findings] == ["read_note"]
    assert sum(again.found.known.values()) > 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("assert False, 'the text'", 'create_note {"text": "a"}: the text'),
        ("assert 1 == 2", 'create_note {"text": "a"}: checks.py, line 5: assert 1 == 2'),
        ("raise AssertionError", "checks.py, line 5: raise AssertionError"),
        ("assert False, 'x' * 1000", "x..."),
    ],
)
def test_sentence_has_the_call_and_the_assertions_text_or_line(
    tmp_path: Path, body: str, says: str
) -> None:
    checks = checks_of(tmp_path, EVERY.format(body))
    ((kind, row, sentence),) = play(NotesServer(), [*opening(OLD), create()], checks)
    assert (kind, row) == ("invariant", "every_result_is_right")
    assert says in sentence
    assert len(sentence) < 500
    assert checks.broken == {}


@pytest.mark.parametrize(
    ("tool", "name", "body", "says"),
    [
        ("read_note", "id", "assert not result.is_error, result.text", "no such note"),
        ("create_note", "text", "assert False, 'x'", "x"),
    ],
)
def test_case_that_is_made_small_keeps_arguments_that_fit_the_schema(
    tmp_path: Path, tool: str, name: str, body: str, says: str
) -> None:
    """A fault shown by wrong arguments has another cause, even if the server takes them."""
    checks = checks_of(tmp_path, ERRORS.format(body))
    case = [*opening(OLD), ("call", tool, {name: "a note", "more": [1]}, ())]
    run = campaign(NotesServer(), checks, case, tools=STRICT)
    (finding,) = [each for each in run.findings if each.fault.kind == "invariant"]
    assert finding.fault.sentence.endswith(f": {says}")
    ((_, _, arguments, _),) = [step for step in finding.case if step[0] == "call"]
    assert list(arguments) == [name]
    assert isinstance(arguments[name], str)


TWO = """
@invariant("read_note", errors=True)
def note_is_right(call, result):
    assert call.arguments["id"], "no id"
    assert len(call.arguments["id"]) < 4, "a long id"
"""


@pytest.mark.parametrize(
    ("steps", "says", "id"),
    [
        ([read("aaaaaa")], "a long id", "aaaa"),
        ([read(""), read("aaaaaa")], "no id", ""),
    ],
)
def test_case_that_is_made_small_shows_the_same_assertion(
    tmp_path: Path, steps: list[Step], says: str, id: str
) -> None:
    """The empty text is tried first, and another assertion of the function fails for it."""
    run = campaign(NotesServer(), checks_of(tmp_path, TWO), [*opening(OLD), *steps])
    (finding,) = [each for each in run.findings if each.fault.kind == "invariant"]
    assert finding.is_solid
    assert finding.case[1:] == [read(id)]
    assert finding.fault.sentence == f'read_note {{"id": "{id}"}}: {says}'


# -- Results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "is_checked"),
    [
        (read("none"), True),
        (("call", "read_note", {}, ()), False),
        (("call", "read_note", {"id": 7}, ()), False),
        (("call", "create_note", {"text": 7}, ()), True),
    ],
)
@pytest.mark.parametrize("knows_tools", [True, False])
def test_error_is_checked_only_for_arguments_that_fit_the_schema(
    tmp_path: Path, step: Step, is_checked: bool, knows_tools: bool
) -> None:
    """A server is right to refuse others. A result is checked all the same, and so is every error
    if the tools weren't listed, as in a written test.
    """
    checks = checks_of(tmp_path, ERRORS.format("assert False, 'x'"))
    if knows_tools:
        checks.schemas.learn(STRICT)
    found = play(NotesServer(), [*opening(OLD), step, ("wait",)], checks)
    assert bool(found) is (is_checked or not knows_tools)


@pytest.mark.parametrize(
    ("schema", "arguments", "fit"),
    [
        (need("a"), {"a": "x"}, True),
        (need("a"), {"a": "x", "more": 1}, True),
        (need("a"), {}, False),
        ({"properties": {"a": {"pattern": "^x"}}}, {"a": "xy"}, True),
        ({"properties": {"a": {"pattern": "^x"}}}, {"a": "y"}, False),
        ({"properties": {"a": {"pattern": "(x+)+y"}}}, {"a": "x" * 100}, True),
        ({"properties": {"a": {"pattern": "x" * 201}}}, {"a": "y" * 201}, True),
        ({"properties": {"a": {"pattern": "^x"}}}, {"a": "y" * 200}, False),
        ({"properties": {"a": {"pattern": "^x"}}}, {"a": "y" * 201}, True),
        ({"properties": {"a": {"pattern": 7}}}, {"a": "y"}, True),
        ({"properties": {"a": True}}, {"a": "y"}, True),
        ({"properties": {"a": {"pattern": "^x"}}}, {"b": "y", "a": "y"}, False),
        ({"properties": {"a": {"pattern": "("}}}, {"a": "y"}, True),
        ({"properties": {"a": {"pattern": "^x"}}}, {"a": 7}, True),
        ({"properties": 7}, {"a": "y"}, True),
        ({"$ref": "https://example.com/schema"}, {"a": "y"}, True),
        (None, {"a": "y"}, True),
    ],
)
def test_arguments_fit_in_doubt(schema: Any, arguments: Any, fit: bool) -> None:
    schemas = ToolSchemas()
    schemas.learn([{"name": "t", "inputSchema": schema}, {"name": ["t"]}, {}])
    assert schemas.fit("t", arguments) is fit
    assert schemas.fit("unknown", arguments)


@pytest.mark.parametrize(
    ("how", "revision", "steps"),
    [
        ("now", OLD, [create()]),
        ("now", NEW, [create()]),
        ("task", OLD, [create("a", "task"), ("wait",), ("task", 0, "follow")]),
        ("task", NEW, [create("a", "task"), ("wait",), ("task", 0, "follow")]),
        ("input", NEW, [create(), ("wait",), ("retry", 0, "right")]),
        ("now", OLD, [create(), ("wait",), ("reconnect",)]),
        ("now", OLD, [create(), ("disconnect",)]),
    ],
)
def test_final_result_is_checked_once(
    tmp_path: Path, how: str, revision: str, steps: list[Any]
) -> None:
    """Neither a created task nor a request for input is a result."""
    checks = checks_of(tmp_path, EVERY.format("assert result.structured_content['id'] == 'x'"))
    found = play(NotesServer(how=how), [*opening(revision), *steps], checks)
    assert [row for _, row, _ in found] == ["every_result_is_right"]
    assert checks.counts == {"every_result_is_right": 1}
    assert checks.broken == {}


@pytest.mark.parametrize(
    ("how", "steps"),
    [
        ("task", [create("a", "task"), ("wait",)]),
        ("input", [create(), ("wait",)]),
        ("now", [read()]),
        ("now", [("request", "tools/list", {}, "int")]),
        ("now", [("call", "create_note", 7, ())]),
    ],
)
def test_response_without_a_final_success_is_not_checked(
    tmp_path: Path, how: str, steps: list[Any]
) -> None:
    checks = checks_of(tmp_path, EVERY.format("assert False"))
    server = NotesServer(how=how)
    if steps[-1][1:3] == ("create_note", 7):
        server._call = lambda *_: {"content": []}  # type: ignore[method-assign]
    assert play(server, [*opening(NEW), *steps], checks) == []
    assert not checks.counts


async def played_on_http(server: NotesServer, checks: Checks, case: Case) -> list[str]:
    """Play a case over HTTP. Return the rows of what the author's functions find."""

    def respond(message: Any) -> HttpResponse:
        for each in server(message):
            return HttpResponse(body=json.dumps(each).encode())
        return HttpResponse(202)

    outcome, _ = await played_over_http(respond, case, Player(checks=checks.begin()))
    return [each.row for each in outcome.faults if each.kind == "invariant"]


@pytest.mark.parametrize("client", [0, 1])
async def test_result_over_http_is_checked_for_each_client(
    tmp_path: Path, autojump_clock: Any, client: int
) -> None:
    checks = checks_of(tmp_path, CREATED, CAN_BE_READ)
    server = NotesServer(forgets=("bad",))
    steps: Case = [*opening(OLD), create("bad"), ("wait",), HAND, read(), ("wait",)]
    case = [*opening(OLD), *(on_client(client, each) for each in steps)]
    assert await played_on_http(server, checks, case) == [NAME]
    assert server.arguments[-1] == {"id": "note-0"}


# -- Values and arguments --------------------------------------------------------------------------


def test_value_is_handed_by_its_place_among_those_that_there_are(tmp_path: Path) -> None:
    checks = checks_of(tmp_path, CREATED)
    server = NotesServer()
    places = [0, 1, 2, 7]
    calls = [each for place in places for each in ((*HAND[:4], place), read("drawn"))]
    before = [*opening(OLD), HAND, read("first"), create(), create(), ("wait",)]
    play(server, [*before, *calls], checks)
    ids = [each["id"] for each in server.arguments if "id" in each]
    assert ids == ["first", "note-1", "note-0", "note-1", "note-0"]


@pytest.mark.parametrize(
    ("returned", "kept"),
    [("None", []), ("[]", []), ("['a', 'b']", ["a", "b"]), ("{'x': [1]}", [{"x": [1]}])],
)
def test_after_call_returns_one_value_or_a_list_or_none(
    tmp_path: Path, returned: str, kept: list[Any]
) -> None:
    checks = checks_of(tmp_path, f"@after_call(provides='v')\ndef f(c, r): return {returned}\n")
    hand = ("hand", "read_note", "id", "v")
    calls = [each for place in range(len(kept)) for each in ((*hand, place), read())]
    server = NotesServer()
    play(server, [*opening(OLD), create(), ("wait",), *calls], checks)
    assert [each["id"] for each in server.arguments[1:]] == kept[::-1]
    assert checks.broken == {}


def test_values_belong_to_one_play(tmp_path: Path) -> None:
    checks = checks_of(tmp_path, CREATED)
    server = NotesServer()
    play(server, [*opening(OLD), create(), ("wait",)], checks)
    play(server, [*opening(OLD), HAND, read("drawn")], checks)
    assert server.arguments[-1] == {"id": "drawn"}


@pytest.mark.parametrize("before", [[("wait",)], [], [("wait",), HAND]])
def test_conversation_after_a_reconnect_begins_without_values(
    tmp_path: Path, before: list[Any]
) -> None:
    """A right server with notes for each process hasn't the former one's. That is also so if the
    response comes while the former conversation ends.
    """
    checks = checks_of(tmp_path, CREATED, CAN_BE_READ)
    server = NotesServer()
    again = [("reconnect",), *opening(OLD), HAND, read("drawn"), ("wait",)]
    case = [*opening(OLD), create(), *before, *again, create(), ("wait",), HAND, read()]
    assert play(server, case, checks, seconds=0.5) == []
    ids = [each["id"] for each in server.arguments if "id" in each]
    assert ids == ["drawn", "note-0"]


@pytest.mark.parametrize(("giver", "taker"), [(0, 1), (1, 0)])
async def test_value_of_one_client_is_not_handed_to_the_other(
    tmp_path: Path, autojump_clock: Any, giver: int, taker: int
) -> None:
    """The other one can be another user. A step hands a value to a call of its own client."""
    checks = checks_of(tmp_path, CREATED)
    server = NotesServer()
    turns: list[tuple[int, Step]] = [
        *((each, step) for each in (0, 1) for step in opening(OLD)),
        *((giver, step) for step in (create(), ("wait",))),
        *((taker, step) for step in (HAND, read("drawn"), ("wait",))),
        (giver, HAND),
        *((taker, step) for step in (read("drawn too"), ("wait",))),
        (giver, read("own")),
    ]
    case = [on_client(client, step) for client, step in turns]
    assert await played_on_http(server, checks, case) == []
    ids = [each["id"] for each in server.arguments if "id" in each]
    assert ids == ["drawn", "drawn too", "note-0"]


def test_before_call_replaces_arguments_and_a_changed_copy_changes_nothing(tmp_path: Path) -> None:
    """Neither what is sent nor the copies of the next function are changed by one of them."""
    checks = checks_of(
        tmp_path,
        "@before_call('create_note')\ndef a(call):\n    return {**call.arguments, 'more': 1}\n"
        "@before_call('create_note')\ndef b(call):\n    call.arguments.clear()\n"
        "@before_call('read_note')\ndef c(call):\n    return {'id': 'other'}\n"
        "@invariant()\ndef d(call, result):\n"
        "    call.arguments.clear(); result.content.clear()\n"
        "    result.structured_content['id'] = 7\n"
        "@invariant()\ndef e(call, result):\n"
        "    assert call.arguments == {'text': 'a', 'more': 1}\n"
        "    assert result.structured_content == {'id': 'note-0'} and len(result.content) == 1\n",
    )
    server = NotesServer()
    assert play(server, [*opening(OLD), create(), ("wait",), read()], checks) == []
    assert server.arguments == [{"text": "a", "more": 1}, {"id": "other"}]
    assert checks.broken == {}


# -- Broken functions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            EVERY.format("return result.structured_content['hits']"),
            "KeyError: 'hits' (checks.py, line 5: return result.structured_content['hits'])",
        ),
        (EVERY.format("raise SystemExit"), "SystemExit (checks.py, line 5: raise SystemExit)"),
        (EVERY.format("import pytest; pytest.fail('x')"), "Failed: x (checks.py, line 5: import"),
        ("@after_call()\ndef f(c, r): assert 0, 'x'\n", "only an @invariant may assert: x"),
        ("@before_call()\ndef f(c): return 7\n", "it returned int: return a dict of JSON values"),
        ("@before_call()\ndef f(c): return {'a': c}\n", "it returned dict: return a dict of JSON"),
        ("@after_call(provides='v')\ndef f(c, r): return r\n", "it returned CallToolResult: retur"),
    ],
)
def test_function_that_is_broken_is_reported_once_and_is_no_finding(
    tmp_path: Path, text: str, says: str
) -> None:
    reported: list[str] = []
    checks = checks_of(tmp_path, text)
    checks._on_broken = reported.append
    case = [*opening(OLD), create(), create(), ("wait",), create()]
    server = NotesServer()
    assert play(server, case, checks) == []
    assert len(server.arguments) == 3
    ((_, why),) = checks.broken.items()
    assert says in why
    assert len(reported) == 1
    assert why in reported[0]
    assert why in checks.failure


async def test_function_that_never_returns_is_left_behind_and_not_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conversation goes on. A real clock, because a mock one waits for threads."""
    monkeypatch.setattr(_checks, "TIME_LIMIT", 0.05)
    checks = checks_of(tmp_path, EVERY.format("call.arguments['wait'].wait()"))
    released, calls = threading.Event(), []
    declared = checks.invariants.functions[0]

    def hang(call: Any, result: Any) -> None:
        calls.append(call)
        released.wait(10)

    object.__setattr__(declared, "function", hang)
    server = NotesServer()
    session = await MemoryTarget(server).open()
    case = [*opening(OLD), create(), ("wait",), create(), ("wait",), create()]
    try:
        outcome = await Player(checks=checks.begin()).play(case, session)
    finally:
        released.set()
    await session.aclose()
    assert outcome.faults == []
    assert len(server.arguments) == 3
    assert len(calls) == 1
    assert "still runs in its thread" in checks.failure


def test_two_functions_never_run_at_once(tmp_path: Path) -> None:
    """Lanes play side by side, and functions may share the variables of their file."""
    checks = checks_of(
        tmp_path,
        "import time\nrunning = []\n"
        "@invariant()\ndef f(call, result):\n"
        "    running.append(1); time.sleep(0.001); assert len(running) == 1; running.pop()\n",
    )

    async def run() -> None:
        declared = checks.invariants.functions[0]
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(check, declared)

    async def check(declared: Any) -> None:
        assert await checks.run(declared, None, None) == (None, None)

    trio.run(run)
    assert checks.broken == {}


def test_function_that_takes_much_of_the_run_is_named_and_one_that_never_ran(
    tmp_path: Path,
) -> None:
    """A slow function is one that takes a tenth of the run."""
    checks = checks_of(tmp_path, EVERY.format("pass"), CAN_BE_READ)
    checks.seconds["every_result_is_right"] = 12.4
    checks.counts["every_result_is_right"] = 7
    assert checks.notes(60.0) == [
        (
            f"the invariant {NAME} was never checked: no call of its tool had a result, apart from"
            " errors for arguments that miss its schema"
        ),
        "the function every_result_is_right took 12 s of this run: make it faster",
    ]
    assert checks.notes(600.0)[1:] == []
    assert checks.unjudged == ""
    assert checks_of(tmp_path, CREATED).unjudged == ""
    assert "no invariant was checked" in checks_of(tmp_path, CAN_BE_READ).unjudged


@pytest.mark.parametrize(
    ("returned", "handed"),
    [
        ("None", {"id": "note-0"}),
        ("{**call.arguments, 'x': 1}", {"id": "note-0"}),
        ("{'x': 1}", {}),
    ],
)
def test_value_that_before_call_removes_was_not_handed(
    tmp_path: Path, returned: str, handed: dict[str, str]
) -> None:
    """An invariant for handed values must not judge a call that went without them."""
    checks = checks_of(
        tmp_path,
        CREATED,
        f"@before_call('read_note')\ndef change(call): return {returned}\n"
        "@invariant('read_note', errors=True)\ndef check(call, result):\n"
        f"    assert call.handed == {handed}, call.handed\n",
    )
    case = [*opening(OLD), create(), ("wait",), HAND, read(), ("wait",)]
    assert play(NotesServer(), case, checks) == []
    assert checks.broken == {}


# -- Limits and texts ------------------------------------------------------------------------------


def test_text_of_an_assertion_and_of_a_call_is_shown_up_to_its_limit() -> None:
    whole, cut = AssertionError("x" * 300), AssertionError("x" * 301)
    assert _checks._text_of(whole) == "x" * 300
    assert _checks._text_of(cut) == "x" * 297 + "..."
    room = 120 - len('t {"a": ""}')
    assert _checks._shown_call("t", {"a": "é" * room}) == f't {{"a": "{"é" * room}"}}'
    long = _checks._shown_call("t", {"a": "é" * (room + 1)})
    assert (len(long), long[-4:]) == (120, "é...")


def test_error_whose_text_fails_is_named_by_its_class(tmp_path: Path) -> None:
    checks = checks_of(
        tmp_path,
        "class Bad(Exception):\n    def __str__(self): return 1 / 0\n"
        "@invariant()\ndef f(call, result):\n    raise Bad\n",
    )
    assert play(NotesServer(), [*opening(OLD), create(), ("wait",)], checks) == []
    assert checks.broken == {"f": "Bad (checks.py, line 6: raise Bad)"}
    assert checks.failure == "f is broken: Bad (checks.py, line 6: raise Bad)"


@pytest.mark.parametrize(
    ("seconds", "run", "is_slow"),
    [(5.0, 10.0, False), (5.1, 10.0, True), (10.0, 100.0, False), (10.1, 100.0, True)],
)
def test_function_is_slow_from_five_seconds_and_a_tenth_of_the_run(
    tmp_path: Path, seconds: float, run: float, is_slow: bool
) -> None:
    checks = checks_of(tmp_path, EVERY.format("pass"))
    checks.counts["every_result_is_right"] = 1
    checks.seconds["every_result_is_right"] = seconds
    assert bool(checks.notes(run)) is is_slow


def test_report_has_counts_and_what_is_broken(tmp_path: Path) -> None:
    """A broken invariant has neither passed nor "was never checked"."""
    checks = checks_of(tmp_path, EVERY.format("assert True"), CAN_BE_READ, CREATED)
    assert checks.notes(1.0)[0] == (
        "the invariant every_result_is_right was never checked: no call of its tool had a result"
        " without is_error"
    )
    assert checks.passed == []
    checks.counts.update({"every_result_is_right": 2, NAME: 3})
    first, second, _ = checks.invariants.functions
    checks.break_off(second, "a\nb")
    assert checks.passed == ["every_result_is_right"]
    assert checks.notes(1.0) == []
    checks.break_off(first, "c")
    assert checks.failure == f"{NAME} is broken: a\\nb; every_result_is_right is broken: c"
    assert checks.passed == []
    assert checks.report() == {
        "source": str(tmp_path / "checks.py"),
        "checks": {"every_result_is_right": 2, NAME: 3},
        "broken": {NAME: "a\\nb", "every_result_is_right": "c"},
    }


async def test_seconds_of_a_function_are_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five of them may pass before a function is left behind, as its docstring says."""
    times = iter([0.0, 2.0, 10.0, 13.0])
    monkeypatch.setattr(_checks, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    checks = checks_of(tmp_path, EVERY.format("pass"))
    (declared,) = checks.invariants.functions
    assert await checks.run(declared, None, None) == (None, None)
    assert await checks.run(declared, None, None) == (None, None)
    assert checks.seconds == {"every_result_is_right": 5.0}
    assert _checks.TIME_LIMIT == 5.0


@pytest.mark.parametrize(
    ("data", "is_result"),
    [
        ('{"content": []}', True),
        ('{"content": 1}', False),
        ('{"content": [], "structuredContent": ' + '{"a":' * 50_000 + "1" + "}" * 50_001, False),
    ],
    ids=["right", "wrong", "deep"],
)
def test_result_of_another_form_is_left_to_the_judge(data: str, is_result: bool) -> None:
    assert (_checks._decoded(data) is not None) is is_result


def test_finding_of_wrong_arguments_is_another_variant(tmp_path: Path) -> None:
    """Otherwise a case that is made small would end with arguments that miss the schema."""

    async def variants(step: Step) -> list[str]:
        checks = checks_of(tmp_path, EVERY.format("assert False"))
        checks.schemas.learn(STRICT)
        session = await MemoryTarget(NotesServer()).open()
        case = [*opening(OLD), step, ("wait",)]
        outcome = await Player(checks=checks.begin()).play(case, session)
        await session.aclose()
        return [each.variant for each in outcome.faults if each.kind == "invariant"]

    for step, expected in (
        (create(), "checks.py, line 5"),
        (("call", "create_note", {"text": 7}, ()), "wrong arguments checks.py, line 5"),
    ):
        assert trio.run(variants, step, clock=MockClock(autojump_threshold=0)) == [expected]


@pytest.mark.parametrize(
    "params",
    [{"name": 7}, {"name": "create_note", "arguments": [1]}, {"arguments": {}}, [1]],
)
def test_call_that_no_function_could_take_is_not_checked(tmp_path: Path, params: Any) -> None:
    """The server answers what it should refuse, which is for the judge."""
    checks = checks_of(tmp_path, EVERY.format("assert False"))

    class Lenient(NotesServer):
        def __call__(self, message: Any, start: int = 0) -> Any:
            if message.get("method") == "tools/call":
                yield {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
            else:
                yield from super().__call__(message, start)

    case = [*opening(OLD), ("request", "tools/call", params, "int", "whole"), ("wait",)]
    assert play(Lenient(), case, checks) == []
    assert not checks.counts


def test_values_of_a_name_are_the_newest_two_hundred(tmp_path: Path) -> None:
    checks = checks_of(
        tmp_path, "@after_call(provides='v')\ndef f(c, r): return list(range(201))\n"
    )
    server = NotesServer()
    hand = ("hand", "read_note", "id", "v")
    places = [0, 199, 200]
    calls = [each for place in places for each in ((*hand, place), read())]
    play(server, [*opening(OLD), create(), ("wait",), *calls], checks)
    assert [each["id"] for each in server.arguments[1:]] == [200, 1, 200]


@pytest.mark.parametrize("returned", ["[1, None, 2]", "[1, c, 2]", "[1, float('nan'), 2]"])
def test_value_that_cannot_be_kept_leaves_the_others(tmp_path: Path, returned: str) -> None:
    checks = checks_of(tmp_path, f"@after_call(provides='v')\ndef f(c, r): return {returned}\n")
    hand = ("hand", "read_note", "id", "v")
    calls = [each for place in (0, 1) for each in ((*hand, place), read())]
    server = NotesServer()
    play(server, [*opening(OLD), create(), ("wait",), *calls], checks)
    assert [each["id"] for each in server.arguments[1:]] == [2, 1]
    assert bool(checks.broken) is ("None" not in returned)


def test_function_for_another_tool_neither_changes_nor_checks_a_call(tmp_path: Path) -> None:
    checks = checks_of(
        tmp_path,
        "@before_call('other')\ndef a(call): return {'text': 'other'}\n"
        "@before_call('create_note')\ndef b(call): return {'text': call.revision}\n"
        "@invariant('other')\ndef c(call, result): assert False\n",
    )
    server = NotesServer()
    assert play(server, [*opening(OLD), create(), ("wait",)], checks) == []
    assert server.arguments == [{"text": OLD}]
    assert not checks.counts


def test_schemas_that_are_listed_again_replace_the_first_ones() -> None:
    """A server may change its tools while it is judged."""
    schemas = ToolSchemas()
    for name in ("a", "b"):
        schemas.learn([{"name": "t", "inputSchema": need(name)}])
        assert schemas.fit("t", {name: "x"})
        assert not schemas.fit("t", {"c": "x"})
    assert not schemas.fit("t", {"a": "x"})
