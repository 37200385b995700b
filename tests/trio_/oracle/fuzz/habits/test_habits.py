"""Known habits of SDKs: what is pardoned, and above all what isn't."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

import pytest
import trio
from trio.testing import MockClock

from mcp_core.trace import ROWS, TraceLine
from mcp_trio.cli.oracle.fuzz._options import FuzzOptions
from mcp_trio.cli.oracle.fuzz._run import status_of
from mcp_trio.oracle.fuzz._call_guard import UNKNOWN_URI
from mcp_trio.oracle.fuzz._damage import DAMAGING_STEPS
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._known_crashes import find_known_crash
from mcp_trio.oracle.fuzz._probe import Offers, probe
from mcp_trio.oracle.fuzz._report import junit_report, report_document
from mcp_trio.oracle.fuzz._stdio import CommandTarget
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.causes._baseline import IgnoredRow
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.habits._sdk_marks import (
    PYTHON_1,
    PYTHON_2,
    TYPESCRIPT,
    find_marks,
    has_framework_mark,
    zod_issues,
)
from mcp_trio.oracle.fuzz.habits._table import (
    HABITS,
    ListedNames,
    MessageExchange,
    read_exchange,
    sent_by,
)
from mcp_trio.oracle.fuzz.habits._watch import HabitWatch
from mcp_trio.oracle.fuzz.play._player import FreshPlays, Player, play_case
from tests.trio_.oracle.fuzz.memory_target import BATCHED, NEW, OLD, played
from tests.trio_.oracle.fuzz.memory_target import META as PREFIX
from tests.trio_.oracle.fuzz.sdk_servers import (
    ISSUES,
    LOG,
    SDKS,
    Raw,
    ReadingTarget,
    TypeScript2,
    python_1,
    python_2,
    typescript,
)
from tests.trio_.oracle.fuzz.targets import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mcp_trio.oracle.fuzz._case import Case, Step

OPEN = ("open", OLD, "whole", "all")
REQUEST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
CALL = {"name": "greet", "arguments": {}}
NAMES_REVISION = PREFIX + "protocolVersion"
NAMES = {"typescript": TYPESCRIPT, "python 1": PYTHON_1, "python 2": PYTHON_2}


def request(**members: Any) -> Step:
    return ("mutate", json.dumps({**REQUEST, "id": 5_000, **members}))


PARAMS: Case = [OPEN, ("request", "tools/list", [1], "int", "whole")]
NULL: Case = [OPEN, ("request", "ping", None, "int", "whole")]
OTHER: Case = [OPEN, request(extra=True)]
META: Case = [OPEN, request(params={"_meta": [1]})]
CURSOR: Case = [OPEN, ("request", "tools/list", {"cursor": 8}, "int", "whole")]
EARLY: Case = [("open", OLD, "late", "all")]
OPEN_BATCHED: Step = ("open", BATCHED, "whole", "all")
BATCH: Case = [OPEN_BATCHED, ("batch", [["ping", {}, "int"]])]
PROMPT: Case = [
    OPEN,
    ("page", "prompts/list", "all"),
    ("request", "prompts/get", {"name": "none"}, "int"),
]
RESOURCE: Case = [
    OPEN,
    ("page", "resources/list", "all"),
    ("page", "resources/templates/list", "all"),
    ("request", "resources/read", {"uri": UNKNOWN_URI}, "int"),
]


# -- The table -------------------------------------------------------------------------------------


def test_table_names_rows_and_probes() -> None:
    assert len({each.name for each in HABITS}) == len(HABITS)
    for habit in HABITS:
        assert habit.row in ROWS
        sent = sent_by(habit.probe)
        assert sent is not None
        assert habit.holds(sent), habit.name


@pytest.mark.parametrize(
    ("sent", "names"),
    [
        (REQUEST, {"long-errors"}),
        ({**REQUEST, "params": {"cursor": 5}}, {"long-errors"}),
        ({**REQUEST, "params": [1]}, {"drops-params", "logs-undeclared"}),
        ({**REQUEST, "params": None}, {"drops-null-params"}),
        ({**REQUEST, "params": {"_meta": 1}}, {"drops-meta"}),
        ({**REQUEST, "params": {"_meta": {"progressToken": None}}}, {"drops-meta"}),
        ({**REQUEST, "params": {"_meta": {"progressToken": "t"}}}, {"long-errors"}),
        ({**REQUEST, "extra": 1}, {"drops-members"}),
        ({**REQUEST, "id": None, "params": [1]}, {"logs-undeclared"}),
        ({**REQUEST, "id": True}, set()),
        ({"jsonrpc": "2.0", "method": "a"}, set()),
        ({"jsonrpc": "2.0", "method": "a", "params": 1}, {"logs-undeclared"}),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, {"logs-undeclared"}),
        ({"jsonrpc": "1.0", "id": 1, "method": "a"}, {"logs-undeclared"}),
        ([], {"logs-undeclared"}),
        ([REQUEST, {"jsonrpc": "2.0", "method": "a"}], {"logs-undeclared", "drops-batches"}),
        ([{"jsonrpc": "2.0", "method": "a"}, 5], {"logs-undeclared"}),
        ([{**REQUEST, "extra": 1}, None], {"logs-undeclared", "drops-batches"}),
        ([REQUEST, {**REQUEST, "method": "tools/call", "params": CALL}], {"logs-undeclared"}),
        (None, {"logs-undeclared"}),
        # A valid call runs the author's code. With other members it doesn't get there.
        ({**REQUEST, "method": "tools/call", "params": CALL}, set()),
        ({**REQUEST, "method": "tools/call", "params": {"name": "a"}}, set()),
        ({**REQUEST, "method": "tools/call", "params": {**CALL, "task": 1}}, set()),
        ({**REQUEST, "method": "tools/call", "params": {"name": 1}}, {"long-errors"}),
        ({**REQUEST, "method": "prompts/get", "params": {"name": "a"}},
         {"long-errors", "prompt-code"}),
        ({**REQUEST, "method": "prompts/get", "params": {"name": 1}}, {"long-errors"}),
        ({**REQUEST, "method": "prompts/get", "params": [1]}, {"drops-params", "logs-undeclared"}),
        ({**REQUEST, "method": "prompts/get"}, {"long-errors"}),
        ({**REQUEST, "method": "resources/read", "params": {"uri": "a"}},
         {"long-errors", "resource-code"}),
    ],
)  # fmt: skip
def test_habit_holds_for_messages(sent: Any, names: set[str]) -> None:
    found = {each.name for each in HABITS if each.holds(MessageExchange(sent)) and not each.lasts}
    assert found == names


@pytest.mark.parametrize(
    "step",
    [
        ("open",),
        ("open", OLD),
        ("request",),
        ("call",),
        ("call", "a"),
        ("mutate", 7),
        ("damage", None),
        ("wait",),
        ("notify", ["a"]),
        ("batch",),
        ("batch", 7),
        ("batch", [[], 5, ["ping"]]),
        ("reply", "none"),
        ("reply", 0, 7),
    ],
)
def test_step_of_a_stored_case_may_be_cut(step: Step) -> None:
    """Anyone may have written the report of a checkout."""
    sent = sent_by(step)
    if sent is not None:
        assert isinstance([each.holds(sent) for each in HABITS], list)


def test_each_step_that_sends_what_may_be_no_request_has_an_exchange() -> None:
    """The Python SDK 1.x logs all of them, and the author's finding would be the SDK's habit."""
    steps: Case = [
        ("batch", [["ping", {}, "int"]]),
        ("reply", 0, {"result": {}}),
        ("mutate", "[]"),
        ("damage", b"[]"),
        ("deep", "array", 100_000),
        ("respond", 0, "id"),
    ]
    habit = next(each for each in HABITS if each.name == "logs-undeclared")
    for step in steps:
        sent = sent_by(step)
        assert sent is not None
        assert habit.holds(sent), step
    assert {step[0] for step in steps} == {*DAMAGING_STEPS, "respond"}


@pytest.mark.parametrize(
    ("data", "is_split"),
    [
        (b'{"jsonrpc":"2.0",\r"id":1,"method":"ping"}', True),
        ('{"jsonrpc":"2.0",\r"id":1,"method":"ping"}', True),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n', False),
        ('{"jsonrpc":"2.0","id":1,"method":"a\\r"}', False),
        (b"\xff\r\xff", True),
    ],
)
def test_message_with_a_carriage_return_is_two_lines_for_the_python_sdk(
    data: bytes | str, is_split: bool
) -> None:
    habit = next(each for each in HABITS if each.name == "logs-undeclared")
    sent = sent_by(("damage", data))
    assert sent is not None
    assert sent.is_split is is_split
    assert habit.holds(sent) or not is_split


PROMPT_REQUEST = {**REQUEST, "method": "prompts/get", "params": {"name": "a.c", "arguments": {}}}
RESOURCE_REQUEST = {**REQUEST, "method": "resources/read", "params": {"uri": "a://b"}}


LISTED = ListedNames({"a.c": frozenset({"topic", "tone"})})
GIVES_ONE = {**REQUEST, "method": "prompts/get"}
GIVES_ONE["params"] = {"name": "a.c", "arguments": {"tone": "kind"}}
MISSES_BOTH = {**PROMPT_REQUEST, "params": {"name": "a.c"}}


@pytest.mark.parametrize(
    ("sent", "text", "reacts"),
    [
        (GIVES_ONE, "Missing required arguments: {'topic'}", True),
        (GIVES_ONE, "Error rendering prompt 'a.c': Missing required arguments: {'topic'}", True),
        (MISSES_BOTH, "Missing required arguments: {'tone', 'topic'}", True),
        (MISSES_BOTH, "Missing required arguments: {'topic'}", False),
        (GIVES_ONE, "Missing required arguments: {'other'}", False),
        (GIVES_ONE, "Missing required arguments: {'topic': 1}", False),
        (GIVES_ONE, "Missing required arguments: {'" + "[" * 9_000 + "'}", False),
        # It is listed, so that the words are the author's.
        (GIVES_ONE, "Unknown prompt: a.c", False),
        (MISSES_BOTH, "Unknown prompt: 'a.c'", False),
    ],
)
def test_missing_argument_of_a_listed_prompt_is_named_by_the_sdk(
    sent: dict[str, Any], text: str, reacts: bool
) -> None:
    habit = next(each for each in HABITS if each.name == "prompt-code")
    received = {"jsonrpc": "2.0", "id": 7, "error": {"code": 0, "message": text}}
    exchange = MessageExchange(sent, [received], listed=LISTED)
    assert habit.holds(exchange)
    assert habit.reacts(exchange) is reacts


@pytest.mark.parametrize(
    ("name", "sent", "listed", "holds"),
    [
        ("prompt-code", PROMPT_REQUEST, ListedNames(), True),
        ("prompt-code", PROMPT_REQUEST, ListedNames({"a.c": frozenset()}), False),
        ("prompt-code", PROMPT_REQUEST, ListedNames({"other": frozenset()}), True),
        ("prompt-code", PROMPT_REQUEST, LISTED, True),
        ("resource-code", RESOURCE_REQUEST, ListedNames(), True),
        ("resource-code", RESOURCE_REQUEST, ListedNames(uris=frozenset({"a://b"})), False),
        ("resource-code", RESOURCE_REQUEST, ListedNames(has_templates=True), False),
    ],
)
def test_habit_never_holds_for_what_the_server_lists(
    name: str, sent: dict[str, Any], listed: ListedNames, holds: bool
) -> None:
    """The author's code runs for it, and can raise an error with any words."""
    habit = next(each for each in HABITS if each.name == name)
    assert habit.holds(MessageExchange(sent, listed=listed)) is holds


