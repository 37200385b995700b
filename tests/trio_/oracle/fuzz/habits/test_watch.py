"""The watch over habits with plays that are given: what it plays, and what it pardons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._case import Outcome
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.habits import _watch
from mcp_trio.oracle.fuzz.habits._sdk_marks import PYTHON_1, PYTHON_2, TYPESCRIPT, ZOD_CURSOR
from mcp_trio.oracle.fuzz.habits._table import HABITS, Habit, SeenIn
from mcp_trio.oracle.fuzz.habits._watch import HabitWatch, ShownHabit, _opening, _single
from tests.trio_.oracle.fuzz.memory_target import NEW, OLD

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case, Step

STARTS: Step = ("open", OLD, "whole", "all")
STARTS_NEW: Step = ("open", NEW, "whole", "all")
LISTED_TOOLS: Step = ("request", "tools/list", {}, "int")
ARRAY: Step = ("request", "tools/list", [], "int")
BY_NAME = {each.name: each for each in HABITS}


def silent(method: str = "tools/list", **members: Any) -> TargetFault:
    return TargetFault(kind="row", row="RPC-17", method=method, **members)


def habit_shown(name: str, sdk: str = TYPESCRIPT) -> ShownHabit:
    return ShownHabit(habit=BY_NAME[name], sdk=sdk, marks=["a"], case=[STARTS], level="MUST")


class SilentPlays:
    """Plays in which a server answers all requests but those whose params aren't an object."""

    response_timeout = 2.0

    def __init__(self, *, marks: bool = True, crashes: bool = False) -> None:
        self.marks = marks
        self.crashes = crashes
        self.played: list[tuple[Case, float | None, bool]] = []

    async def play(
        self, case: Case, timeout: float | None = None, *, probes: bool = True
    ) -> Outcome:
        await trio.lowlevel.checkpoint()
        self.played.append((case, timeout, probes))
        lines: list[TraceLine] = []
        requests = [step for step in case if step[0] == "request"]
        asked = [(step[1], step[2]) for step in (*requests, ("request", "ping", {}))]
        for id, (method, params) in enumerate(asked):
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            lines.append(TraceLine(t=0.0, sender="client", raw=json.dumps(message)))
            answer = {"result": {}, "jsonrpc": "2.0", "id": id}
            if method == "mcp-trio-fuzz/none":
                error = {"code": -32601, "message": "Method not found"}
                answer = {"jsonrpc": "2.0", "id": id, "error": error}
            if isinstance(params, dict) and (self.marks or method == "ping"):
                lines.append(TraceLine(t=0.0, sender="server", raw=json.dumps(answer)))
        crash = TargetFault(kind="crash", row="crash")
        is_probe = requests and requests[0][2] == []
        return Outcome(lines=lines, faults=[crash] * bool(self.crashes and is_probe))


def watch_of(plays: Any = None, **options: Any) -> tuple[HabitWatch, Any]:
    plays = plays or SilentPlays()
    offers = Offers(revisions=[NEW, OLD], capabilities={OLD: {"tools": {}}}, **options)
    return HabitWatch(plays, CaseChoices(offers, ())), plays


# -- The table -------------------------------------------------------------------------------------


def test_habit_pardons_a_row_of_its_sdks() -> None:
    """A name is in reports and baselines, and a wider row would pardon an author's faults."""
    assert {each.name: (each.row, set(each.sdks)) for each in HABITS} == {
        "drops-params": ("RPC-17", {TYPESCRIPT, PYTHON_1, PYTHON_2}),
        "drops-null-params": ("RPC-17", {TYPESCRIPT}),
        "drops-members": ("RPC-17", {TYPESCRIPT}),
        "drops-meta": ("RPC-17", {TYPESCRIPT}),
        "drops-batches": ("RPC-35", {TYPESCRIPT, PYTHON_1, PYTHON_2}),
        "logs-undeclared": ("LOG-1", {PYTHON_1}),
        "long-errors": ("RPC-12", {TYPESCRIPT}),
        "serves-early": ("LIFE-10", {TYPESCRIPT}),
        "prompt-code": ("PRM-4", {PYTHON_1, PYTHON_2}),
        "resource-code": ("RES-7", {PYTHON_1}),
        "keeps-old-revision": ("VER-7", {TYPESCRIPT}),
    }


