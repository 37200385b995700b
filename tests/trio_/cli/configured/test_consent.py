"""The questions of a host as dialogues: what is shown, and which answers approve."""

from __future__ import annotations

import argparse
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec.structs import replace

from mcp_core.host import (
    ConfigInput,
    ConfigPlace,
    DefinitionWarning,
    ServerLaunch,
    compare_pins,
    define,
)
from mcp_core.types import Tool
from mcp_trio.cli._options import add_configured_options
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.configured._approved_servers import approving_option, is_approved_by
from mcp_trio.cli.configured._consent import (
    PausableTimeout,
    TerminalConsent,
    ask_about_definitions,
    ask_about_server,
    ask_for_input,
    count_definitions,
)
from mcp_trio.host import DefinitionsQuestion, ServerQuestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.cli._forms import Dialogue, DialogueSteps

EVIL = "a\u202eb\x1b[31m\nmcp-trio: trust me"
PLACE = ConfigPlace("/p/.mcp.json", 3, 5)
FILE = Path("/p/.mcp.json")


def talk(
    begin: Any, question: object, typed: Sequence[str | None]
) -> tuple[Any, list[str], list[str]]:
    """Return the result of a dialogue, its lines, and its prompts."""
    lines: list[str] = []
    prompts: list[str] = []

    def plain(parts: Sequence[object]) -> str:
        return "".join(part if isinstance(part, str) else part[0] for part in parts)  # type: ignore[index]

    dialogue: DialogueSteps[Any] | Dialogue = begin(
        question, lambda *parts: lines.append(plain(parts))
    )
    answers = iter(typed)
    try:
        prompts.append(plain(next(dialogue)))
        while True:
            prompts.append(plain(dialogue.send(next(answers))))
    except StopIteration as end:
        assert next(answers, "all used") == "all used"
        return end.value, lines, prompts


def server_question(**launch: Any) -> ServerQuestion:
    given = {"transport": "stdio", "command": "/bin/x", "directory": "/p"} | launch
    return ServerQuestion(
        server="demo", file="/p/.mcp.json", launch=ServerLaunch(**given), state="new"
    )


def definition(name: str = "greet", description: str = "Say hello.") -> Any:
    return define(Tool(name=name, description=description, input_schema={"type": "object"}))


def definitions_question(pins: Any, offered: Any, warnings: Any = None) -> DefinitionsQuestion:
    comparison = compare_pins(pins, offered)
    return DefinitionsQuestion(server="demo", comparison=comparison, warnings=warnings or {})


ANSWERS: list[tuple[list[str | None], bool]] = [
    (["yes"], True),
    ([" Y "], True),
    (["no"], False),
    ([None], False),
    (["", "maybe", "yes"], True),
    (["", None], False),
    (["!"], False),
]


@pytest.mark.parametrize(("typed", "approved"), ANSWERS)
def test_question_yes_is_approved_only_when_typed(typed: list[str | None], approved: bool) -> None:
    assert talk(ask_about_server, server_question(), typed)[0] is approved
    question = definitions_question((), [definition()])
    assert talk(ask_about_definitions, question, typed)[0] is approved


def test_question_about_program_shows_all_of_its_launch() -> None:
    question = server_question(args=("-c", "rm -rf ~"), env={"LD_PRELOAD": "./x.so"})
    _, lines, prompts = talk(ask_about_server, question, ["no"])
    assert lines == [
        "",
        "The server demo is not approved. It runs this program:",
        "  file            /p/.mcp.json",
        "  command         /bin/x",
        '  argument        "-c"',
        '  argument        "rm -rf ~"',
        "  directory       /p",
        '  variable        LD_PRELOAD="./x.so"  ! it can make the program run other code',
        "A program can do all that you can do on this machine.",
    ]
    assert prompts[0].startswith("Start demo, now and whenever it is used? yes, or no")


def test_question_of_many_lines_repeats_the_command_above_the_prompt() -> None:
    for count, is_repeated in ((18, False), (19, True)):
        _, lines, _ = talk(ask_about_server, server_question(args=("-v",) * count), ["no"])
        assert (lines[-2] == "  command         /bin/x") is is_repeated
        assert lines[3] == "  command         /bin/x"
    _, lines, _ = talk(ask_about_server, server_question(args=(" " * 1600,)), ["no"])
    assert lines[-2] == "  command         /bin/x"