def test_listed_entries_of_any_shape_are_read() -> None:
    arguments = [{"name": "b", "required": True}, {"name": 5, "required": True}, {"name": "c"}, 5]
    entry = {"name": "a", "arguments": arguments}
    offers = Offers(
        prompts=[entry, {"name": 5}, {"name": "d", "arguments": 5}, {}],
        resources=[{"uri": "a://b"}, {"uri": 5}, {}],
    )
    listed = ListedNames.of(offers)
    assert listed.prompts == {"a": {"b"}, "d": frozenset()}
    assert listed.uris == {"a://b"}


@pytest.mark.parametrize(
    ("name", "code", "text", "reacts"),
    [
        ("prompt-code", 0, "Unknown prompt: a.c", True),
        ("prompt-code", 0, "Unknown prompt: 'a.c'", True),
        # It isn't listed.
        ("prompt-code", 0, "Missing required arguments: {'topic'}", False),
        ("prompt-code", -32603, "Unknown prompt: a.c", False),
        ("prompt-code", 0, "Unknown prompt: abc", False),
        ("prompt-code", 0, "no such topic", False),
        ("prompt-code", 0, "Error rendering prompt 'a.c': no such topic", False),
        ("prompt-code", 0, None, False),
        ("resource-code", 0, "Unknown resource: a://b", True),
        ("resource-code", 0, "Unsupported URI scheme: a", False),
    ],
)
def test_code_0_is_a_habit_with_the_words_of_the_sdk_only(
    name: str, code: int, text: str | None, reacts: bool
) -> None:
    """With other words an author's handler has raised it, who can choose the code."""
    habit = next(each for each in HABITS if each.name == name)
    sent = PROMPT_REQUEST if name == "prompt-code" else RESOURCE_REQUEST
    received = {"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": text}}
    assert habit.holds(MessageExchange(sent))
    assert habit.reacts(MessageExchange(sent, [received])) is reacts


