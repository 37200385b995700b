"""The user at a terminal: a pseudo-terminal whose other end the test has."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_core.types import ElicitResult
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_trio.cli._forms import Dialogue, PrintLine


class TerminalUser:
    """The user: the other end of `terminal`, which sees `screen`."""

    def __init__(self) -> None:
        self._fd, self._their_end = os.openpty()
        self._file = io.TextIOWrapper(os.fdopen(self._their_end, "wb"), encoding="utf-8")
        self.screen = Screen(self._file)
        self.terminal = Terminal(self.screen, self._file)
        self._seen = ""

    async def type(self, data: bytes, *, behind: str = "? ") -> str:
        """Wait until `behind` is shown, type `data`, and return the output so far."""
        await self.see(behind)
        seen, self._seen = self._seen, ""
        os.write(self._fd, data)
        return seen

    async def see(self, text: str) -> None:
        """Wait until `text` is shown.

        A kernel thread passes typed text to the program and echoes it, perhaps after `type` has
        returned. Once the echo is seen, the text can be read and stands before further output.
        """
        while text not in self._seen:
            await trio.lowlevel.wait_readable(self._fd)
            self._read_output()

    async def rest(self) -> str:
        """Return the output that was not yet returned, up to what the program wrote last."""
        # The program writes nothing meanwhile, and the terminal keeps the order.
        os.write(self._their_end, b"\0")
        await self.see("\0")
        return self._seen.removesuffix("\0")

    def _read_output(self) -> None:
        self._seen += os.read(self._fd, 65_536).decode(errors="replace").replace("\r\n", "\n")

    def close_after(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        self.close_after()
        self._file.close()


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[TerminalUser]:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    user = TerminalUser()
    yield user
    user.close()


def echo(say: PrintLine) -> Dialogue:
    """Ask one question, whose answer is the typed line."""
    say("Now")
    text = yield ("What", "? ")
    return ElicitResult(action="accept", content={"typed": "^D" if text is None else text})


async def answer_to(user: TerminalUser, *typed: bytes) -> tuple[object, str]:
    """Type each text after a prompt. Return the answer of the dialogue and the whole output."""
    answers: list[ElicitResult] = []
    seen = ""

    async def hold() -> None:
        answers.append(await user.terminal.run_dialogue(echo))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold)
        for data in typed:
            seen += await user.type(data)
    assert not user.screen.prompting
    return (answers[0].content or {})["typed"], seen + await user.rest()


TYPED = [
    ((b"hello\n",), "hello"),
    (("Zoë  \n".encode(),), "Zoë  "),
    ((b"a\tb\n",), "a\tb"),
    ((b"\n",), ""),
    ((b"teh\x7f\x7fhe\n",), "the"),  # edited by the line discipline
    ((b"half\x04 a line\n",), "half a line"),
    ((b"\x04",), "^D"),
    ((b"half\x04\x04",), "^D"),
]


@pytest.mark.parametrize(("typed", "text"), TYPED)
async def test_terminal_line_is_read_as_typed(
    user: TerminalUser, typed: tuple[bytes, ...], text: str
) -> None:
    answer, seen = await answer_to(user, *typed)
    assert answer == text
    assert seen.startswith("Now\nWhat? ")
    assert seen.endswith("\n")


UNREADABLE = [
    (b"Zo\xeb\n", "That is not utf-8"),
    (b"up\x1b[A\n", "That contains a control character, as of an arrow key: up\\u001b[A"),
    (b"c1\xc2\x9b\n", "That contains a control character, as of an arrow key: c1\\u009b"),
]


@pytest.mark.parametrize(("typed", "complaint"), UNREADABLE)
async def test_terminal_unreadable_line_is_asked_again(
    user: TerminalUser, typed: bytes, complaint: str
) -> None:
    answer, seen = await answer_to(user, typed, b"better\n")
    assert answer == "better"
    assert f"{complaint}\nWhat? " in seen


async def test_terminal_input_before_question_is_discarded(user: TerminalUser) -> None:
    await user.type(b"early\n", behind="")
    await user.see("early\n")
    answer, _ = await answer_to(user, b"late\n")
    assert answer == "late"


async def test_terminal_pasted_lines_answer_one_prompt_each(user: TerminalUser) -> None:
    def twice(say: PrintLine) -> Dialogue:
        first = yield ("1? ",)
        second = yield ("2? ",)
        return ElicitResult(action="accept", content={"both": f"{first}, {second}"})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(user.type, b"one\ntwo\n")
        answer = await user.terminal.run_dialogue(twice)
    assert answer.content == {"both": "one, two"}


async def test_terminal_dialogues_run_one_after_the_other(user: TerminalUser) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(user.terminal.run_dialogue, echo)
        first = await user.type(b"a\n")
        second = await user.type(b"b\n")
    assert (first.count("? "), second.count("? ")) == (1, 1)


async def test_terminal_closed_ends_dialogue(user: TerminalUser) -> None:
    async with trio.open_nursery() as nursery:

        async def hold() -> None:
            answer = await user.terminal.run_dialogue(echo)
            assert answer.content == {"typed": "^D"}

        nursery.start_soon(hold)
        await user.type(b"half a line")
        await user.see("half a line")
        user.close_after()
    user.screen.write_line("this is discarded")
    assert user.screen.reader_gone


async def test_terminal_cancelled_question_ends_line(user: TerminalUser) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(user.terminal.run_dialogue, echo)
        await user.type(b"half a line")
        await user.see("half a line")
        nursery.cancel_scope.cancel()
    assert await user.rest() == "half a line\n"
    assert not user.screen.prompting


async def test_terminal_output_during_prompt_repeats_prompt(user: TerminalUser) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(user.terminal.run_dialogue, echo)
        await user.type(b"half ")
        await user.see("half ")
        user.screen.write_line("a log message")
        seen = await user.type(b"and half\n")
    assert seen == "half \na log message\nWhat? "
