"""A host's questions to a command's user: about servers, definitions and inputs.

1. A question comes below the complete text of what is approved. Only a typed word approves. The end
   of the input denies, and Ctrl+C ends the command, so nothing is approved by either.
2. Texts of servers and files have escapes for hidden characters.
3. The first lines of a long text may have left the screen, so its length is shown above and below
   it. A text that is too long to read isn't approved.
4. Without a terminal nothing is approved. For this run, `--yes` approves definitions, and
   `--approve-server` the servers that it names. Neither approves what the other is for.

Each question is a dialogue as in `_forms.py`, and a callback of `HostOptions` runs it.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from mcp_core.drivers import shorten_text
from mcp_core.host import describe_definition, describe_definition_change
from mcp_trio.cli._forms import ask_permission

from ._approved_servers import is_approved_by, shown_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mcp_core.host import ConfigInput, Definition
    from mcp_trio.cli._forms import DialogueSteps, PrintLine
    from mcp_trio.cli._screen import LinePart, Screen
    from mcp_trio.cli._terminal import Terminal
    from mcp_trio.host import DefinitionsQuestion, ServerQuestion

    _Line = Sequence[LinePart]

__all__ = [
    "PausableTimeout",
    "TerminalConsent",
    "ask_about_definitions",
    "ask_about_server",
    "ask_for_input",
    "count_definitions",
    "print_definitions",
    "shown_definition",
]

T = TypeVar("T")

_MAX_NAME: Final = 200  # characters of a name
_COLUMNS: Final = 80  # of a line, for the numbers below: a longer line counts as several
_MANY_LINES: Final = 40  # in one question, so that the first ones may have left the screen
# In one question. A server with 200 tools has about 20,000, and 50,000 take some seconds to write.
_MAX_LINES: Final = 50_000
_TOO_LONG: Final = f"these are more than {_MAX_LINES:,} lines, too many to be read"
_LINES_IN_SIGHT: Final = 20  # of a terminal of 24 lines, with the question
_LABEL_WIDTH: Final = 16
_WARNING_STYLE: Final = "yellow"
_SIGN_STYLES: Final = {"+": "green", "-": "red", " ": "dim"}


class PausableTimeout:
    """The timeout of a cancel scope. It is paused while the user is asked."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope
        self._questions = 0
        self._left = 0.0

    @property
    def is_paused(self) -> bool:
        """True while the user is asked."""
        return self._questions > 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the time for the block."""
        if not self._questions:
            self._left = self._scope.deadline - trio.current_time()
            self._scope.deadline = float("inf")
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._scope.deadline = trio.current_time() + self._left


class TerminalConsent:
    """A command's user, as a host asks them.

    Args:
        stderr: for the questions.
        terminal: the terminal at which they are answered, or None.
        assume_yes: whether definitions, and calls, are approved without a question.
        approved_servers: the words of `--approve-server`.

    `timeout` is the timeout to pause while the user is asked, or None. `declined` has the questions
    about servers that were not approved, by the servers' names.
    """

    def __init__(
        self,
        stderr: Screen,
        terminal: Terminal | None,
        *,
        assume_yes: bool = False,
        approved_servers: Sequence[str] = (),
    ) -> None:
        self._stderr = stderr
        self._terminal = terminal
        self._approved_servers = approved_servers
        self.assume_yes = assume_yes
        self.timeout: PausableTimeout | None = None
        self.declined: dict[str, ServerQuestion] = {}
        self._notices: set[str] = set()
        self._entered: dict[ConfigInput, str | None] = {}

    @property
    def stores_answers(self) -> bool:
        """True if approvals are stored, False if they hold for this run only."""
        return not (self.assume_yes or self._approved_servers)

    @property
    def at_terminal(self) -> bool:
        """True if there is a terminal to ask at."""
        return self._terminal is not None

    async def approve_server(self, question: ServerQuestion) -> bool:
        """Return True if the user approves a server."""
        if is_approved_by(self._approved_servers, question):
            notice = (
                f"mcp-trio: --approve-server lets {_shown(question.server)} of {question.file}"
                f" {shown_start(question.launch)} in this run, and stores nothing"
            )
            if notice not in self._notices:  # a command may use the server twice
                self._notices.add(notice)
                self._stderr.write_line(notice)
            return True
        ask = partial(ask_about_server, question, stores=self.stores_answers)
        if self.at_terminal and await self._ask(ask):
            return True
        self.declined[question.server] = question
        return False

    async def approve_definitions(self, question: DefinitionsQuestion) -> bool:
        """Return True if the user approves definitions. They are shown without a terminal too."""
        if self.assume_yes:
            return True
        if not self.at_terminal:
            print_definitions(question, self._stderr.write_line)
            return False
        return await self._ask(partial(ask_about_definitions, question))

    async def enter_input(self, given: ConfigInput) -> str | None:
        """Return what the user enters for an input of a configuration file, or None."""
        if given not in self._entered:  # a command may need it twice
            ask = partial(ask_for_input, given)
            self._entered[given] = await self._ask(ask, echo=not given.secret)
        return self._entered[given]

    async def _ask(self, begin: Callable[[PrintLine], DialogueSteps[T]], *, echo: bool = True) -> T:
        assert self._terminal is not None, "there is a terminal to ask at"
        if self.timeout is None:
            return await self._terminal.run_dialogue(begin, echo=echo)
        with self.timeout.paused():
            return await self._terminal.run_dialogue(begin, echo=echo)


# -- Servers ---------------------------------------------------------------------------------------


def ask_about_server(
    question: ServerQuestion, print_line: PrintLine, *, stores: bool = True
) -> DialogueSteps[bool]:
    """Show what a server runs or connects to, and ask whether it may.

    `stores` is True if the answer is stored, False if it holds for this run only.
    """
    is_program = bool(question.launch.command)
    state = (
        "has changed since you approved it" if question.state == "changed" else "is not approved"
    )
    if question.replaces:
        state = f"takes the place of another server, and {state}"
    print_line()
    print_line(
        ("The server ", "bold"),
        (_shown(question.server), "bold cyan"),
        (f" {state}. It {'runs this program' if is_program else 'is at this address'}:", "bold"),
    )
    print_line("  ", (f"{'file':{_LABEL_WIDTH}}", "dim"), question.file)
    lines = list(question.lines())
    if sum(1 + len(line.text) // _COLUMNS for line in lines) > _LINES_IN_SIGHT:
        lines.append(lines[0])  # the command or the address, which may have left the screen
    for label, text, mark in lines:
        line = ["  ", (f"{label:{_LABEL_WIDTH}}", "dim"), text]
        print_line(*line, (f"  ! {mark}" if mark else "", _WARNING_STYLE))
    if is_program:
        print_line(("A program can do all that you can do on this machine.", "dim"))
    what = "Start" if is_program else "Connect to"
    when = "now and whenever it is used" if stores else "in this run"
    asked = f"{what} {_shown(question.server)}, {when}?"
    return (yield from _ask_consent(asked, print_line))


# -- Definitions -----------------------------------------------------------------------------------


def ask_about_definitions(
    question: DefinitionsQuestion, print_line: PrintLine
) -> DialogueSteps[bool]:
    """Show definitions, and ask whether they may be used.

    They may not if they are too long to be read.
    """
    if not print_definitions(question, print_line):
        return False
    asked = f"Approve {count_definitions(question)} of {_shown(question.server)}?"
    return (yield from _ask_consent(asked, print_line))


def count_definitions(question: DefinitionsQuestion) -> str:
    """Return how many definitions are new and how many have changed, such as "1 new tool"."""
    new, changed = len(question.comparison.new), len(question.comparison.changed)
    parts = [f"{count} {word}" for count, word in ((new, "new"), (changed, "changed")) if count]
    return f"{' and '.join(parts)} {'definition' if new + changed == 1 else 'definitions'}"


def print_definitions(question: DefinitionsQuestion, print_line: PrintLine) -> bool:
    """Show what is new and what has changed, with warnings.

    Return False, and show only how long it is, if it is too long to be read.
    """
    print_line()
    print_line(
        ("The server ", "bold"),
        (_shown(question.server), "bold cyan"),
        (f" offers {count_definitions(question)}:", "bold"),
    )
    count = _print_all(_definition_lines(question), print_line)
    if count is None:
        print_line((f"! {_TOO_LONG}, so they are not approved", _WARNING_STYLE))
        return False
    if count > _MANY_LINES:
        print_line((f"! {count} lines are above. They are about:", _WARNING_STYLE))
        for state, each in _states(question):
            warnings = len(question.warnings.get(each.key, ()))
            counted = f"  ! {warnings} {'warning' if warnings == 1 else 'warnings'}"
            print_line(*_heading(each, state), (counted if warnings else "", _WARNING_STYLE))
    return True


def shown_definition(definition: Definition) -> str:
    """Return the kind and the name of a definition."""
    return f"{definition.kind} {_shown(definition.name)}".rstrip()


def _states(question: DefinitionsQuestion) -> Iterator[tuple[str, Definition]]:
    yield from (("changed", new) for _, new in question.comparison.changed)
    yield from (("new", each) for each in question.comparison.new)


def _heading(definition: Definition, state: str) -> _Line:
    return ["  ", (shown_definition(definition), "bold"), f" ({state})"]


def _definition_lines(question: DefinitionsQuestion) -> Iterator[_Line]:
    before = {new.key: old for old, new in question.comparison.changed}
    for state, each in _states(question):
        yield _heading(each, state)
        for warning in question.warnings.get(each.key, ()):
            yield [(f"    ! {warning.path} {warning.text}", _WARNING_STYLE)]
        old = before.get(each.key)
        lines = describe_definition(each) if old is None else describe_definition_change(old, each)
        for sign, line in lines:
            yield [(f"    {sign} {line}", _SIGN_STYLES[sign])]


# -- Inputs ----------------------------------------------------------------------------------------


def ask_for_input(given: ConfigInput, print_line: PrintLine) -> DialogueSteps[str | None]:
    """Ask for the value of an input. An empty line takes the default, if there is one."""
    print_line()
    print_line((_shown(given.description or given.id), "bold"), f"  ({given.place})")
    for option in given.options:
        print_line("    ", _shown(option))
    # The default of a secret isn't shown, and neither is what is typed.
    bracket = "" if given.default is None or given.secret else f" [{_shown(given.default)}]"
    hint = ", not shown" if given.secret else ""
    while True:
        text = yield (f"  text{hint}{bracket} (Ctrl+D: none): ",)
        if text is None:
            return None
        value = text or given.default
        if value is None:
            print_line(("  Write a text", _WARNING_STYLE))
        elif given.options and value not in given.options:
            print_line(("  Write one of the values above", _WARNING_STYLE))
        else:
            return value


# -- Lines -----------------------------------------------------------------------------------------


def _print_all(lines: Iterable[_Line], print_line: PrintLine) -> int | None:
    """Print all lines or, if there are too many to be read, none.

    Return their number on a screen of 80 columns, or None if there are too many.
    """
    kept: list[_Line] = []
    count = 0
    for line in lines:
        kept.append(line)
        length = sum(len(part if isinstance(part, str) else part[0]) for part in line)
        count += max(1, -(-length // _COLUMNS))
        if count > _MAX_LINES:
            return None
    if count > _MANY_LINES:
        print_line((f"! {count} lines follow: scroll back to here to read them", _WARNING_STYLE))
    for line in kept:
        print_line(*line)
    return count


def _ask_consent(question: str, print_line: PrintLine) -> DialogueSteps[bool]:
    result = yield from ask_permission((question,), print_line)
    return result.action == "accept"


def _shown(text: str) -> str:
    return shorten_text(text, _MAX_NAME)