OWN_LOG = {"method": "notifications/message", "params": {"level": "info", "data": "mine"}}


@pytest.mark.parametrize(
    ("name", "received", "reacts"),
    [
        ("drops-params", [], True),
        ("drops-params", [{"jsonrpc": "2.0", "method": "notifications/message"}], True),
        ("long-errors", [OWN_LOG, {"id": 7, "error": {"message": ISSUES}}], True),
        ("serves-early", [{"id": 7, "result": {}}, OWN_LOG], True),
        ("drops-params", [{"method": "notifications/message", "params": LOG}], True),
        ("drops-params", [{**REQUEST, "error": {}}], False),
        ("logs-undeclared", [], False),
        ("logs-undeclared", [{"method": "notifications/message", "params": LOG}], True),
        (
            "logs-undeclared",
            [{"method": "notifications/message", "params": {**LOG, "data": "mine"}}],
            False,
        ),
        ("long-errors", [{"id": 7, "error": {"message": ISSUES}}], True),
        ("long-errors", [{"id": 7, "error": {"message": "Invalid request: " + ISSUES}}], True),
        ("long-errors", [{"id": 8, "error": {"message": ISSUES}}], False),
        ("long-errors", [{"id": 7, "error": {"message": "a\nb\nc"}}], False),
        ("long-errors", [{"id": 7, "error": {"message": ISSUES.replace("params", "a")}}], False),
        ("serves-early", [{"id": 7, "result": {}}], True),
        ("serves-early", [{"id": 7, "error": {}}], False),
    ],
)
def test_habit_has_exactly_one_reaction(name: str, received: list[Any], reacts: bool) -> None:
    habit = next(each for each in HABITS if each.name == name)
    assert habit.reacts(MessageExchange(REQUEST, received)) == reacts


@pytest.mark.parametrize(
    "text", [None, "", "[", "[]]", "{}", "[1]", '[{"code": "a"}]', "[" * 100_000]
)
def test_zod_issues_of_another_text_are_none(text: Any) -> None:
    assert not zod_issues(text)


def lines(*messages: Any, sides: str = "") -> list[TraceLine]:
    """Return trace lines; `sides` has c or s for each."""
    senders = {"c": "client", "s": "server"}
    return [
        TraceLine(t=0.0, sender=senders[side], raw=json.dumps(each))  # type: ignore[arg-type]
        for each, side in zip(messages, sides, strict=True)
    ]


ROOTS, ROOTS_RESULT = {"id": 0, "method": "roots/list"}, {"id": 0, "result": {"roots": []}}
CHANGED = {"method": "notifications/tools/list_changed"}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
PING, PONG = {"id": 9, "method": "ping"}, {"id": 9, "result": {}}
INITIALIZED = {"id": 1, "result": {"protocolVersion": OLD}}


@pytest.mark.parametrize(
    ("messages", "sides", "expected"),
    [
        ((INITIALIZE, INITIALIZED, REQUEST, PING, PONG), "cscs" + "s", None),
        ((INITIALIZE, INITIALIZED, REQUEST, PING, PONG), "csccs", (REQUEST, [], False)),
        ((INITIALIZE, INITIALIZED, REQUEST, 5, PING, PONG), "cscscs", (REQUEST, [5], False)),
        ((INITIALIZE, INITIALIZED, REQUEST, 5, PING), "cscsc", None),
        ((INITIALIZE, INITIALIZED, REQUEST, REQUEST, PING, PONG), "cscccs", None),
        (
            (REQUEST, 5, INITIALIZE, INITIALIZED, PING, PONG),
            "cscscs",
            (REQUEST, [5], True),
        ),
        ((INITIALIZE, INITIALIZED, REQUEST, CHANGED, PING, PONG), "cscscs", (REQUEST, [], False)),
        (
            (INITIALIZE, INITIALIZED, ROOTS, REQUEST, OWN_LOG, ROOTS_RESULT, PING, PONG),
            "csscsccs",
            (REQUEST, [OWN_LOG], False),
        ),
        ((INITIALIZE, INITIALIZED, REQUEST, ROOTS_RESULT, PING, PONG), "cscccs", None),
        ((), "", None),
    ],
)
def test_exchange_is_the_one_of_a_conversation(
    messages: tuple[Any, ...], sides: str, expected: Any
) -> None:
    """There is one message beside the handshake, and the next request has a result.

    What the server sends of its own, and what it gets for that, is neither.
    """
    found = read_exchange(lines(*messages, sides=sides))
    assert found == (None if expected is None else MessageExchange(*expected))