def test_habit_has_further_properties_only_where_they_are_named() -> None:
    silences = {each.name for each in HABITS if each.is_silence}
    assert silences == {name for name in BY_NAME if name.startswith("drops-")}
    assert {each.name: each.mark for each in HABITS if each.mark} == {"long-errors": ZOD_CURSOR}
    assert [each.name for each in HABITS if each.lasts] == ["keeps-old-revision"]
    of_framework = [each.name for each in HABITS if each.is_of_framework]
    assert of_framework == ["prompt-code", "resource-code"]
    assert SeenIn("1.0").link == ""
    links = {
        seen.link.partition("//")[2].partition("/")[0]
        for each in HABITS
        for seen in each.sdks.values()
    }
    assert links == {"github.com", ""}


@pytest.mark.parametrize(
    ("name", "value"),
    [("MARKS", 2), ("TRIES", 3), ("MAX_METHODS", 20), ("_SHOWN", 80), ("PROBE_TIMEOUT", 0.5)],
)
def test_limit_of_the_watch_has_its_value(name: str, value: float) -> None:
    """With fewer marks, an author's own fault would be pardoned sooner."""
    assert getattr(_watch, name) == value


# -- What was shown --------------------------------------------------------------------------------


def test_habit_that_was_shown_is_a_sentence_with_its_sdk_and_link() -> None:
    assert habit_shown("drops-null-params").sentence == (
        "a request gets no response if its params are null; a habit of the official TypeScript SDK"
        " (sdk 1.0.1 to 1.32.2, and server 2.3.1):"
        " https://github.com/modelcontextprotocol/typescript-sdk/issues/2247"
    )
    assert habit_shown("drops-batches", PYTHON_2).sentence.endswith("Python SDK 2.x (mcp 2.3.0)")


def test_habit_counts_faults_and_names_twenty_methods_by_their_beginning() -> None:
    shown = habit_shown("drops-params")
    assert (shown.seen, shown.methods) == (0, [])
    for _ in range(2):
        shown.count(silent("a" * 100))
    assert (shown.seen, shown.methods) == (2, ["a" * 80])
    for number in range(30):
        shown.count(silent(str(number)))
    assert shown.seen == 32
    assert shown.methods == ["a" * 80, *map(str, range(19))]


@pytest.mark.parametrize(
    ("fault", "case", "is_explained"),
    [
        (silent(), [STARTS, ARRAY], True),
        (silent(), [STARTS, LISTED_TOOLS, ("wait",), ("on", 1, *ARRAY)], True),
        (silent(), [STARTS, ("burst", 3, "tools/list", [])], True),
        (silent(), [STARTS, LISTED_TOOLS], False),
        (silent(), [ARRAY], False),
        (silent(), [("open",), ARRAY], False),
        (silent(), [], False),
        (silent(cases_back=1), [STARTS, ARRAY], False),
        (TargetFault(kind="row", row="RPC-35", method="tools/list"), [STARTS, ARRAY], False),
        (TargetFault(kind="hang", row="RPC-17", method="tools/list"), [STARTS, ARRAY], False),
        (silent(received='{"id":1,"result":{}}'), [STARTS, ARRAY], False),
        (
            silent(sent='{"jsonrpc":"2.0","id":4,"method":"tools/list","params":[]}'),
            [STARTS, ARRAY],
            True,
        ),
        (
            silent(sent='{"jsonrpc":"2.0","id":4,"method":"prompts/list","params":[]}'),
            [STARTS, ARRAY],
            False,
        ),
        (
            silent(sent='{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{}}'),
            [STARTS, ARRAY],
            False,
        ),
    ],
)
def test_fault_is_explained_by_the_message_of_a_habit_that_was_shown(
    fault: TargetFault, case: Case, is_explained: bool
) -> None:
    watch, plays = watch_of()
    assert not watch.explains(fault, case)
    watch.shown.append(habit_shown("drops-params"))
    assert watch.explains(fault, case) is is_explained
    assert watch.shown[0].seen == is_explained
    assert not plays.played


def test_response_that_a_shown_habit_takes_away_is_not_waited_for() -> None:
    watch, _ = watch_of()
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}
    assert not watch.drops(message)
    watch.shown.append(habit_shown("long-errors"))
    cursor = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": 5}}
    assert not watch.drops(cursor), "an error comes"
    watch.shown.append(habit_shown("drops-params"))
    assert watch.drops(message)
    assert not watch.drops({**message, "params": {}})


