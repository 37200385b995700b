"""Answers to a server's elicitation requests: first from `--answer`, then from the user.

1. Only what can be answered is declared: forms need a terminal or `--answer`, URLs a terminal.
2. Each `--answer` is used once, in the order of the forms, and its text is read as if typed. So a
   server that repeats a form after a wrong answer doesn't loop.
3. A form without an answer is cancelled, so the server doesn't wait. The exit status says so.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_core.drivers import answer_form, shorten_text
from mcp_core.types import ElicitationCapability, ElicitResult

from ._arguments import parse_object
from ._errors import CliError, join_names, unknown_argument
from ._forms import InvalidInput, ask_to_open_url, fill_in, parse_field, valid_default

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from mcp_core import FormSchema
    from mcp_core.types import ElicitParams
    from mcp_trio._connect import ClientOptions

    from ._screen import Screen
    from ._terminal import Terminal

__all__ = ["ElicitationAnswers", "open_terminal"]

_MAX_MESSAGE: Final = 1_000  # characters of a form's message in an error


class ElicitationAnswers:
    """The answers to one server's elicitation requests.

    Args:
        server: the server's name, to be shown.
        given: the values of `--answer`.
        stderr: for questions and errors.
        repeats: whether the values are used again from the first one after the last, for a load.
            No user is asked then, and only the first error is written.

    `terminal` is the user's terminal, or None, and `at_terminal` is True if there is one. Set
    `answers_later` to declare forms without a terminal, for a task that another command will
    follow.
    `answers_invalid` is True after a form for which `given` had no valid answer; the reason was
    written to `stderr`.

    Raises:
        CliError: a value is neither KEY=VALUE nor a JSON object.
    """

    def __init__(
        self, server: str, given: Sequence[str], stderr: Screen, *, repeats: bool = False
    ) -> None:
        self._given = given if repeats else ()
        self._source = f"The server ({server})"
        self._field_texts, self._forms = _parse_answers(given)
        self._stderr = stderr
        self.terminal = None if repeats else open_terminal(stderr)
        self._form_callback = answer_form(self._answer_form)
        self.answers_later = False
        self.at_terminal = self.terminal is not None
        self.answers_invalid = False

    @property
    def client_options(self) -> ClientOptions:
        """The elicitation options of the client."""
        if self.at_terminal:
            return {
                "on_elicit": self._on_elicit,
                "elicitation": ElicitationCapability(form={}, url={}),
            }
        if self._field_texts or self._forms or self.answers_later:
            return {"on_elicit": self._on_elicit}
        return {}

    def _on_elicit(self, params: ElicitParams) -> Any:
        if params.mode != "url":
            return self._form_callback(params)
        assert self.terminal is not None, "URLs are declared only with a terminal"
        assert params.url is not None
        return self.terminal.run_dialogue(
            partial(ask_to_open_url, self._source, params.message, params.url)
        )

    def _answer_form(
        self, message: str, form: FormSchema
    ) -> Awaitable[ElicitResult] | ElicitResult:
        if self._given and not (self._field_texts or self._forms):
            self._field_texts, self._forms = _parse_answers(self._given)
        if self._field_texts or self._forms:
            try:
                return ElicitResult(action="accept", content=self._form_content(form))
            except CliError as exc:
                if not (self._given and self.answers_invalid):
                    self._stderr.write_message(f"mcp-trio: {exc}")
                self.answers_invalid = True
        elif self.terminal is None:
            self.answers_invalid = True
            self._stderr.write_message(
                "mcp-trio: no --answer is left for this form of the server: "
                f"{shorten_text(message, _MAX_MESSAGE)}"
            )
        else:
            return self.terminal.run_dialogue(partial(fill_in, self._source, message, form))
        return ElicitResult(action="cancel")

    def _form_content(self, form: FormSchema) -> dict[str, Any]:
        """Fill in a form with the next given values, and with defaults for the other fields.

        Raises:
            CliError: a value is invalid, or a required field is missing.
        """
        content = {name: valid_default(form, name) for name in form.properties}
        texts, self._field_texts = self._field_texts, {}
        values = {name: _parse_field(form, name, text) for name, text in texts.items()}
        if not texts:
            values = self._forms.popleft()
        for name, value in values.items():
            problem = form.find_error(name, value) if name in form.properties else None
            if problem:
                raise CliError(f"--answer: {name} {problem}")
        content |= values
        missing = [name for name in form.required or () if content.get(name) is None]
        if missing:
            raise CliError(
                f"the form needs {join_names(missing, ' and ')}: add --answer"
                f" {join_names(missing[:1])}=..."
            )
        return {name: value for name, value in content.items() if value is not None}


def _parse_answers(given: Sequence[str]) -> tuple[dict[str, str], deque[dict[str, Any]]]:
    """Return texts for the fields of the first form, or the values of each form."""
    objects = deque(parse_object(word) for word in given if word.startswith("{"))
    texts: dict[str, str] = {}
    for word in given:
        key, equals, text = word.partition("=")
        if word.startswith("{"):
            continue
        if not (key and equals):
            raise CliError(
                f"{word!r} is not an answer: write --answer KEY=VALUE, or --answer with a JSON"
                " object"
            )
        texts[key] = text
    if texts and objects:
        raise CliError(
            "--answer takes KEY=VALUE, all for one form, or a JSON object for each form, but"
            " not both"
        )
    return texts, objects


def _parse_field(form: FormSchema, name: str, text: str) -> Any:
    if name not in form.properties:
        raise unknown_argument("the form", name, list(form.properties))
    try:
        return parse_field(form, name, text)
    except InvalidInput as exc:
        raise CliError(f"--answer {name}={text}: {exc}") from None


def open_terminal(stderr: Screen) -> Terminal | None:
    """Return the user's terminal; None if stdin or stderr is something else."""
    if sys.platform == "win32":  # has no `termios`, and cannot wait for a terminal
        return None
    if sys.stdin is None or not sys.stdin.isatty() or not stderr.terminal:
        return None
    from ._terminal import Terminal

    return Terminal(stderr, sys.stdin)