# -- Servers of the SDKs ---------------------------------------------------------------------------


def habits_of(run: Campaign) -> list[str]:
    return [each.habit.name for each in run.habits]


@pytest.mark.parametrize(
    ("sdk", "case", "name"),
    [
        ("typescript", PARAMS, "drops-params"),
        ("python 1", PARAMS, "logs-undeclared drops-params"),
        ("python 2", PARAMS, "drops-params"),
        ("typescript", [OPEN, ("burst", 3, "tools/list", [1])], "drops-params"),
        ("typescript", NULL, "drops-null-params"),
        ("typescript", OTHER, "drops-members"),
        ("typescript", META, "drops-meta"),
        ("typescript", CURSOR, "long-errors"),
        ("typescript", EARLY, "serves-early"),
        ("typescript", BATCH, "drops-batches"),
        ("python 1", BATCH, "logs-undeclared drops-batches"),
        ("python 2", BATCH, "drops-batches"),
        ("typescript", [OPEN_BATCHED, ("batch", [["acme/none", {}, "text"],
                                                 ["notifications/acme", {}, None],
                                                 ["tools/list", {}, "int"]])], "drops-batches"),
        # Other revisions have no batches.
        ("python 1", [OPEN, BATCH[1]], "logs-undeclared"),
        ("python 1", [OPEN, ("reply", "none", {"result": {}})], "logs-undeclared"),
        ("python 1", [OPEN, ("mutate", "7")], "logs-undeclared"),
        ("python 1", [OPEN, ("mutate", "{nothing")], "logs-undeclared"),
    ],
)  # fmt: skip
def test_habit_of_an_sdk_is_no_finding(sdk: str, case: Case, name: str) -> None:
    """A case between others, as they are drawn, shows what it shows alone."""
    for drawn in (case, [*case, ("wait",), ("request", "tools/list", {}, "int"), ("wait",)]):
        run = played(ReadingTarget(SDKS[sdk]), drawn, capabilities=("tools",))
        assert (run.findings, habits_of(run)) == ([], name.split())
        assert not run.unconfirmed
        for shown in run.habits:
            assert shown.sdk == NAMES[sdk]
            assert len(shown.marks) >= 2


def test_habit_that_the_user_ignores_is_left_out() -> None:
    """With --strict a habit fails the run, unless its row is accepted."""
    entry = IgnoredRow(row="RPC-17", reason="the SDK drops it")
    run = played(ReadingTarget(typescript), PARAMS, NULL, ignored=(entry,))
    assert (run.findings, habits_of(run)) == ([], [])
    assert run.found.ignored == {entry: 2}


def test_habit_is_found_once_and_then_costs_no_time() -> None:
    """Later requests that are dropped aren't waited for, and need no further process."""
    times: list[float] = []

    def timed(message: Any) -> Iterator[dict[str, Any]]:
        times.append(trio.current_time())
        return typescript(message)

    target = ReadingTarget(timed)
    methods = [f"acme/{number}" for number in range(40)]
    later: list[Case] = [[OPEN, ("request", each, 82, "int")] for each in methods]
    run = played(target, PARAMS, *later)
    assert run.findings == []
    assert habits_of(run) == ["drops-params"]
    assert run.habits[0].seen == 41
    assert set(run.habits[0].methods) == {"tools/list", *methods[:19]}
    assert target.starts == 5  # the case, marks, probe, its message alone, and the later cases
    messages = 2 * len(later)  # each with the request that shows that it was read
    assert times[-1] - times[-messages] < 0.1


def test_habit_of_a_slow_server_is_found() -> None:
    """A busy machine hides marks in one conversation, and answers a ping of a probe late."""
    unknown: list[Any] = []
    pings: list[Any] = []

    def slow(message: Any) -> Iterator[dict[str, Any]]:
        method = message.get("method") if isinstance(message, dict) else None
        if method == "mcp-trio-fuzz/none":
            unknown.append(message)
        if method == "ping" and len(unknown) == 2:
            pings.append(message)
        hides_marks = len(unknown) == 1 and method in ("mcp-trio-fuzz/none", "tools/list")
        misses_ping = [message] == pings
        if not hides_marks and not misses_ping:
            yield from typescript(message)

    run = played(ReadingTarget(slow), PARAMS, shrinks=False)
    assert (len(unknown), len(pings)) == (2, 3)  # the probe twice, and the message alone
    assert habits_of(run) == ["drops-params"]
    assert run.findings == []


@pytest.mark.parametrize(("case", "name"), [(PARAMS, "drops-params"), (EARLY, "serves-early")])
def test_habit_of_a_server_that_speaks_of_its_own_is_found(case: Case, name: str) -> None:
    """Many published servers ask for roots once they are initialized."""

    def talkative(message: Any) -> Iterator[dict[str, Any]]:
        yield from typescript(message)
        if isinstance(message, dict) and message.get("method") == "notifications/initialized":
            yield {"method": "roots/list", "jsonrpc": "2.0", "id": 0}

    run = played(ReadingTarget(talkative), case, shrinks=False)
    assert habits_of(run) == [name]
    assert run.findings == []


def test_habit_that_only_the_smallest_case_shows_is_no_finding() -> None:
    """The first message seems to be the one that counts, and isn't."""
    other = ("mutate", '{"jsonrpc":"2.0","method":"acme/none","params":5}')
    long = [OPEN, other, ("mutate", "{}")]
    run = played(ReadingTarget(python_1), long)
    assert run.findings == []
    assert habits_of(run) == ["logs-undeclared"]
    assert run.habits[0].case[1:] == [("mutate", "{}")]


