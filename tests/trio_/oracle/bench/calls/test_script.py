"""Scripts of a load: the calls, and the errors of wrong scripts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.drivers import shorten_text
from mcp_trio.oracle.bench._requests import PreparedCall
from mcp_trio.oracle.bench.calls._script import InvalidScript, parse_script

CALL = '[[call]]\ntool = "echo"\n'


@pytest.mark.parametrize(
    ("text", "method", "params", "name"),
    [
        (CALL, "tools/call", {"name": "echo", "arguments": {}}, "tools/call echo"),
        (
            CALL + 'arguments = { text = "ä", n = [1, 2.5, true], o = { p = "" } }',
            "tools/call",
            {"name": "echo", "arguments": {"text": "ä", "n": [1, 2.5, True], "o": {"p": ""}}},
            "tools/call echo",
        ),
        (
            '[[call]]\nprompt = "greet"\n[call.arguments]\nname = "Ada"',
            "prompts/get",
            {"name": "greet", "arguments": {"name": "Ada"}},
            "prompts/get greet",
        ),
        ('[[call]]\nread = "tea://menu"', "resources/read", {"uri": "tea://menu"}, None),
        ('[[call]]\nlist = "templates"', "resources/templates/list", None, None),
        ("[[call]]\nping = true", "server/discover", None, "server/discover"),
        (
            '[[call]]\nmethod = "tools/call"\nparams = { name = "x" }',
            "tools/call",
            {"name": "x"},
            "tools/call x",
        ),
        ('call = [{ method = "x/y" }]', "x/y", None, "x/y"),
    ],
)
def test_call_becomes_a_request(text: str, method: str, params: Any, name: str | None) -> None:
    call = parse_script(text.encode()).work("2026-07-28").worker(0, 0).next_call(None)
    assert (call.method, call.params) == (method, params)
    assert call.name == (name or (f"{method} tea://menu" if params else method))


def test_call_may_wait_for_a_notification() -> None:
    script = parse_script(f'{CALL}notified = "tea://pot"'.encode())
    assert script.waits_for_notifications
    assert script.work("2026-07-28").worker(0, 0).next_call(None).notified == "tea://pot"
    assert not parse_script(CALL.encode()).waits_for_notifications


def test_ping_is_the_request_of_the_targets_revision() -> None:
    script = parse_script(b"[[call]]\nping = true")
    assert script.work("2025-11-25").worker(0, 0).next_call(None).method == "ping"


def test_think_times_and_weights_have_defaults() -> None:
    script = parse_script(
        b'think = 0.5\nera = "2025-11-25"\n[[call]]\nping = true\nweight = 4\n'
        b'[[call]]\ntool = "echo"\nthink = 0\n'
    )
    assert [(call.weight, call.think) for call in script.calls] == [(4.0, 0.5), (1.0, 0.0)]
    assert (script.era, script.tools, script.text) == (
        "2025-11-25",
        ("echo",),
        "2 calls, drawn by weight",
    )


@pytest.mark.parametrize(
    "line",
    [
        "think = 3600",
        "weight = 1e6",
        "arguments.a = 18446744073709551615",
        "arguments.a = -9223372036854775808",
        f"arguments.{'.'.join('a' * 100)} = 1",
        f"arguments.a = {'[' * 100}{']' * 100}",
    ],
)
def test_value_at_its_limit_is_allowed(line: str) -> None:
    parse_script(f"{CALL}{line}".encode())


def test_script_has_a_thousand_calls_at_most() -> None:
    script = parse_script((CALL * 1_000).encode())
    assert script.text == "1000 calls, in order"
    assert script.tools == ("echo",)


def test_script_of_one_call_is_shown_and_made_again() -> None:
    """Its own text goes to the processes of a load; a report's repr leaves it out."""
    text = '[[call]]\nmethod = "tools/call"\n'
    script = parse_script(text.encode())
    assert (script.text, script.tools, script.era) == ("1 call, in order", (), None)
    assert script.to_json() == {"script": text}
    assert (script.vary, text in repr(script)) == (False, False)
    [call] = script.calls
    assert (call.weight, call.think, call.notified) == (1.0, 0.0, "")
    work = script.work("2025-11-25")
    assert (work.reads_answers, repr(work)) == (False, "<1 calls in order>")


