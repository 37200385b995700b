"""Who answers when a server asks its user: what `--answer` gave beforehand, and then the person at the terminal.

Rules of this file:

1. Where nobody can answer, nothing is offered: without a terminal and without `--answer` a server learns that this client does
   not show forms; without a terminal, that it does not show pages.
2. What was given beforehand is read as if it were typed, each used once, in the order of the questions. So a server that asks
   again for what was wrong is not answered for ever.
3. An answer that cannot be given is no reason to leave the server waiting: it is told that the user turned away, and the
   exit status tells the script.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_core.runtime import answer_form
from mcp_core.types import ElicitationCapability, ElicitResult

from ._arguments import object_in
from ._names import no_such_argument
from ._problem import Problem
from ._question import Misfit, default_in, fill_in, value_in, visit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from mcp_core import FormSchema
    from mcp_core.types import ElicitParams
    from mcp_trio import ClientOptions

    from ._screen import Screen
    from ._terminal import Terminal

__all__ = ["User"]


class User:
    """Who answers for us. `server` is its name, `given` are the words of `--answer`.

    `present`: somebody sits at the terminal. `misused`: what was given does not do; it was said on `stderr` why.

    Raises:
        Problem: what was given is neither KEY=VALUE nor JSON.
    """

    def __init__(self, server: str, given: Sequence[str], stderr: Screen) -> None:
        self._who = f"The server ({server})"
        self._texts, self._objects = _read(given)
        self._stderr = stderr
        self._terminal = _terminal(stderr)
        self._fill_in = answer_form(self._fill)
        self.present = self._terminal is not None
        self.misused = False

    @property
    def options(self) -> ClientOptions:
        """What a client is to be told about us."""
        if self.present:
            return {"on_elicit": self._answer, "elicitation": ElicitationCapability(form={}, url={})}
        return {"on_elicit": self._answer} if self._texts or self._objects else {}

    def _answer(self, params: ElicitParams) -> Any:
        if params.mode != "url":
            return self._fill_in(params)
        assert self._terminal is not None, "else no page is offered"
        assert params.url is not None
        return self._terminal.hold(partial(visit, self._who, params.message, params.url))

    def _fill(self, message: str, form: FormSchema) -> Awaitable[ElicitResult] | ElicitResult:
        if self._texts or self._objects:
            try:
                return ElicitResult(action="accept", content=self._content(form))
            except Problem as exc:
                self.misused = True
                self._stderr.say(f"mcp-trio: {exc}")
        elif self._terminal is None:
            self.misused = True
            self._stderr.say("mcp-trio: there is no --answer left for what the server asks: ", message)
        else:
            return self._terminal.hold(partial(fill_in, self._who, message, form))
        return ElicitResult(action="cancel")

    def _content(self, form: FormSchema) -> dict[str, Any]:
        """A form filled in with what is next of that which was given, and defaults for the rest.

        Raises:
            Problem: it does not fit.
        """
        content = {name: default_in(form, name) for name in form.properties}
        texts, self._texts = self._texts, {}
        values = {name: _value(form, name, text) for name, text in texts.items()}
        if not texts:
            values = self._objects.popleft()
        for name, value in values.items():
            problem = form.misfit(name, value) if name in form.properties else None
            if problem:
                raise Problem(f"--answer: {name} {problem}")
        content |= values
        missing = [name for name in form.required or () if content.get(name) is None]
        if missing:
            raise Problem(f"the form needs {' and '.join(missing)}: add --answer {missing[0]}=...")
        return {name: value for name, value in content.items() if value is not None}


def _read(given: Sequence[str]) -> tuple[dict[str, str], deque[dict[str, Any]]]:
    """Texts for the fields of the first form; or else values, form after form."""
    objects = deque(object_in(word) for word in given if word.startswith("{"))
    texts: dict[str, str] = {}
    for word in given:
        key, equals, text = word.partition("=")
        if word.startswith("{"):
            continue
        if not (key and equals):
            raise Problem(f"{word!r} is no answer: write --answer KEY=VALUE, or --answer with a JSON object")
        texts[key] = text
    if texts and objects:
        raise Problem(
            "--answer takes KEY=VALUE, all for one form, or a JSON object for each form, but not both"
        )
    return texts, objects


def _value(form: FormSchema, name: str, text: str) -> Any:
    if name not in form.properties:
        raise no_such_argument("the form", name, list(form.properties))
    try:
        return value_in(form, name, text)
    except Misfit as misfit:
        raise Problem(f"--answer {name}={text}: {misfit}") from None


def _terminal(stderr: Screen) -> Terminal | None:
    if sys.stdin is None or not sys.stdin.isatty() or not stderr.terminal:
        return None
    from ._terminal import Terminal  # not there where there are no POSIX terminals

    return Terminal(stderr, sys.stdin)