async def test_habit_that_two_tasks_find_at_once_is_one(autojump_clock: object) -> None:
    """Both faults are explained, and no play is made twice."""
    target = ReadingTarget(typescript)
    offers = Offers(revisions=[OLD], capabilities={OLD: {"tools": {}}})
    watch = HabitWatch(FreshPlays(target, Player, 2.0), CaseChoices(offers, []))
    fault = TargetFault(kind="row", row="RPC-17", method="tools/list")
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(watch.examine, fault, PARAMS)
    assert [each.seen for each in watch.shown] == [2]
    assert target.starts == 3


def python_1_prompts(message: Any) -> Iterator[dict[str, Any]]:
    """Yield what a server of the Python SDK 1.x with prompts and resources sends."""
    method = message.get("method") if isinstance(message, dict) else None
    params = message.get("params", {}) if _is_numbered(message) else {}
    reply = {"jsonrpc": "2.0", "id": message.get("id")} if isinstance(message, dict) else {}
    name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
    if method == "prompts/list":
        yield {**reply, "result": {"prompts": [{"name": "plan"}]}}
    elif method == "resources/list":
        yield {**reply, "result": {"resources": [{"name": "note", "uri": "note://a"}]}}
    elif method == "resources/templates/list":
        yield {**reply, "result": {"resourceTemplates": []}}
    elif method in ("prompts/get", "resources/read"):
        what = "prompt" if method == "prompts/get" else "resource"
        yield {**reply, "error": {"code": 0, "message": f"Unknown {what}: {name}"}}
    else:
        for each in python_1(message):
            if method == "initialize":
                each["result"]["capabilities"] |= {"prompts": {}, "resources": {}}
            yield each


def played_lists(title: str, *cases: Case) -> Campaign:
    """Play cases against a server of the SDK with a tool whose schema has a title."""
    offers = Offers(
        revisions=[OLD],
        tools=[tool("greet", title)],
        prompts=[{"name": "plan"}],
        resources=[{"name": "note", "uri": "note://a"}],
        capabilities={OLD: {"tools": {}, "prompts": {}, "resources": {}}},
    )
    target = ReadingTarget(python_1_prompts)
    options = CampaignOptions(seconds=None, shrinks=False)
    run = Campaign(target, None, CaseChoices(offers, []), options)
    trio.run(run.run, cases, clock=MockClock(autojump_threshold=0))
    return run


LISTED_PROMPT: Case = [*PROMPT[:-1], ("request", "prompts/get", {"name": "plan"}, "int")]
LISTED_RESOURCE: Case = [*RESOURCE[:-1], ("request", "resources/read", {"uri": "note://a"}, "int")]


@pytest.mark.parametrize(
    ("title", "case", "habit", "rows"),
    [
        ("greetArguments", PROMPT, "prompt-code", []),
        ("greetArguments", RESOURCE, "resource-code", []),
        # With the low-level server of the SDK these words are the author's.
        ("Greet", PROMPT, "", ["PRM-4"]),
        ("Greet", RESOURCE, "", ["RES-7"]),
        # So they are for what is listed. The judge has no rule about these errors.
        ("greetArguments", LISTED_PROMPT, "", []),
        ("greetArguments", LISTED_RESOURCE, "", []),
    ],
)
def test_words_of_the_author_are_no_habit(
    title: str, case: Case, habit: str, rows: list[str]
) -> None:
    run = played_lists(title, case)
    assert habits_of(run) == habit.split()
    assert [each.fault.row for each in run.findings] == rows


# -- A habit that lasts ---------------------------------------------------------------------------

MODERN: Step = ("open", NEW, "whole", "all")
NOTIFIED: Case = [MODERN, ("notify", "notifications/acme", {})]
LISTED_TOOLS: Case = [MODERN, ("request", "tools/list", {}, "int")]


def played_2(answers: Callable[[Any, int], Iterator[Any]], *cases: Case) -> Campaign:
    target = ReadingTarget(typescript)
    target.answers = answers
    return played(target, *cases, shrinks=False, capabilities=("tools",))


@pytest.mark.parametrize(
    ("message", "holds"),
    [
        ({"jsonrpc": "2.0", "method": "notifications/acme"}, True),
        ({"jsonrpc": "2.0", "method": "notifications/acme", "params": {"_meta": {}}}, True),
        ({"jsonrpc": "2.0", "method": "a", "params": {"_meta": 5}}, False),
        ({"jsonrpc": "2.0", "method": "a", "params": []}, False),
        ({"jsonrpc": "2.0", "method": 5}, False),
        ({"method": "a"}, False),
        ({**REQUEST, "params": {"_meta": {NAMES_REVISION: NEW}}}, False),
        (REQUEST, True),
        ([], False),
        (None, False),
    ],
)
def test_message_names_its_revision_in_its_meta(message: Any, *, holds: bool) -> None:
    habit = next(each for each in HABITS if each.lasts)
    assert habit.holds(MessageExchange(message)) is holds


@pytest.mark.parametrize("changing", [NOTIFIED, [MODERN, ("cancel", -1)]])
def test_habit_that_lasts_is_reported_once_for_all_later_cases(changing: Case) -> None:
    """The first case only discovers: with a request the process would have decided."""
    run = played_2(TypeScript2(), [MODERN], changing, LISTED_TOOLS, [*changing, *LISTED_TOOLS[1:]])
    assert run.findings == []
    assert habits_of(run) == ["keeps-old-revision"]
    assert not run.unconfirmed
    assert run.habits[0].seen >= 4
    assert run.habits[0].sdk == TYPESCRIPT