def test_question_about_address_shows_variables_that_leave_the_machine() -> None:
    launch = ServerLaunch(transport="http", url="https://h/", headers={"A": "Bearer ${TOKEN}"})
    question = ServerQuestion(server="demo", file="/p", launch=launch, state="changed")
    _, lines, prompts = talk(ask_about_server, question, ["no"])
    assert lines[1] == "The server demo has changed since you approved it. It is at this address:"
    assert "  sends           TOKEN  ! its value leaves this machine" in lines
    assert prompts[0].startswith("Connect to demo, now")


def test_question_about_definitions_shows_difference_and_warnings() -> None:
    old, new, other = definition(), definition(description="Obey."), definition("other")
    warnings = {other.key: [DefinitionWarning("mention", "description", "names x of y")]}
    question = definitions_question((old,), [new, other], warnings)
    _, lines, prompts = talk(ask_about_definitions, question, ["yes"])
    assert "The server demo offers 1 new and 1 changed definitions:" in lines
    assert '    -   "Say hello."' in lines
    assert '    +   "Obey."' in lines
    assert lines.index("  tool greet (changed)") < lines.index("  tool other (new)")
    assert "    ! description names x of y" in lines
    assert prompts[0].startswith("Approve 1 new and 1 changed definitions of demo?")


@pytest.mark.parametrize("pins", [None, (), (definition("long"),)])
def test_definitions_that_are_long_are_shown_completely_with_their_length(pins: Any) -> None:
    text = "".join(f"Line {number}.\n" for number in range(1_000))
    long, other = definition("long", text), definition("other")
    warnings = {long.key: [DefinitionWarning("mention", "description", "names x of y")]}
    question = definitions_question(pins, [long, other], warnings)
    approved, lines, _ = talk(ask_about_definitions, question, ["yes"])
    assert approved
    assert all(f'    +   "Line {number}.\\n"' in lines for number in range(1_000))
    count = lines.index(next(line for line in lines if "lines are above" in line)) - 3
    assert lines[2] == f"! {count} lines follow: scroll back to here to read them"
    first, *headings = lines[3 + count :]
    assert first == f"! {count} lines are above. They are about:"
    state = "changed" if pins else "new"
    assert headings == [f"  tool long ({state})  ! 1 warning", "  tool other (new)"]


def test_long_line_counts_as_the_lines_that_it_takes_on_the_screen() -> None:
    _, lines, _ = talk(
        ask_about_definitions, definitions_question((), [definition("a", "x" * 8_000)]), ["no"]
    )
    assert "lines follow" in lines[2]
    _, lines, _ = talk(ask_about_definitions, definitions_question((), [definition()]), ["no"])
    assert "lines" not in "".join(lines)


@pytest.mark.parametrize("part", ["x\n", "x" * 80], ids=["lines", "columns"])
def test_definitions_that_are_too_long_to_be_read_are_not_approved(part: str) -> None:
    question = definitions_question((), [definition(description=part * 50_001)])
    approved, lines, prompts = talk(ask_about_definitions, question, [])
    assert (approved, prompts, len(lines)) == (False, [], 3)
    assert lines[-1] == (
        "! these are more than 50,000 lines, too many to be read, so they are not approved"
    )


def test_count_definitions_of_one_is_singular() -> None:
    assert count_definitions(definitions_question((), [definition()])) == "1 new definition"


INPUTS: list[tuple[dict[str, Any], list[str | None], str | None]] = [
    ({}, ["x y"], "x y"),
    ({}, ["", "x"], "x"),
    ({}, [None], None),
    ({"default": "d"}, [""], "d"),
    ({"options": ("a", "b")}, ["c", "b"], "b"),
    ({"secret": True}, ["s"], "s"),
]


@pytest.mark.parametrize(("members", "typed", "value"), INPUTS)
def test_question_for_input_takes_text(
    members: dict[str, Any], typed: list[str | None], value: str | None
) -> None:
    given = ConfigInput(id="key", type="promptString", place=PLACE, **members)
    assert talk(ask_for_input, given, typed)[0] == value