@pytest.mark.parametrize(
    ("case", "spoils"),
    [
        ([STARTS_NEW, ("notify", "notifications/acme", {})], True),
        ([STARTS_NEW, ("on", 1, "notify", "notifications/acme", {})], True),
        ([("open", NEW), ("notify", "notifications/acme", {})], True),
        ([STARTS_NEW, ("cancel", 0)], True),
        ([STARTS_NEW, ("progress", 0)], True),
        ([STARTS_NEW, ("request", "tools/list", {}, "int", "absent")], True),
        ([STARTS_NEW, ("request", "tools/list", {}, "int", "whole")], False),
        ([STARTS_NEW, ("request", "tools/list", {}, "int")], False),
        ([STARTS_NEW, ("mutate", '{"jsonrpc":"2.0","id":1,"method":"ping"}')], True),
        ([STARTS_NEW, ("damage", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')], True),
        ([STARTS_NEW, ("mutate", '{"jsonrpc":"1.0","id":1,"method":"ping"}')], False),
        ([STARTS_NEW, ("mutate", "{")], False),
        ([STARTS_NEW, ("call", "t", {}, ())], False),
        ([STARTS_NEW, ("wait",)], False),
        ([STARTS_NEW], False),
        ([STARTS, ("notify", "notifications/acme", {})], False),
        ([("open",), ("notify", "notifications/acme", {})], False),
        ([("notify", "notifications/acme", {})], False),
        ([], False),
    ],
)
def test_process_is_spoilt_by_the_message_of_a_habit_that_lasts(case: Case, spoils: bool) -> None:
    watch, _ = watch_of()
    assert not watch.spoils(case)
    watch.shown.append(habit_shown("drops-params"))
    assert not watch.spoils(case)
    watch.shown.append(habit_shown("keeps-old-revision"))
    assert watch.spoils(case) is spoils


@pytest.mark.parametrize(
    ("step", "single"),
    [
        (("burst", 3, "ping", [1]), ("request", "ping", [1], "int")),
        (("burst", 3, "ping", [1], "text"), ("request", "ping", [1], "int")),
        (("burst", 3, "ping"), ("request", "ping")),
        (("burst", 3), ("burst", 3)),
        (ARRAY, ARRAY),
    ],
)
def test_burst_is_taken_for_one_of_its_requests(step: Step, single: Step) -> None:
    assert _single(step) == single


def test_conversation_of_a_probe_offers_nothing() -> None:
    assert _opening(OLD) == [("open", OLD, "whole", "none")]
    assert _opening(NEW) == [("open", NEW, "whole", "none"), ("page", "server/discover", "first")]


# -- Examinations ----------------------------------------------------------------------------------

OPENED: Step = ("open", OLD, "whole", "none")
MARKED: Case = [
    OPENED,
    ("request", "mcp-trio-fuzz/none", {}, "int"),
    LISTED_TOOLS,
    ("request", "tools/list", {"cursor": 5}, "int"),
    ("wait",),
]


async def test_habit_is_examined_by_marks_its_probe_and_the_message_alone() -> None:
    """It is found once. Then nothing more is played, and it isn't in the table."""
    watch, plays = watch_of()
    step: Step = ("request", "prompts/list", [5], "int")
    case: Case = [STARTS, LISTED_TOOLS, step]
    shown = await watch.examine(silent("prompts/list", level="SHOULD"), case)
    assert shown is not None
    assert plays.played == [
        (MARKED, None, False),
        ([OPENED, ARRAY], 0.5, True),
        ([OPENED, step], 0.5, True),
    ]
    assert (shown.habit.name, shown.sdk, shown.level) == ("drops-params", TYPESCRIPT, "SHOULD")
    assert (shown.case, shown.seen, shown.methods) == ([OPENED, step], 1, ["prompts/list"])
    assert shown.marks == [
        "responses are result, jsonrpc, id, in this order",
        "the error of an unknown method has no data",
    ]
    assert watch.shown == [shown]
    assert await watch.examine(silent(), [STARTS, ARRAY]) is shown
    assert len(plays.played) == 3
    assert shown.seen == 2


async def test_server_without_marks_gets_three_tries_for_all_habits() -> None:
    watch, plays = watch_of(SilentPlays(marks=False))
    for case in ([STARTS, ARRAY], [STARTS, ("request", "tools/list", None, "int")]):
        assert await watch.examine(silent(), case) is None
    assert plays.played == [(MARKED, None, False)] * 3
    assert watch.shown == []


async def test_habit_whose_probe_ends_the_process_is_none() -> None:
    watch, plays = watch_of(SilentPlays(crashes=True))
    assert await watch.examine(silent(), [STARTS, ARRAY]) is None
    assert await watch.examine(silent(), [STARTS, ARRAY]) is None
    assert [each[0] for each in plays.played] == [MARKED, [OPENED, ARRAY]], "it is known now"


@pytest.mark.parametrize(("whole", "timeouts"), [(2.0, [0.5, 2.0]), (0.5, [0.5]), (0.2, [0.2])])
async def test_server_that_answers_nothing_after_a_probe_gets_the_whole_time_once(
    whole: float, timeouts: list[float]
) -> None:
    class Hanging(SilentPlays):
        response_timeout = whole

        async def play(self, case: Case, *args: Any, **options: Any) -> Outcome:
            outcome = await super().play(case, *args, **options)
            if ARRAY in case:
                outcome.lines = [each for each in outcome.lines if each.sender == "client"]
            return outcome

    watch, plays = watch_of(Hanging())
    assert await watch.examine(silent(), [STARTS, ARRAY]) is None
    assert [timeout for _, timeout, _ in plays.played[1:]] == timeouts


@pytest.mark.parametrize(
    ("capabilities", "method"), [({}, "tools/list"), ({"prompts": {}}, "prompts/list")]
)
async def test_probe_is_for_a_list_that_the_server_has(capabilities: Any, method: str) -> None:
    plays = SilentPlays()
    offers = Offers(revisions=[OLD], capabilities={OLD: capabilities})
    watch = HabitWatch(plays, CaseChoices(offers, ()))  # type: ignore[arg-type]
    await watch.examine(silent("ping"), [STARTS, ("request", "ping", [], "int")])
    probes = [case[-1] for case, timeout, _ in plays.played if timeout]
    assert probes[0] == ("request", method, [], "int")
    assert watch._offered(("request", "ping", {}, "int"), OLD) == ("request", "ping", {}, "int")


def test_watch_without_a_table_explains_nothing() -> None:
    """As for a client, whose SDK has none that are known."""
    offers = Offers(revisions=[OLD])
    watch = HabitWatch(SilentPlays(), CaseChoices(offers, ()), table=())  # type: ignore[arg-type]
    assert watch._table == []
    assert not watch.explains(silent(), [STARTS, ARRAY])


@pytest.mark.parametrize("is_framework", [True, False])
def test_habit_of_a_framework_is_known_only_with_its_lists(is_framework: bool) -> None:
    title = "tArguments" if is_framework else "T"
    watch, _ = watch_of(tools=[{"name": "t", "inputSchema": {"title": title}}])
    names = {each.name for each in watch._table}
    assert ({"prompt-code", "resource-code"} <= names) is is_framework
    assert len(names) == (len(HABITS) if is_framework else len(HABITS) - 2)


def test_habit_needs_its_name_sdks_row_predicates_and_probe() -> None:
    found = Habit("n", "s", {}, "RPC-7", bool, bool, ARRAY)
    assert (found.is_silence, found.mark, found.lasts, found.is_of_framework) == (0, "", 0, 0)


# -- Habits that last ------------------------------------------------------------------------------

LASTING = BY_NAME["keeps-old-revision"]
NOTE: Step = ("notify", "notifications/acme", {})
OPENED_NEW: Case = [STARTS_NEW, ("page", "server/discover", "first")]
CHANGED = TargetFault(kind="row", row="RPC-30", method="tools/list")


class ChangedPlays(SilentPlays):
    """Plays that show a fault if their case has a step, or always."""

    def __init__(self, step: Step | None) -> None:
        super().__init__()
        self.step = step

    async def play(self, case: Case, *args: Any, **options: Any) -> Outcome:
        await trio.lowlevel.checkpoint()
        self.played.append((case, *args))
        is_shown = self.step is None or self.step in case
        return Outcome(faults=[CHANGED] if is_shown else [TargetFault(kind="row", row="RPC-1")])


OTHER_NOTE: Step = ("notify", "notifications/other", {})


@pytest.mark.parametrize(
    ("shown_by", "is_needed", "last"),
    [
        (NOTE, True, [NOTE, LISTED_TOOLS]),
        (OTHER_NOTE, True, [OTHER_NOTE, LISTED_TOOLS]),
        (None, False, [LISTED_TOOLS]),
        (ARRAY, False, [OTHER_NOTE, LISTED_TOOLS]),
    ],
)
async def test_message_is_needed_if_a_case_shows_its_fault_with_it_only(
    shown_by: Step | None, is_needed: bool, last: Case
) -> None:
    """It is played without the message, then with the habit's probe, then as it was."""
    watch, plays = watch_of(ChangedPlays(shown_by))
    case: Case = [STARTS_NEW, OTHER_NOTE, LISTED_TOOLS]
    assert await watch._needs_message(LASTING, CHANGED, case) is is_needed
    wanted = [[LISTED_TOOLS], [NOTE, LISTED_TOOLS], [OTHER_NOTE, LISTED_TOOLS]]
    count = wanted.index(last) + 1
    assert [case for case, *_ in plays.played] == [[*OPENED_NEW, *each] for each in wanted[:count]]


async def test_lasting_habit_explains_a_row_once_a_play_has_shown_it() -> None:
    """Then faults of that row are explained after its message, in its case or one before it."""
    watch, plays = watch_of(ChangedPlays(NOTE))
    watch.shown.append(habit_shown("keeps-old-revision"))
    case: Case = [STARTS_NEW, NOTE, LISTED_TOOLS]
    later: Case = [STARTS_NEW, LISTED_TOOLS]
    assert not watch.explains(CHANGED, case)
    assert await watch.examine(CHANGED, case) is watch.shown[0]
    count = len(plays.played)
    assert count == 2
    assert watch.explains(CHANGED, case)
    assert watch.explains(CHANGED, later, [case])
    assert not watch.explains(CHANGED, later, [later])
    assert not watch.explains(TargetFault(kind="row", row="RPC-1"), case)
    assert not watch.explains(TargetFault(kind="crash", row="RPC-30"), case)
    assert len(plays.played) == count
    assert watch.shown[0].seen == 3


def discovered(*answers: dict[str, Any], raw: str = "") -> list[TraceLine]:
    """Return the lines of a conversation with as many discoveries as answers."""
    found = [TraceLine(t=0.0, sender="client", raw=raw), TraceLine(t=0.0, raw="[]")]
    for id, answer in enumerate(answers):
        asked = {"jsonrpc": "2.0", "id": id, "method": "server/discover"}
        found.append(TraceLine(t=0.0, sender="client", raw=json.dumps(asked)))
        found.append(TraceLine(t=0.0, sender="server", raw=json.dumps({"id": id, **answer})))
        other = {"id": 100 + id, "error": {"code": -32601}}
        found.append(TraceLine(t=0.0, sender="server", raw=json.dumps(other)))
    return found


ANSWERED: dict[str, Any] = {"result": {}}
NO_METHOD: dict[str, Any] = {"error": {"code": -32601, "message": "none"}}


@pytest.mark.parametrize(
    ("answers", "is_changed"),
    [
        ([ANSWERED, NO_METHOD], True),
        ([ANSWERED, ANSWERED], False),
        ([ANSWERED, {"error": {"code": -32600}}], False),
        ([NO_METHOD, NO_METHOD], False),
        ([ANSWERED], False),
        ([], False),
        ([ANSWERED, NO_METHOD, NO_METHOD], False),
    ],
)
async def test_probe_of_a_lasting_habit_changes_the_second_discovery(
    answers: list[dict[str, Any]], is_changed: bool
) -> None:
    class Discovering(SilentPlays):
        async def play(self, case: Case, *args: Any, **options: Any) -> Outcome:
            await trio.lowlevel.checkpoint()
            self.played.append((case, None, options["probes"]))
            return Outcome(lines=discovered(*answers))

    watch, plays = watch_of(Discovering())
    probed: Case = [*_opening(NEW), LASTING.probe, ("page", "server/discover", "first")]
    assert await watch._answers_otherwise(LASTING, probed) is is_changed
    assert plays.played == [(probed, None, False)]
