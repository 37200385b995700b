"""The shapes of steps: what others have written is played as it stands, or named with its cause."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from mcp_core import ALL
from mcp_trio.oracle.fuzz._case import check_case, decode_case, encode_case
from mcp_trio.oracle.fuzz._step_shapes import (
    CLIENT_STEPS,
    MAX_LEVELS,
    SERVER_STEPS,
    CaseError,
    check_step,
    is_json,
)
from mcp_trio.oracle.fuzz.campaign._shrink import _simpler_steps
from mcp_trio.oracle.fuzz.client._script import PUSHES, ScriptedServer
from mcp_trio.oracle.fuzz.client._wrong_answers import ANSWERS
from mcp_trio.oracle.fuzz.client._wrong_http import HTTP_WAYS
from mcp_trio.oracle.fuzz.play._http_steps import _HEADS, HTTP_STEPS
from mcp_trio.oracle.fuzz.play._player import play_case
from mcp_trio.oracle.fuzz.play._step_table import STEPS
from mcp_trio.testing import find_client_faults, find_faults

from .memory_http import played_over_http, response_to
from .memory_target import NEW, OLD, MemoryTarget, answers, same_each_time

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case, Step
    from mcp_trio.oracle.fuzz._step_shapes import Side

OPEN: Step = ("open", OLD, "whole", "all")
DEEP: Any = json.loads("[" * (MAX_LEVELS + 1) + "]" * (MAX_LEVELS + 1))
# Steps that are wrong, and what is said about them after "its step 1".
WRONG: list[tuple[Any, str]] = [
    (["open"], ", open, has no revision: it needs a revision that this version knows"),
    (["open", ["x"], "whole", "all"], ', open, has the revision ["x"]: it needs a revision'),
    (["open", "2999-01-01", "whole", "all"], 'the revision "2999-01-01": it needs a revision'),
    (["open", OLD, {}, "all"], ", open, has the how {}: it needs one of whole, half, late"),
    (["open", OLD, "whole", "some"], 'the offers "some": it needs one of all, none'),
    (["request"], ", request, has no method: it needs a text"),
    (["request", 5, {}], ", request, has the method 5: it needs a text"),
    (["request", "ping", {}, {"a": 1}], 'the id {"a": 1}: it needs int, digits, text, or a list'),
    (["request", "ping", {}, []], ", request, has the id []: it needs int"),
    (["request", "ping", {}, [None]], ", request, has the id [null]: it needs int"),
    (["request", "ping", {}, "int", ["x"]], 'the meta ["x"]: it needs one of whole, absent'),
    (["request", "ping", {}, "int", "whole", 1], ", request, has 5 words, and takes at most 4"),
    (["request", "ping", DEEP], f"it needs JSON with at most {MAX_LEVELS} levels"),
    (["call"], ", call, has no tool: it needs a text"),
    (["call", "t"], ", call, has no arguments: it needs JSON"),
    (["call", "t", {}, 5], ", call, has the extra 5: it needs a list of progress, task, text"),
    (["call", "t", {}, ["twice"]], 'the extra ["twice"]: it needs a list of progress'),
    (["hand", 1, 2, 3, "x"], ", hand, has the tool 1: it needs a text"),
    (["notify", "a", 5, 6], ", notify, has 3 words, and takes at most 2"),
    (["burst", "x", "ping"], ', burst, has the count "x": it needs an integer'),
    (["batch", 5], ", batch, has the members 5: it needs a list of lists of method, params and id"),
    (["batch", [["ping", {}]]], "it needs a list of lists of method, params and id"),
    (["parts", "tail", 0], 'the how "tail": it needs one of body, head, chunks'),
    (["parts", "body", "x"], ', parts, has the place "x": it needs an integer'),
    (["wait", 1], ", wait, has 1 words, and takes none"),
    (["cancel", True], ", cancel, has the place true: it needs an integer"),
    (["progress", 0.5], ", progress, has the place 0.5: it needs an integer"),
    (["respond", 0], ", respond, has no how: it needs a text"),
    (["reply", [], {}], ", reply, has the id []: it needs an integer or a text"),
    (["reply", 1, 5], ", reply, has the members 5: it needs a JSON object"),
    (["page", "tools/list", "some"], 'the how "some": it needs one of all, whole, first, stale'),
    (["retry", 0, 5], ", retry, has the how 5: it needs a text"),
    (["listen"], ", listen, has no filter: it needs JSON whose resourceSubscriptions are a list"),
    (["listen", {"resourceSubscriptions": 5}], "it needs JSON whose resourceSubscriptions are"),
    (["task", "x", "get"], ', task, has the place "x": it needs an integer'),
    (["mutate", 5], ", mutate, has the text 5: it needs a text"),
    (["damage", "text"], ', damage, has the data "text": it needs bytes'),
    (["damage", {"base64": "###"}], ", damage, has no base64: "),
    (["damage", {"base64": "a"}], ", damage, has no base64: "),
    (["damage", {"base64": 5}], ", damage, has no base64: "),
    (["damage", {"base64": "aa==", "a": 1}], "it needs bytes"),
    (["head", "orign", "ping", {}], 'the what "orign": it needs one of origin, null-origin'),
    (["get", None], ", get, has the how null: it needs a text"),
    (["half", "tail"], 'the place "tail": it needs one of start, head'),
    (["large", "message", "x"], ', large, has the size "x": it needs an integer'),
    (["streams", "all", 2], 'the what "all": it needs one of listen, get, session'),
    (["on", 1, "wait", 5], ", wait, has 1 words, and takes none"),
    (["nonsense"], ' is unknown: there is no step "nonsense" for a server; play the case with'),
    (["serve", [OLD], []], ' is unknown: there is no step "serve" for a server'),
    ([], " is not a list that begins with the step's name"),
    ([5], " is not a list that begins with the step's name"),
    ("wait", " is not a list that begins with the step's name"),
]
WRONG_FOR_CLIENT: list[tuple[Any, str]] = [
    (["serve", ["2999-01-01"], []], "it needs a list of revisions that this version knows"),
    (["serve", [OLD], [5]], ", serve, has the tools [5]: it needs a list of texts"),
    (["answer", "never", 0], ", answer, has no number: it needs an integer"),
    (["always", "nowhere", 0, 0], 'the how "nowhere": it needs one of right, never'),
    (["push", "ping", None, 0], ", push, has the place null: it needs an integer"),
    (["http", "ping", 0, 0], 'the how "ping": it needs one of status'),
    (["on", 1, "answer", "never", 0, 0], ' is unknown: there is no step "on" for a client'),
    (list(OPEN), ' is unknown: there is no step "open" for a client'),
]


FIRST: dict[Side, Step] = {"server": OPEN, "client": ("serve", [OLD], [])}


@pytest.mark.parametrize(
    ("side", "step", "says"),
    [*(("server", *each) for each in WRONG), *(("client", *each) for each in WRONG_FOR_CLIENT)],
)
def test_wrong_step_is_an_error_with_its_place_and_cause(side: Side, step: Any, says: str) -> None:
    is_second = side == "server" and step[:1] == ["on"]
    case = [FIRST[side], ("on", 1, *OPEN) if is_second else FIRST[side], step]
    with pytest.raises(CaseError) as caught:
        decode_case(json.loads(json.dumps(case)), side)
    assert str(caught.value).startswith("its step 2")
    assert says in str(caught.value)


@pytest.mark.parametrize("play", [find_faults, find_client_faults])
def test_wrong_step_of_a_written_test_is_an_error_with_its_cure(play: Any) -> None:
    with pytest.raises(
        ValueError, match="play the case with the version of mcp-trio that wrote it"
    ):
        play(["no-such-program"], [("ask", "ping")])
    with pytest.raises(ValueError, match="the case cannot be played: its step 0, "):
        play(["no-such-program"], [("open",) if play is find_faults else ("serve",)])


def test_table_has_the_steps_that_players_have_and_their_words() -> None:
    assert {*STEPS, *HTTP_STEPS} == set(SERVER_STEPS)
    assert all(fits("head", 0, each) for each in _HEADS)
    for name in ("answer", "always"):
        assert all(fits(name, 0, each) for each in ANSWERS)
    assert all(fits("push", 0, each) for each in PUSHES)
    assert all(fits("http", 0, each) for each in HTTP_WAYS)


def fits(name: str, place: int, value: Any) -> bool:
    """Return True if a step has a word that can have a value."""
    shape = {**SERVER_STEPS, **CLIENT_STEPS}[name]
    return place < len(shape) and shape[place].fits(value)


def test_object_with_the_member_base64_is_bytes_only_where_bytes_are_sent() -> None:
    case: Case = [
        OPEN,
        ("call", "show", {"base64": "aGVsbG8="}, ("text",)),
        ("request", "tools/call", {"base64": "aGVsbG8="}),
        ("damage", b"hello"),
        ("on", 1, *OPEN),
        ("on", 1, "damage", b""),
    ]
    assert decode_case(json.loads(json.dumps(encode_case(case)))) == case


ID: Any = ["x"]
# The words of a step that can be left out from the end, and all of them.
RIGHT: list[tuple[Step, int]] = [
    (("open", OLD, "unknown", "none"), 2),
    (("request", "ping", 5, ID, "bare"), 3),
    (("request", "ping", None, [5], "old"), 3),
    (("request", "ping", (), "digits", "absent"), 3),
    (("request", "ping", "absent", "text", "whole"), 3),
    (("call", "add", None, ()), 1),
    (("call", "add", {}, ["progress", "task", "text", "unsupported task"]), 1),
    (("hand", "add", "a", "total", -1), 0),
    (("notify", "ping", []), 1),
    (("burst", 3, "ping", {}), 1),
    (("batch", []), 0),
    (("batch", [["ping", {}, "int"], ("ping", 5, None), ["ping", [], ID]]), 0),
    (("parts", "chunks", 2), 0),
    (("wait",), 0),
    (("reply", "a", {}), 0),
    (("reply", 5, {"result": {}}), 0),
    (("page", "tools/list", "rest"), 0),
    (("listen", {"resourceSubscriptions": ["a"]}), 0),
    (("listen", {"resourceSubscriptions": []}), 0),
    (("listen", 5), 0),
    (("half", "chunk-size"), 1),
    (("head", "no-argument", "ping", {}), 1),
    (("large", "announced", 5), 0),
    (("streams", "session", 2), 0),
]


@pytest.mark.parametrize(("step", "optional"), RIGHT)
def test_right_step_can_lack_its_last_words_only(step: Step, optional: int) -> None:
    for count in range(1, len(step) + 2):
        words = (*step, 7)[:count]
        with suppress(CaseError):
            check_step(words, 0, "server")
            assert len(step) - optional <= count <= len(step)
            continue
        assert not len(step) - optional <= count <= len(step)


@pytest.mark.parametrize(
    "step",
    [
        ("request", "ping", {}, ["a", "b"]),
        ("request", "ping", {}, [True]),
        ("request", "ping", {}, "a"),
        ("batch", [["ping", {}, "int", 5]]),
        ("batch", [["ping", {}, 5]]),
        ("batch", [[5, {}, "int"]]),
        ("batch", [["ping", DEEP, "int"]]),
        ("batch", [{}]),
        ("reply", True, {}),
        ("reply", 1, {"result": DEEP}),
        ("listen", {"resourceSubscriptions": "a"}),
        ("listen", DEEP),
        ("hand", "add", "a", "total"),
    ],
)
def test_step_with_a_word_of_another_shape_is_refused(step: Step) -> None:
    with pytest.raises(CaseError):
        check_step(step, 0, "server")


def test_unknown_step_names_the_steps_that_exist() -> None:
    """The word is shortened."""
    with pytest.raises(CaseError) as caught:
        check_step(("x" * 90,), 3, "client")
    assert str(caught.value) == (
        f'its step 3 is unknown: there is no step "{"x" * 59} for a client; play the case with the'
        " version of mcp-trio that wrote it; this one has always, answer, http, push, serve"
    )
    with pytest.raises(CaseError, match=r"this one has batch, burst, .* notify, on, open, page, "):
        check_step(("x",), 3, "server")
    with pytest.raises(CaseError, match=r"has the text \(bytes\): it needs a text"):
        check_step(("mutate", b"a"), 3, "server")


JSON_VALUES: tuple[Any, ...] = (None, True, 5, 1.5, "a", (), [], {}, [1, ("a",)])
OTHER_VALUES: tuple[Any, ...] = (
    *(b"", object(), {5: 1}, [1, [b""]], {"a": [{}, {1: 2}]}),
    *([b"", 1], [1, b""], {"a": b"", "b": 1}, {"a": 1, "b": b""}),
)


@pytest.mark.parametrize(
    ("value", "is_right"),
    [
        *((each, True) for each in JSON_VALUES),
        *((each, False) for each in OTHER_VALUES),
    ],
)
def test_value_is_json_if_all_its_parts_are(value: Any, is_right: bool) -> None:
    assert is_json(value) is is_right


def test_value_is_json_up_to_two_hundred_levels() -> None:
    """Objects and arrays count alike, and another limit can be given."""
    assert MAX_LEVELS == 200
    array: Any = 5
    mixed: Any = []
    for level in range(200):
        array = [array]
        mixed = {"a": mixed} if level % 2 else (mixed,)
    assert is_json(array)
    assert not is_json([array])
    assert not is_json({"a": array})
    assert not is_json(mixed)
    assert is_json(mixed, 201)
    assert [is_json({"a": [5]}, levels) for levels in (0, 1, 2)] == [False, False, True]


# -- Any JSON --------------------------------------------------------------------------------------

NAMES = (*SERVER_STEPS, *CLIENT_STEPS, "on")
SCALARS = (None, True, 0, 1, -5, 10**30, 1.5, "", "a", "\ud800", "base64", "aa==", "on", OLD, "all")


def any_json(random: Random, depth: int = 0) -> Any:
    kind = random.randrange(5) if depth < 4 else 0
    if kind == 3:
        return [any_json(random, depth + 1) for _ in range(random.randrange(4))]
    if kind == 4:
        keys = ("base64", "a", "resourceSubscriptions", "\ud800")
        return {each: any_json(random, depth + 1) for each in keys[random.randrange(5) :]}
    return random.choice(SCALARS)


def any_steps(random: Random) -> Any:
    """Return steps with names that exist and any words, some of them for the second client."""
    steps: list[Any] = [list(OPEN), ["on", 1, *OPEN]][: random.randrange(3)]
    for _ in range(random.randrange(5)):
        words = [any_json(random, 1) for _ in range(random.randrange(5))]
        steps.append([*random.choice(([], [], ["on", 1])), random.choice(NAMES), *words])
    return steps


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_any_json_is_a_case_or_the_one_error(seed: int) -> None:
    random = Random(seed)
    for value in (any_json(random), any_steps(random)):
        for side in FIRST:
            with suppress(CaseError):
                check_case(decode_case(value, side), side)


# -- Odd words that fit ----------------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    *(OLD, NEW, "", "a", "\ud800", "caf\xe9\n", "x" * 5_000, "ping", "tools/call", "initialize"),
    *(0, 1, -1, 7, 10**30, -(10**30), 1.5, float("inf"), None, True),
    *([], {}, [5], ["\ud800"], [OLD, NEW], [["\ud800", 5, None], ["ping", {"_meta": 5}, ["a"]]]),
    *({"_meta": 5}, {"name": 5, "_meta": {"progressToken": []}}, {"resourceSubscriptions": [5]}),
    *({"uri": "\ud800", "taskId": 5}, {"result": 5}, {"error": None}, ("text", "task")),
    *(b"", b"\xff\n{}\n\n[1", b'{"id":[],"method":{}}'),
)


def odd_steps(name: str, shape: Any) -> list[Step]:
    """Return steps with every word of `ODD` that fits, each beside words that are as usual."""
    words = {each for other in SERVER_STEPS.values() for word in other for each in known(word)}
    pools = [
        [each for each in (*known(word), *ODD, *sorted(words)) if word.fits(each)] for word in shape
    ]
    found: list[Step] = [(name, *(pool[0] for pool in pools))]
    for place, pool in enumerate(pools):
        for each in pool:
            found.append((*found[0][: place + 1], each, *found[0][place + 2 :]))
    return found


def known(word: Any) -> list[str]:
    """Return the words that a list in an error names."""
    return word.wanted.removeprefix("one of ").split(", ") if "one of " in word.wanted else []


@pytest.mark.long
@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("name", SERVER_STEPS)
def test_odd_words_that_fit_are_played(name: str, revision: str) -> None:
    """No error of the fuzzer itself ends a run, over HTTP and in memory."""
    opened: Step = ("open", revision, "whole", "all")
    steps = odd_steps(name, SERVER_STEPS[name])
    case: Case = decode_case(json.loads(json.dumps(encode_case([opened, *steps, ("wait",)]))))

    async def main() -> None:
        await played_over_http(response_to, case)
        if name not in ("slow", "unread"):  # which need a pipe
            await play_case(MemoryTarget(same_each_time(answers)), case)

    trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize("name", CLIENT_STEPS)
def test_odd_words_that_fit_are_followed(name: str) -> None:
    shape = CLIENT_STEPS[name]
    for step in odd_steps(name, shape):
        for first in ((), (("serve", list(ALL), ["add"]),)):
            case = decode_case(json.loads(json.dumps(encode_case([*first, step]))), "client")
            server = ScriptedServer(case, is_http=True)
            for message in (
                {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "add"}},
            ):
                server.receive(message)


@pytest.mark.parametrize("name", [*SERVER_STEPS, *CLIENT_STEPS])
def test_simpler_steps_are_steps(name: str) -> None:
    """Else the next run could not play what this run has found."""
    side: Side = "server" if name in SERVER_STEPS else "client"
    shape = {**SERVER_STEPS, **CLIENT_STEPS}[name]
    for step in odd_steps(name, shape):
        for simpler in _simpler_steps(step, NEW):
            check_case([simpler], side)