def test_question_for_secret_shows_no_default() -> None:
    given = ConfigInput(id="k", type="promptString", place=PLACE, secret=True, default="CANARY")
    _, lines, prompts = talk(ask_for_input, given, [None])
    assert "CANARY" not in "".join([*lines, *prompts])
    assert "not shown" in prompts[0]


def recorder() -> tuple[Screen, list[str]]:
    """Return a screen, and the texts that are written to it."""
    screen = Screen(None)
    shown: list[str] = []
    screen._write = shown.append  # type: ignore[assignment, method-assign]
    return screen, shown


def test_questions_escape_names_that_imitate_the_command() -> None:
    screen, shown = recorder()
    question = definitions_question((), [definition(EVIL, EVIL)])
    ask_about_definitions(question, screen.write_line).send(None)
    launch = server_question(command=f"/bin/{EVIL}", args=(EVIL,), env={EVIL: EVIL})
    ask_about_server(launch, screen.write_line).send(None)
    assert "\u202e" not in "".join(shown)
    assert "\x1b" not in "".join(shown)
    assert all(not line.startswith("mcp-trio") for line in "".join(shown).splitlines())


async def test_consent_without_terminal_approves_nothing_and_shows_definitions() -> None:
    screen, shown = recorder()
    consent = TerminalConsent(screen, None)
    assert not await consent.approve_server(server_question())
    assert not await consent.approve_definitions(definitions_question((), [definition()]))
    assert "  tool greet (new)\n" in shown


async def test_consent_with_yes_approves_definitions_and_no_server() -> None:
    consent = TerminalConsent(Screen(None), None, assume_yes=True)
    assert not await consent.approve_server(server_question())
    assert await consent.approve_definitions(definitions_question((), [definition()]))


async def test_consent_by_name_approves_the_server_and_no_definitions() -> None:
    screen, shown = recorder()
    consent = TerminalConsent(screen, None, approved_servers=["demo"])
    assert await consent.approve_server(server_question(args=("-x", EVIL)))
    assert not await consent.approve_definitions(definitions_question((), [definition()]))
    assert shown[0].startswith("mcp-trio: --approve-server lets demo of ")
    assert " in this run, and stores nothing" in shown[0]
    assert not [each for each in "".join(shown) if not each.isprintable() and each != "\n"]


@pytest.mark.parametrize(
    ("words", "replaces", "approved"),
    [
        ([], False, False),
        (["demo"], False, True),
        (["other", "demo"], False, True),
        (["dem"], False, False),
        (["demo@"], False, False),
        (["@"], False, False),
        ([""], False, False),
        ([f"demo@{FILE}"], False, True),
        (["demo"], True, False),
        (["demo@"], True, False),
        ([f"demo@{FILE}"], True, True),
        ([f"demo@{FILE.parent}/x/../{FILE.name}"], True, True),
        ([f"demo@{FILE.name}"], True, False),
        ([f"demo@{FILE.parent}"], True, False),
        ([f"demo@{FILE}x"], True, False),
        ([f"other@{FILE}"], True, False),
        ([f"@{FILE}", str(FILE)], True, False),
    ],
)
def test_server_that_takes_a_place_is_approved_by_its_file_only(
    words: list[str], replaces: bool, approved: bool
) -> None:
    question = replace(
        server_question(), file=str(FILE), replaces=("/u (user)",) if replaces else ()
    )
    assert is_approved_by(words, question) is approved
    assert is_approved_by(shlex.split(approving_option(question))[1:], question)


@pytest.mark.parametrize("name", ["a b", "-x", "a@b", "@", "$(x)", "é"])
def test_option_of_the_error_approves_what_it_names(name: str) -> None:
    for replaces in (), ("/u (user)",):
        question = replace(server_question(), server=name, file=str(FILE), replaces=replaces)
        option = shlex.split(approving_option(question))
        parser = argparse.ArgumentParser()
        add_configured_options(parser)
        assert is_approved_by(parser.parse_args(option).approve_server, question)