def test_long_name_is_shortened() -> None:
    [call] = parse_script(f'[[call]]\ntool = "{"x" * 200}"'.encode()).calls
    assert call.name == shorten_text(f"tools/call {'x' * 200}", 80)
    assert call.params == {"name": "x" * 200, "arguments": {}}


def drawn(text: str, number: int, seed: int, count: int = 400) -> list[PreparedCall]:
    worker = parse_script(text.encode()).work("2025-11-25").worker(number, seed)
    return [worker.next_call(None) for _ in range(count)]


def test_calls_without_weights_are_made_in_their_order_by_each_caller() -> None:
    text = '[[call]]\ntool = "a"\n[[call]]\ntool = "b"\n[[call]]\ntool = "c"\n'
    for number in (0, 3):
        names = [call.name[-1] for call in drawn(text, number, 5, 7)]
        assert names == list("abcabca")


def test_calls_with_weights_are_drawn_by_the_seed() -> None:
    text = '[[call]]\ntool = "a"\nweight = 3\n[[call]]\ntool = "b"\n'
    names = [call.name for call in drawn(text, 0, 1)]
    assert 240 < names.count("tools/call a") < 360
    assert names == [call.name for call in drawn(text, 0, 1)]
    assert names != [call.name for call in drawn(text, 1, 1)]
    assert names != [call.name for call in drawn(text, 0, 2)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "it has no calls: begin each call by the line [[call]]"),
        ("call = []", "it has no calls"),
        ("call = 3", "call isn't a list of tables"),
        ("call = [3]", "call isn't a list of tables"),
        ("calls = []", "the script: calls isn't known here: did you mean call?"),
        ("think = -1", "the script: think is -1: write a number from 0 to 3,600"),
        ('era = "new"', "the script: era is 'new', and a revision is 2026-07-28, "),
        ("era = 3", "the script: era is 3, and a revision is "),
        ("a = [", "it isn't TOML: Invalid value (at end of document)"),
        ("a = 1\na = 2", "it isn't TOML: Cannot overwrite a value"),
        ("a = " + "[" * 5_000, "its values are nested too deeply"),
        ("a = " + "9" * 5_000, "a number has thousands of digits: write it as a text"),
        (
            CALL + "weigth = 3",
            "call 1 (line 1): weigth isn't known here: did you mean weight?",
        ),
        (CALL + "notified = true", "notified is true: write it as a text, notified = "),
        ('[[call]]\nread = "a:b"\nnotified = "a:b"', "notified isn't known here"),
        (CALL + 'uri = "x"', "uri isn't known here: it takes tool, arguments, notified, weight or"),
        ("\n# it\n[[call]]", "call 1 (line 3): it doesn't say what to call: add tool, prompt, "),
        ("call = [{}]", "call 1: it doesn't say what to call"),
        # A text with such a line: which line begins a call isn't known.
        (CALL + 'arguments.a = """\n[[call]]\n"""\n[[call]]\nping = 1', "call 2: ping is 1"),
        (CALL + 'read = "x"', "call 1 (line 1): it has tool and read: make a call of each"),
        (CALL + CALL + "weight = 0", "call 2 (line 3): weight is 0: write a number above 0 and "),
        (CALL + "weight = inf", "weight is inf: write a number"),
        (CALL + "weight = nan", "weight is nan: write a number"),
        (CALL + "think = true", "think is true: write a number from 0 to 3,600"),
        (CALL + 'think = "1"', "think is '1': write a number"),
        ("[[call]]\ntool = 3", 'tool is 3: write it as a text, tool = "..."'),
        ('[[call]]\ntool = ""', "tool is '': write it as a text"),
        (CALL + "arguments = 3", "arguments is 3: write a table, arguments = { name = value }"),
        (
            CALL + "arguments = { a = [1979-05-27] }",
            "arguments.a[0] is 1979-05-27, which JSON doesn't have: write it as a text, in quotes",
        ),
        (CALL + "arguments = { 'a b' = nan }", "arguments.'a b' is nan, which JSON doesn't have"),
        (
            CALL + "arguments = { a = 99999999999999999999 }",
            "arguments.a has more than 64 bits: write it as a text",
        ),
        (CALL + f"arguments.{'.'.join('a' * 200)} = 1", "is nested more than 100 deep"),
        ('[[call]]\nlist = "tool"', "list is 'tool', and a list is tools, resources, "),
        ("[[call]]\nping = 1", "ping is 1: write ping = true"),
        (
            '[[call]]\nprompt = "a"\narguments = { b = 1 }',
            "arguments.b is 1, and a prompt takes strings",
        ),
        ('[[call]]\nmethod = "initialize"', "initialize isn't a call"),
        ('[[call]]\nmethod = "notifications/x"', "notifications/x isn't a call"),
        ('[[call]]\nmethod = "x"\nparams = []', "params is a list: write a table"),
        (CALL * 1_001, "it has 1001 calls: 1000 are allowed"),
        (CALL + "arguments.a = 18446744073709551616", "arguments.a has more than 64 bits"),
        (CALL + "arguments.a = -9223372036854775809", "arguments.a has more than 64 bits"),
        (CALL + f"arguments.{'.'.join('a' * 101)} = 1", "is nested more than 100 deep"),
        (CALL + f"arguments.a = {'[' * 101}{']' * 101}", "is nested more than 100 deep"),
        (CALL + "think = 3600.1", "think is 3600.1: write a number from 0 to 3,600"),
        (CALL + "weight = 1000000.1", "write a number above 0 and up to 1,000,000"),
        (CALL + "weight = 18446744073709551616", "weight is a number with more than 64 bits: "),
        (CALL + "weight = [1]", "weight is a list: write a number"),
        (CALL + "weight = {}", "weight is a table: write a number"),
        (CALL + f"weight = '{'x' * 99}'", f"weight is {shorten_text('x' * 99, 80)!r}: write"),
        ("think = 3601", "the script: think is 3601: write a number from 0 to 3,600"),
        ("[[call]]\nping = false", "ping is false: write ping = true"),
        (
            "[[ call ]]\nping = true\n\t[[\t'call']]\nping = true\n [[\"call\"]]\nping = 1",
            "call 3 (line 5): ping is 1",
        ),
        (CALL + "'a b' = 1", "'a b' isn't known here: it takes tool, arguments, notified, "),
    ],
)
def test_wrong_script_is_refused_with_place_and_cure(text: str, error: str) -> None:
    with pytest.raises(InvalidScript) as info:
        parse_script(text.encode())
    assert error in str(info.value)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"#" + b"x" * 2**20, "more than 1024 KiB"),
        (b"#" + b"x" * (2**20 - 1), "it has no calls"),
        (b"a = '\xff'", "byte 5 isn't UTF-8"),
    ],
)
def test_file_that_is_no_short_text_is_refused(data: bytes, error: str) -> None:
    with pytest.raises(InvalidScript, match=error):
        parse_script(data)


VALUES = st.recursive(
    st.sampled_from(["1", "1.5", "true", '"x"', "inf", "1979-05-27", "07:32:00", "0x10", "'''a'''"])
    | st.integers().map(str),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: f"[{', '.join(each)}]")
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda each: "{" + ", ".join(f"{key} = {value}" for key, value in each.items()) + "}"
        )
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    "tool prompt read list ping method arguments params weight think call era x".split()
)
LINES = st.one_of(
    st.just("[[call]]"),
    st.builds(lambda key, value: f"{key} = {value}", KEYS, VALUES),
    st.text(max_size=6),
)


@pytest.mark.long
@given(st.lists(LINES, max_size=6).map("\n".join) | st.binary(max_size=20))
def test_any_text_is_a_script_or_refused(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    try:
        script = parse_script(data)
    except InvalidScript:
        return
    for revision in ("2025-11-25", "2026-07-28"):
        assert script.work(revision).worker(0, 0).next_call(None).method
