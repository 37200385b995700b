"""The verdicts on each answer to each request, in `answers.txt`.

    python -m tests.core.trace.judge.rules.answers

writes the file again. Rules about answers are many, and each has to leave alone what is for
another one: the file shows which rows find a fault in an answer, `!` if it is certain and `?` if
not, and which others judge it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.core.trace.judge.conversations import EVERYTHING, C, S, Start, ask, error, result
from tests.core.trace.judge.rules.errors import ASKING, PROMPT, SCHEMA
from tests.core.trace.judge.rules.messages import TEXT
from tests.core.trace.judge.rules.verdicts import verdicts_by_answer
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from tests.core.trace.judge.conversations import Sent

__all__ = ["AskedRequest", "asked", "kept_answers", "verdicts_on"]

_FILE: Final = Path(__file__).with_name("answers.txt")
_REVISIONS: Final = ("2025-11-25", "2026-07-28")
_TOOLS: Final = [{"name": "t", "inputSchema": SCHEMA}, {"name": "u", "inputSchema": SCHEMA}]
# What the client knows before it asks.
_LISTS: Final = [
    *(C(ask("a", "tools/list")), S(result("a", tools=_TOOLS))),
    *(C(ask("b", "prompts/list")), S(result("b", prompts=[PROMPT]))),
    *(C(ask("c", "resources/list")), S(result("c", resources=[{"uri": "x:1", "name": "x"}]))),
    *(C(ask("d", "resources/templates/list")), S(result("d", resourceTemplates=[]))),
]
_REF: Final = {"type": "ref/prompt", "name": "p"}
_SAMPLE: Final = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]}
_FORM: Final = {"message": "x", "requestedSchema": {"type": "object", "properties": {}}}
_REQUESTS: Final = [
    *(C(ask(1, "tools/call", name="t", arguments=each)) for each in ({"a": 1}, {"a": "1"}, {}, 5)),
    C(ask(1, "tools/call", name="missing")),
    *(C(ask(1, "prompts/get", name="p", arguments=each)) for each in ({"a": "1"}, {})),
    C(ask(1, "prompts/get", name="missing")),
    *(C(ask(1, "resources/read", uri=each)) for each in ("x:1", "x:2")),
    *(C(ask(1, each)) for each in ("tools/list", "ping", "server/discover", "tasks/list", "x/y")),
    *(C(ask(1, "prompts/list", cursor=each)) for each in ("", "x")),
    *(C(ask(1, "logging/setLevel", level=each)) for each in ("info", "loud")),
    *(
        C(ask(1, "completion/complete", ref={**_REF, "name": each}, argument={"name": "a"}))
        for each in ("p", "missing")
    ),
    C(ask(1, "tasks/get", taskId="x")),
    C(ask(1, "resources/subscribe", uri="x:2")),
    S(ask(1, "roots/list")),
    S(ask(1, "sampling/createMessage", maxTokens=5, **_SAMPLE)),
    S(ask(1, "elicitation/create", **_FORM)),
]
_CODES: Final = [
    *(-32700, -32600, -32601, -32602, -32603, -32000, -32002, -32019, -32020, -32021, -32022),
    *(-32023, -32042, -32099, -32100, -32768, -32769, 0, True, "x"),
]
_RESULTS: Final[dict[str, dict[str, Any]]] = {
    "{}": {},
    "content": {"content": TEXT},
    "an error of a tool": {"content": TEXT, "isError": True},
    "no contents": {"contents": []},
    "messages": {"messages": []},
    "an empty page": {"prompts": [], "nextCursor": "x"},
    "input required": {
        "resultType": "input_required",
        "requestState": "s",
        "inputRequests": ASKING,
    },
}


class AskedRequest(NamedTuple):
    """A request in a revision, and whether everything is declared there, or nothing."""

    revision: str
    declares: bool
    request: Sent

    @property
    def name(self) -> str:
        message = self.request.message
        declared = "" if self.declares else ", nothing declared"
        params = json.dumps(message.get("params", {}))
        return f"{self.revision}{declared}: {message['method']} {params}"


def asked() -> list[AskedRequest]:
    """Return the requests in each revision."""
    declaring = [
        AskedRequest(revision, True, each) for revision in _REVISIONS for each in _REQUESTS
    ]
    return [*declaring, *(AskedRequest("2025-11-25", False, each) for each in _REQUESTS)]


def verdicts_on(each: AskedRequest) -> str:
    """Return the verdicts on all answers to a request, each with the answers that have it."""
    start = Start(each.revision, *(EVERYTHING if each.declares else ({}, {})))
    said = [*(_LISTS if each.declares else []), each.request]
    answers = {json.dumps(code): error(1, code) for code in _CODES}
    answers |= {name: result(1, **members) for name, members in _RESULTS.items()}
    by = S if each.request.sender == "client" else C
    return verdicts_by_answer(start, said, {name: [by(one)] for name, one in answers.items()})


def kept_answers() -> dict[str, str]:
    """Return the verdicts in the file by the names of what is asked."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {each.name: verdicts_on(each) for each in asked()})