class _Keyboard:
    """A terminal whose user thinks for 100 seconds, and then types the next answer."""

    def __init__(self, *typed: str) -> None:
        self._typed = iter(typed)
        self.echoes: list[bool] = []

    async def run_dialogue(self, begin: Any, *, echo: bool = True) -> Any:
        self.echoes.append(echo)
        dialogue = begin(lambda *parts: None)
        next(dialogue)
        await trio.sleep(100)
        try:
            dialogue.send(next(self._typed))
        except StopIteration as end:
            return end.value
        raise AssertionError("the dialogue has not ended")


async def test_consent_at_terminal_pauses_the_timeout(autojump_clock: object) -> None:
    keyboard: Any = _Keyboard("yes", "CANARY")
    consent = TerminalConsent(Screen(None), keyboard)
    with trio.fail_after(10) as scope:
        consent.timeout = PausableTimeout(scope)
        await trio.sleep(4)
        assert await consent.approve_server(server_question())
        given = ConfigInput(id="k", type="promptString", place=PLACE, secret=True)
        assert await consent.enter_input(given) == "CANARY"
        assert scope.deadline - trio.current_time() == pytest.approx(6)
    assert keyboard.echoes == [True, False]


async def test_pausable_timeout_of_two_questions_waits_for_both(autojump_clock: object) -> None:
    """The clock resumes only after the second answer, with all the 5 seconds left."""
    with trio.CancelScope(deadline=trio.current_time() + 5) as scope:
        timeout = PausableTimeout(scope)

        async def ask(seconds: float) -> None:
            with timeout.paused():
                await trio.sleep(seconds)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, 10)
            nursery.start_soon(ask, 20)
            await trio.sleep(15)
            assert timeout.is_paused
            assert math.isinf(scope.deadline)
        assert scope.deadline - trio.current_time() == pytest.approx(5)
    assert not scope.cancelled_caught


async def test_consent_by_name_writes_its_notice_once() -> None:
    screen, shown = recorder()
    consent = TerminalConsent(screen, None, approved_servers=["demo"])
    for question in (server_question(), server_question(), server_question(command="/bin/y")):
        assert await consent.approve_server(question)
    assert [line.count("--approve-server lets demo of /p/.mcp.json") for line in shown] == [1, 1]
    assert consent.declined == {}


async def test_consent_keeps_the_questions_about_servers_that_were_declined() -> None:
    consent = TerminalConsent(Screen(None), None, approved_servers=["other"])
    question = server_question()
    assert not await consent.approve_server(question)
    assert consent.declined == {"demo": question}


@pytest.mark.parametrize(
    ("options", "stores"),
    [({}, True), ({"assume_yes": True}, False), ({"approved_servers": ["demo"]}, False)],
)
def test_consent_stores_answers_without_options_only(options: Any, stores: bool) -> None:
    consent = TerminalConsent(Screen(None), None, **options)
    assert (consent.stores_answers, consent.at_terminal) == (stores, False)
    assert consent.assume_yes is ("assume_yes" in options)


async def test_consent_at_terminal_without_timeout_keeps_what_is_denied_and_entered(
    autojump_clock: object,
) -> None:
    """An input is asked for once, an approval each time."""
    keyboard: Any = _Keyboard("no", "no", "no", "x", "y")
    consent = TerminalConsent(Screen(None), keyboard)
    assert consent.at_terminal
    for _ in range(2):
        assert not await consent.approve_server(server_question())
    assert consent.declined == {"demo": server_question()}
    assert not await consent.approve_definitions(definitions_question((), [definition()]))
    given = ConfigInput(id="k", type="promptString", place=PLACE)
    other = ConfigInput(id="l", type="promptString", place=PLACE)
    assert [await consent.enter_input(each) for each in (given, given, other)] == ["x", "x", "y"]
    assert keyboard.echoes == [True] * 5