def test_process_that_a_habit_has_changed_gets_no_further_case() -> None:
    """Once the habit was shown, only the cases with its message show it: one fault each."""
    run = played_2(TypeScript2(), *[[MODERN], NOTIFIED, LISTED_TOOLS] * 3)
    more = played_2(TypeScript2(), *[[MODERN], NOTIFIED, LISTED_TOOLS] * 9)
    assert habits_of(run) == ["keeps-old-revision"]
    assert more.habits[0].seen - run.habits[0].seen <= 6


def test_fault_of_the_author_after_a_habit_that_lasts_is_a_finding() -> None:
    """The case shows it without the message, too."""
    server = TypeScript2(tools=[{"description": "It has no name."}])
    run = played_2(server, [MODERN], NOTIFIED, [*NOTIFIED, *LISTED_TOOLS[1:]], LISTED_TOOLS)
    assert "TOOL-2" in [each.fault.row for each in run.findings]


def author_2(message: Any, start: int, server: TypeScript2) -> Iterator[Any]:
    """Yield what a server without an SDK sends that does the same."""
    for each in server(message, start):
        error = each.get("error")
        yield {**each, "error": {**error, "message": "no"}} if error else each


def test_server_of_an_author_that_speaks_an_older_revision_after_a_notification_is_a_finding() -> (
    None
):
    """A replay of the earlier cases has the request that the player sends after each of them."""
    server = TypeScript2()
    run = played_2(lambda message, start: author_2(message, start, server),
                   [MODERN], NOTIFIED, LISTED_TOOLS)  # fmt: skip
    assert run.habits == []
    assert {"RPC-30", "VER-3"} & {each.fault.row for each in run.findings if each.is_failure}


def test_mended_sdk_has_no_habit_that_lasts() -> None:
    run = played_2(TypeScript2(is_mended=True), [MODERN], NOTIFIED, LISTED_TOOLS)
    assert (run.findings, run.habits) == ([], [])


# -- What isn't pardoned ---------------------------------------------------------------------------


def silent_author(message: Any) -> Iterator[dict[str, Any]]:
    """Yield what a server without an SDK sends, whose author drops requests."""
    if isinstance(message, dict) and isinstance(message.get("params", {}), dict):
        for each in python_2(message):
            error = each.get("error")
            yield {**each, "error": {**error, "data": None}} if error else each


def one_mark(message: Any) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that imitates one mark of the TypeScript SDK, its order."""
    for each in typescript(message):
        yield each if "result" in each else {**each, "error": {"code": -32600, "message": "no"}}


def two_sdks(message: Any) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that imitates marks of two SDKs."""
    for each in typescript(message):
        result = each.get("result", {})
        if "capabilities" in result:
            result["capabilities"]["experimental"] = {}
        yield each


def mended(message: Any) -> Iterator[dict[str, Any]]:
    """Yield what a server of a newer SDK sends, which answers; its author drops prompts."""
    found = list(typescript(message))
    if not found and _is_numbered(message) and message["method"] != "prompts/list":
        error = {"code": -32600, "message": "Invalid Request"}
        found = [{"jsonrpc": "2.0", "id": message["id"], "error": error}]
    yield from found


def _is_numbered(message: Any) -> bool:
    return isinstance(message, dict) and "id" in message and "method" in message


def hangs(message: Any, state: dict[str, bool]) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that stops at params that aren't an object."""
    if isinstance(message, dict) and not isinstance(message.get("params", {}), dict):
        state["hangs"] = True
    if message.get("method") == "initialize":
        state["hangs"] = False
    if not state.get("hangs"):
        yield from typescript(message)


def logs_of_its_own(message: Any) -> Iterator[dict[str, Any]]:
    """Yield what a server of the Python SDK 1.x sends whose author logs, undeclared."""
    for each in python_1(message):
        is_log = each.get("method") == "notifications/message"
        yield {**each, "params": {**LOG, "logger": "mine"}} if is_log else each


def drops_lists(message: Any) -> Iterator[dict[str, Any]]:
    """Yield what a server of the TypeScript SDK sends whose author drops valid requests."""
    if not (isinstance(message, dict) and message.get("method") == "tools/list"):
        yield from typescript(message)


def long_author(message: Any) -> Iterator[dict[str, Any]]:
    """Yield what a server of the TypeScript SDK sends whose author writes long errors."""
    for each in typescript(message):
        error = each.get("error")
        text = "Your cursor\nis wrong.\nSorry."
        yield {**each, "error": {**error, "message": text}} if error else each


@pytest.mark.parametrize(
    ("server", "case", "row"),
    [
        (silent_author, PARAMS, "RPC-17"),
        (one_mark, PARAMS, "RPC-17"),
        (one_mark, OTHER, "RPC-17"),
        (one_mark, EARLY, "LIFE-10"),
        (two_sdks, PARAMS, "RPC-17"),
        (mended, [OPEN, ("request", "prompts/list", 82, "int")], "RPC-17"),
        (logs_of_its_own, PARAMS, "LOG-1"),
        (drops_lists, [OPEN, ("request", "tools/list", {}, "int")], "RPC-35"),
        (long_author, CURSOR, "RPC-12"),
    ],
)
def test_same_fault_of_the_author_is_a_finding(
    server: Callable[[Any], Iterator[dict[str, Any]]], case: Case, row: str
) -> None:
    """So is one by a server that imitates an SDK, or has an SDK that has mended its habit."""
    run = played(ReadingTarget(server), case, shrinks=False)
    assert row in [each.fault.row for each in run.findings]
    assert row not in [each.habit.row for each in run.habits]


def test_hang_is_a_finding_despite_the_marks() -> None:
    """The message is dropped, as by the SDK, but the next request isn't answered."""
    state: dict[str, bool] = {}
    run = played(ReadingTarget(lambda message: hangs(message, state)), PARAMS, shrinks=False)
    assert [each.fault.kind for each in run.findings] == ["hang"]
    assert run.habits == []


