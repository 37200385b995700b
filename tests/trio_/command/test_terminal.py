"""Someone at a terminal: a pseudo terminal, of which the test has the other end."""

from __future__ import annotations

import io
import os
import select
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_core.types import ElicitResult
from mcp_trio._command._screen import Screen
from mcp_trio._command._terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_trio._command._question import Dialogue, Say


class Person:
    """Whoever has the other end of `terminal`, and sees `screen`."""

    def __init__(self) -> None:
        self._fd, self._theirs = os.openpty()
        self._file = io.TextIOWrapper(os.fdopen(self._theirs, "wb"), encoding="utf-8")
        self.screen = Screen(self._file)
        self.terminal = Terminal(self.screen, self._file)
        self._seen = ""

    async def type(self, data: bytes, *, behind: str = "? ") -> str:
        """Wait until `behind` is shown, and type; gives what was shown in between."""
        while behind not in self._seen:
            await trio.lowlevel.wait_readable(self._fd)
            self._look()
        seen, self._seen = self._seen, ""
        os.write(self._fd, data)
        return seen

    def rest(self) -> str:
        while select.select([self._fd], [], [], 0)[0]:
            self._look()
        return self._seen

    def _look(self) -> None:
        self._seen += os.read(self._fd, 65_536).decode(errors="replace").replace("\r\n", "\n")

    def hang_up(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        self.hang_up()
        self._file.close()


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    person = Person()
    yield person
    person.close()


def echo(say: Say) -> Dialogue:
    """One question, whose answer is what is typed."""
    say("Now")
    text = yield ("What", "? ")
    return ElicitResult(action="accept", content={"typed": "^D" if text is None else text})


async def answer_to(person: Person, *typed: bytes) -> tuple[object, str]:
    """What the dialogue gets when this is typed, each behind a prompt; and all that is shown."""
    answers: list[ElicitResult] = []
    seen = ""

    async def hold() -> None:
        answers.append(await person.terminal.hold(echo))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold)
        for data in typed:
            seen += await person.type(data)
    assert not person.screen.typing
    return (answers[0].content or {})["typed"], seen + person.rest()


TYPED = [
    ((b"hello\n",), "hello"),
    (("Zoë  \n".encode(),), "Zoë  "),
    ((b"a\tb\n",), "a\tb"),
    ((b"\n",), ""),
    ((b"teh\x7f\x7fhe\n",), "the"),  # the terminal's own editing
    ((b"half\x04 a line\n",), "half a line"),
    ((b"\x04",), "^D"),
    ((b"half\x04\x04",), "^D"),
]


@pytest.mark.parametrize(("typed", "text"), TYPED)
async def test_a_line_is_what_was_typed(person: Person, typed: tuple[bytes, ...], text: str) -> None:
    answer, seen = await answer_to(person, *typed)
    assert answer == text
    assert seen.startswith("Now\nWhat? ")
    assert seen.endswith("\n")


UNREADABLE = [
    (b"Zo\xeb\n", "That is not utf-8"),
    (b"up\x1b[A\n", "A key was pressed there that writes no text: up\u241b[A"),
    (b"c1\xc2\x9b\n", "A key was pressed there that writes no text: c1\ufffd"),
]


@pytest.mark.parametrize(("typed", "complaint"), UNREADABLE)
async def test_what_is_no_text_is_asked_for_again(person: Person, typed: bytes, complaint: str) -> None:
    answer, seen = await answer_to(person, typed, b"better\n")
    assert answer == "better"
    assert f"{complaint}\nWhat? " in seen


async def test_what_was_typed_too_early_is_no_answer(person: Person) -> None:
    await person.type(b"early\n", behind="")
    answer, _ = await answer_to(person, b"late\n")
    assert answer == "late"


async def test_lines_that_were_pasted_are_answers_one_by_one(person: Person) -> None:
    def twice(say: Say) -> Dialogue:
        first = yield ("1? ",)
        second = yield ("2? ",)
        return ElicitResult(action="accept", content={"both": f"{first}, {second}"})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(person.type, b"one\ntwo\n")
        answer = await person.terminal.hold(twice)
    assert answer.content == {"both": "one, two"}


async def test_one_dialogue_after_the_other(person: Person) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(person.terminal.hold, echo)
        first = await person.type(b"a\n")
        second = await person.type(b"b\n")
    assert (first.count("? "), second.count("? ")) == (1, 1)


async def test_nobody_is_there_any_more(person: Person) -> None:
    async with trio.open_nursery() as nursery:

        async def hold() -> None:
            answer = await person.terminal.hold(echo)
            assert answer.content == {"typed": "^D"}

        nursery.start_soon(hold)
        await person.type(b"half a line")
        person.hang_up()
    person.screen.say("nobody hears this")
    assert person.screen.gone


async def test_a_question_that_is_withdrawn_leaves_the_line(person: Person) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(person.terminal.hold, echo)
        await person.type(b"half a line")
        nursery.cancel_scope.cancel()
    assert person.rest() == "half a line\n"
    assert not person.screen.typing


async def test_what_else_is_said_does_not_come_between(person: Person) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(person.terminal.hold, echo)
        await person.type(b"half ")
        person.screen.say("a log message")
        seen = await person.type(b"and half\n")
    assert seen == "half \na log message\nWhat? "