@pytest.mark.parametrize(
    ("members", "launch", "stores", "sentence", "asked"),
    [
        ({}, {}, False, "The server demo is not approved.", "Start demo, in this run?"),
        (
            {"replaces": ("/u (user)",)},
            {},
            True,
            "The server demo takes the place of another server, and is not approved.",
            "Start demo, now and whenever it is used?",
        ),
        (
            {"state": "changed"},
            {"transport": "http", "command": "", "url": "https://h/"},
            False,
            "The server demo has changed since you approved it.",
            "Connect to demo, in this run?",
        ),
    ],
)
def test_question_about_server_says_its_state_and_how_long_the_answer_holds(
    members: Any, launch: Any, stores: bool, sentence: str, asked: str
) -> None:
    def begin(question: Any, print_line: Any) -> Any:
        return ask_about_server(question, print_line, stores=stores)

    _, lines, prompts = talk(begin, replace(server_question(**launch), **members), ["no"])
    assert lines[1].startswith(f"{sentence} It ")
    assert prompts[0].startswith(asked)
    shows_power = lines[-1] == "A program can do all that you can do on this machine."
    assert shows_power is (not launch)


@pytest.mark.parametrize("excess", [0, 1])
def test_definitions_of_more_than_forty_lines_have_their_length(excess: int) -> None:
    """The lengths below and above count those lines that a screen of 80 columns wraps."""
    frame = _count_of(definition(description="x\n"))
    text = "x\n" * (41 + excess - frame)
    question = definitions_question((), [definition(description=text)])
    _, lines, _ = talk(ask_about_definitions, question, ["no"])
    around = [line for line in lines if line.startswith("!")]
    assert (
        around
        == [
            "! 41 lines follow: scroll back to here to read them",
            "! 41 lines are above. They are about:",
        ][: 2 * excess]
    )


def _count_of(offered: Any) -> int:
    _, lines, _ = talk(ask_about_definitions, definitions_question((), [offered]), ["no"])
    return len(lines) - 2  # without the empty line, and the heading


@pytest.mark.long
def test_definitions_of_fifty_thousand_lines_can_be_approved() -> None:
    frame = _count_of(definition(description="x\n"))
    for excess in (0, 1):
        text = "x\n" * (50_001 + excess - frame)
        question = definitions_question((), [definition(description=text)])
        approved, _, _ = talk(ask_about_definitions, question, [] if excess else ["yes"])
        assert approved is not bool(excess)


def test_long_definitions_count_their_warnings_and_leave_out_none() -> None:
    first, second, third = definition("a", "x\n" * 60), definition("b"), definition("c")
    warning = DefinitionWarning("mention", "description", "names x of y")
    warnings = {first.key: [warning, warning], second.key: [warning]}
    question = definitions_question((), [first, second, third], warnings)
    _, lines, _ = talk(ask_about_definitions, question, ["no"])
    assert lines[-3:] == [
        "  tool a (new)  ! 2 warnings",
        "  tool b (new)  ! 1 warning",
        "  tool c (new)",
    ]


@pytest.mark.parametrize(
    ("members", "typed", "lines", "prompt"),
    [
        (
            {},
            ["", None],
            ["", "key  (/p/.mcp.json:3:5)", "  Write a text"],
            "  text (Ctrl+D: none): ",
        ),
        (
            {"description": "The key", "default": "d"},
            [None],
            ["", "The key  (/p/.mcp.json:3:5)"],
            "  text [d] (Ctrl+D: none): ",
        ),
        (
            {"options": ("a", "b")},
            ["c", None],
            [
                "",
                "key  (/p/.mcp.json:3:5)",
                "    a",
                "    b",
                "  Write one of the values above",
            ],
            "  text (Ctrl+D: none): ",
        ),
        (
            {"secret": True, "default": "d"},
            [None],
            ["", "key  (/p/.mcp.json:3:5)"],
            "  text, not shown (Ctrl+D: none): ",
        ),
    ],
)
def test_question_for_input_shows_its_options_and_what_is_wrong(
    members: Any, typed: list[str | None], lines: list[str], prompt: str
) -> None:
    given = ConfigInput(id="key", type="promptString", place=PLACE, **members)
    assert talk(ask_for_input, given, typed) == (None, lines, [prompt] * len(typed))


def test_names_in_questions_are_shortened_after_200_characters() -> None:
    for count, is_whole in ((200, True), (201, False)):
        _, lines, _ = talk(
            ask_about_definitions, definitions_question((), [definition("a" * count)]), ["no"]
        )
        assert (f"  tool {'a' * count} (new)" in lines) is is_whole