@pytest.mark.parametrize(
    "received",
    [
        "[1]",
        "{",
        '{"jsonrpc":"2.0","id":1002,"method":"notifications/message","params":{}}',
        '{"jsonrpc":"2.0","id":{},"result":[]}',
        '{"jsonrpc":"2.0","id":1002,"error":{"message":7}}',
        '{"jsonrpc":"2.0","id":1002,"error":"x"}',
        '{"jsonrpc":"2.0","id":1002,"error":{"code":1,"message":"[[[]]"}}',
    ],
)
@pytest.mark.parametrize("case", [PARAMS, CURSOR, EARLY, [OPEN, ("mutate", "7")]])
def test_answer_without_sense_is_no_habit(case: Case, received: str) -> None:
    """The server has the marks, and then sends something strange."""

    def server(message: Any) -> Iterator[Any]:
        found = list(typescript(message))
        is_odd = isinstance(message, dict) and message.get("params") in ([1], {"cursor": 8})
        yield from [Raw(received)] if is_odd or not isinstance(message, dict) else found

    run = played(ReadingTarget(server), case, shrinks=False, capabilities=("tools",))
    assert {each.habit.name for each in run.habits} <= {"serves-early"}


def test_author_fault_beside_a_habit_is_a_finding() -> None:
    """A habit that was shown pardons no valid request."""
    case = [OPEN, ("request", "prompts/list", {}, "int"), ("request", "ping", 82, "int")]

    def server(message: Any) -> Iterator[dict[str, Any]]:
        if not (isinstance(message, dict) and message.get("method") == "prompts/list"):
            yield from typescript(message)

    run = played(ReadingTarget(server), PARAMS, case, shrinks=False)
    assert habits_of(run) == ["drops-params"]
    assert [each.fault.row for each in run.findings] == ["RPC-35"]


def test_request_that_is_dropped_alone_is_no_dropped_batch() -> None:
    """It is certain, though the case has a dropped batch with the same request."""
    methods = (["prompts/list", {}, "int"], ["ping", {}, "int"])
    alone: Step = ("request", "prompts/list", {}, "int")
    case: Case = [OPEN_BATCHED, ("batch", [*methods]), ("wait",), alone, ("wait",)]

    def server(message: Any) -> Iterator[dict[str, Any]]:
        if not (isinstance(message, dict) and message.get("method") == "prompts/list"):
            yield from typescript(message)

    for shrinks in (True, False):
        run = played(ReadingTarget(server), BATCH, case, shrinks=shrinks)
        assert habits_of(run) == ["drops-batches"]
        (finding,) = run.findings
        assert (finding.fault.row, finding.fault.is_advice) == ("RPC-35", False)
        assert "batch" not in finding.fault.sentence


def test_batch_of_which_one_request_is_dropped_is_no_habit() -> None:
    """An SDK drops the whole batch, also that of the probe."""

    def server(message: Any) -> Iterator[dict[str, Any]]:
        some = message[:1] if isinstance(message, list) else [message]
        for each in some:
            yield from typescript(each)

    ping, listed = ["ping", {}, "int"], ["tools/list", {}, "int"]
    run = played(ReadingTarget(server), [OPEN_BATCHED, ("batch", [ping, listed])], shrinks=False)
    assert habits_of(run) == []
    assert [each.fault.method for each in run.findings] == ["tools/list"]


def test_batches_that_are_known_to_be_dropped_cost_no_time() -> None:
    times: list[float] = []

    def timed(message: Any) -> Iterator[dict[str, Any]]:
        times.append(trio.current_time())
        return typescript(message)

    later: list[Case] = [[OPEN_BATCHED, ("batch", [["ping", {}, "int"]] * 3), ("wait",)]] * 40
    run = played(ReadingTarget(timed), BATCH, *later)
    assert run.findings == []
    assert run.habits[0].seen == 41
    assert times[-1] - times[-2 * len(later)] < 0.1


# -- Reports ---------------------------------------------------------------------------------------


def options_of(folder: Path, **more: Any) -> FuzzOptions:
    return FuzzOptions(output=folder, seconds=None, cases=None, seed=7, era="both", **more)


def test_reports_have_habits_apart(tmp_path: Path) -> None:
    """They are skipped tests, and no failures without `--strict`."""
    run = played(ReadingTarget(typescript), PARAMS, CURSOR)
    document = report_document(run, Offers(name="n", revisions=[OLD]), 7)
    assert document["findings"] == []
    first = document["habits"][0]
    assert (first["habit"], first["row"], first["sdk"]) == ("drops-params", "RPC-17", TYPESCRIPT)
    assert first["link"].startswith("https://github.com/modelcontextprotocol/")
    assert first["steps"][-1] == ["request", "tools/list", [1], "int", "whole"]
    for strict in (False, True):
        suite = ET.fromstring(junit_report(run, strict=strict))
        found = {name: len(suite.findall(f".//{name}")) for name in ("skipped", "failure")}
        assert found == ({"skipped": 0, "failure": 2} if strict else {"skipped": 2, "failure": 0})
        assert status_of(run, options_of(tmp_path, strict=strict)) == int(strict)


# -- Marks -----------------------------------------------------------------------------------------


def test_marks_of_a_server_without_an_sdk_are_none() -> None:
    assert find_marks([]) == {}
    assert find_marks(lines(5, None, {"id": []}, {"id": 1, "result": {}}, sides="scss")) == {}


def tool(name: str, title: Any, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "title": title}, **members}


FAST: dict[str, Any] = {"_meta": {"fastmcp": {"tags": []}}}


@pytest.mark.parametrize(
    ("tools", "others", "has_mark"),
    [
        ([tool("add", "addArguments")], [], True),
        ([tool("add", "addArguments"), tool("renamed", "_subArguments")], [{"name": "p"}], True),
        ([tool("add", "AddArguments")], [], False),  # a class of the author's
        ([tool("add", "addArguments"), tool("sub", "Sub")], [], False),
        ([tool("add", None)], [], False),
        ([{"name": "add"}], [], False),
        ([tool("add", None, **FAST)], [{"name": "p", **FAST}], True),
        ([tool("add", None, _meta={"_fastmcp": {}})], [], True),
        ([tool("add", None, **FAST)], [{"name": "p"}], False),
        ([], [{"name": "p", **FAST}], True),
        ([], [{"name": "p", "_meta": {"fastmcp": 5}}], False),
        ([], [{"name": "p"}], False),
        ([], [], False),
    ],
)
def test_framework_of_an_sdk_differs_from_its_low_level_server(
    tools: list[dict[str, Any]], others: list[dict[str, Any]], has_mark: bool
) -> None:
    assert has_framework_mark(tools, others) is has_mark


# -- Crashes ---------------------------------------------------------------------------------------

BYTES = b"""  |   File "/x/site-packages/mcp/server/stdio.py", line 61, in stdin_reader
  |     async for line in stdin:
  |   File "<frozen codecs>", line 322, in decode
  | UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 61: invalid start byte
"""
CANCELLED = b"""  |   File "/x/site-packages/mcp/server/stdio.py", line 71, in stdin_reader
  |     await read_stream_writer.send(session_message)
  | anyio.BrokenResourceError
"""
ANSWERED = b"""  |   File "/x/site-packages/mcp/shared/session.py", line 129, in respond
  |     assert not self._completed, "Request already responded to"
  | AssertionError: Request already responded to
"""


@pytest.mark.parametrize(
    ("stderr", "has_cancelled", "shown"),
    [
        (BYTES, False, "mended in mcp 1.27.0"),
        (BYTES.replace(b"mcp/server/stdio.py", b"mine/server.py"), False, ""),
        (BYTES.replace(b"UnicodeDecodeError", b"KeyError"), False, ""),
        (CANCELLED, True, "mended in mcp 2.0.0"),
        (CANCELLED, False, ""),
        (ANSWERED, True, "mended in mcp 2.0.0: https://github.com/modelcontextprotocol/"),
        (ANSWERED, False, ""),
        (ANSWERED.replace(b"mcp/shared", b"mine"), True, ""),
        (CANCELLED.replace(b"stdin_reader", b"mine"), True, ""),
        (CANCELLED.replace(b"/", b"\\"), True, "mended in mcp 2.0.0"),
        (b"BrokenResource " + CANCELLED.replace(b"BrokenResource", b"other"), True, ""),
        (BYTES.replace(b"'utf-8'", b"it") * 300, True, ""),
        (CANCELLED.replace(b"BrokenResource", b"other") * 400, True, ""),
        (b"", True, ""),
    ],
)
def test_known_crash_names_the_version_that_mends_it(
    stderr: bytes, has_cancelled: bool, shown: str
) -> None:
    found = find_known_crash(stderr, has_cancelled=has_cancelled)
    assert shown in found
    assert bool(shown) == bool(found)


DIES: Final = """\
import json, sys
sys.stdin.readline()
print(json.dumps({"jsonrpc": "2.0", "id": 1001, "result": {"protocolVersion": "2025-11-25",
    "capabilities": {}, "serverInfo": {"name": "n", "version": "1"}}}), flush=True)
sys.stdin.readline()
sys.stdin.readline()
sys.stderr.write(%r)
sys.exit(1)
"""


@pytest.mark.process
@pytest.mark.parametrize("stderr", [BYTES, b"UnicodeDecodeError: mine\n"])
async def test_known_crash_is_a_failure_with_its_cure(stderr: bytes) -> None:
    """Another crash by bytes that aren't UTF-8 is a reading of the specification."""
    case: Case = [OPEN, ("damage", b'{"\xff')]
    async with trio.open_nursery() as nursery:
        target = CommandTarget([sys.executable, "-c", DIES % stderr.decode()], nursery, ahead=0)
        outcome = await play_case(target, case)
        nursery.cancel_scope.cancel()
    (fault,) = outcome.faults
    is_known = stderr is BYTES
    assert fault.is_advice != is_known
    assert ("mended in mcp 1.27.0: https://" in fault.sentence) == is_known


# -- The faults of the broken server that are habits of SDKs ---------------------------------------

SIBLINGS: Final[dict[str, tuple[Case, str]]] = {
    "silent-on-array-params": (PARAMS, "RPC-17"),
    "silent-on-null-params": (NULL, "RPC-17"),
    "silent-on-other-members": (OTHER, "RPC-17"),
    "silent-on-wrong-meta": (META, "RPC-17"),
    "silent-on-batches": (BATCH, "RPC-35"),
    "logs-undeclared": (PARAMS, "LOG-1"),
    "long-error-messages": (CURSOR, "RPC-12"),
    "serves-before-initialize": (EARLY, "LIFE-10"),
    "prompt-code": (PROMPT, "PRM-4"),
    "resource-code": (RESOURCE, "RES-7"),
    "changed-by-notification": ([*NOTIFIED, ("wait",), *LISTED_TOOLS[1:]], "RPC-30"),
}


def test_each_habit_has_a_sibling() -> None:
    cases = [case for case, _ in SIBLINGS.values()]
    for habit in HABITS:
        assert any(
            (sent := sent_by(step)) is not None and habit.holds(sent)
            for case in cases
            for step in case
        ), habit.name


@pytest.mark.process
@pytest.mark.parametrize("fault", SIBLINGS)
async def test_sibling_in_the_code_of_an_author_is_a_finding(fault: str) -> None:
    case, row = SIBLINGS[fault]
    async with trio.open_nursery() as nursery:
        target = CommandTarget([*BROKEN, "--fault", fault], nursery)
        offers = await probe(target)
        options = CampaignOptions(shrinks=False)
        campaign = Campaign(target, None, CaseChoices(offers, []), options)
        await campaign.run([case])
        nursery.cancel_scope.cancel()
    assert campaign.habits == []
    assert row in [each.fault.row for each in campaign.findings]
