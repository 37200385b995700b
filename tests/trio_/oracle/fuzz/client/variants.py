"""Each variant of what a scripted server sends, as text, which `variants.txt` keeps.

    python -m tests.trio_.oracle.fuzz.client.variants

writes the file anew. A stored case names a variant by its number, so that a variant keeps its
number and its content as long as older reports are played again. A text that is too long to show
ends with its length and its CRC-32.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_trio.oracle.fuzz._revisions import META
from mcp_trio.oracle.fuzz.client import _results, _script, _wrong_answers, _wrong_http
from mcp_trio.oracle.fuzz.client._questions import QUESTIONS, find_question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcp_trio.oracle.fuzz.client._wrong_answers import Action

__all__ = ["VARIANTS", "VARIANTS_FILE", "render_variants", "variants_of"]

VARIANTS_FILE: Final = Path(__file__).with_name("variants.txt")
OLD, NEW = "2025-11-25", "2026-07-28"
_VISIBLE: Final = 100  # bytes of a text
_HEAD: Final = b'{"jsonrpc":"2.0",'  # shown as "{"
_RESULT: Final = {"tools": [{"name": "a"}], "structuredContent": {"sum": 1}}
_CALL: Final = {"_meta": {"progressToken": "t"}}
_IN_NEW: Final = {"_meta": {META + "protocolVersion": NEW}}
# How many variants an answer has, if that isn't one.
_COUNTS: Final = {
    "twice": 2,
    "id-type": 6,
    "id-other": 3,
    "without": 3,
    "error": 6,
    "odd-error": 12,
    "odd-result": 6,
    "shape": 45,
    "result-type": 6,
    "cursor": 12,
    "page": 2,
    "revision": 12,
    "unsupported": 9,
    "output": 11,
    "batch": 4,
    "huge": 3,
    "deep": 3,
    "half": 3,
    "input": 31,
    "task": 14,
    "acknowledged": 6,
}
_PUSH_COUNTS: Final = {
    "ping": 10,
    "sampling": 2,
    "elicitation": 2,
    "roots": 4,
    "unknown-request": 7,
    "log": 7,
    "list-changed": 9,
    "progress": 6,
    "notification": 19,
    "response": 6,
    "junk": 22,
    "empty-line": 3,
    "batch": 5,
}
_HTTP_COUNTS: Final = {"cut": 8, "head": 12, "body": 9, "events": 11}
_METHODS: Final = (
    *("initialize", "server/discover", "tools/list", "tools/call", "resources/list"),
    *("resources/templates/list", "resources/read", "prompts/list", "prompts/get", "ping"),
    *("completion/complete", "tasks/get", "tasks/list", "tasks/cancel", "tasks/result"),
    *("tasks/update", "tasks/acme", "acme"),
)


def _visible(data: bytes) -> str:
    shorter = data.replace(_HEAD, b"{")
    text = shorter[:_VISIBLE].decode("utf-8", "backslashreplace")
    if len(shorter) > _VISIBLE:
        text += f"... {len(data)} bytes, {zlib.crc32(data):08x}"
    return text.encode("unicode_escape").decode()


def _as_text(value: Any) -> str:
    return _visible(json.dumps(value).encode())


def _acts(actions: Iterable[Action]) -> str:
    """Return actions as text, with how often the last one is repeated."""
    texts = []
    for action in actions:
        more = f" {action.seconds:g} s" if action.seconds else ""
        shown = f" {_visible(action.data)}" if action.data else ""
        texts.append(f"{action.kind}{f' {action.id}' if action.id else ''}{more}{shown}")
    same = next((at for at, each in enumerate(reversed(texts)) if each != texts[-1]), len(texts))
    if same > 5:
        texts[-same:] = [f"{same} times {texts[-1]}"]
    return "; ".join(texts) or "nothing"


def _answers(how: str) -> Iterator[str]:
    method = {"revision": "server/discover", "cursor": "tools/list", "page": "tools/list"}.get(how)
    request: dict[str, Any] = {"id": 7, "method": method or "tools/call", "params": _IN_NEW}
    requests = [request]
    if how in ("task", "revision", "progress-after"):
        requests.append({**request, "params": _CALL})
    if how == "revision":
        requests[1]["method"] = "initialize"
    response = {"jsonrpc": "2.0", "id": 7, "result": _RESULT}
    for each in requests:
        for number in range(_COUNTS.get(how, 1)):
            yield f"{number}: {_acts(_wrong_answers.ANSWERS[how](response, each, number))}"


def _pushes(what: str) -> Iterator[str]:
    server = _script.ScriptedServer([("serve", [OLD], ["sum"])])
    server.revision = OLD
    request = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": _CALL}
    for number in range(_PUSH_COUNTS.get(what, 1)):
        yield f"{number}: {_acts(_script.PUSHES[what](server, number, request))}"


def _questions(method: str) -> Iterator[str]:
    for number, each in enumerate(QUESTIONS[method]):
        params, _ = find_question(method, number, OLD)
        fits = "fits" if each.fits(NEW) else "does not fit"
        yield f"{number}, {fits}: {each.needs} {_as_text(params)}"


def _http(way: str) -> Iterator[str]:
    values = {"status": _wrong_http.STATUSES, "type": _wrong_http.TYPES}.get(way)
    if values is not None:
        yield from map(str, values)
        return
    for number in range(_HTTP_COUNTS.get(way, 1)):
        body = b'{"jsonrpc":"2.0","id":7,"result":{}}'
        yield f"{number}: {_visible(_wrong_http.raw_response(way, number, body))}"


def _methods(revision: str) -> Iterator[str]:
    for method in _METHODS:
        result = _results.server_result(method, {}, revision, ["sum", "add"], [OLD, NEW])
        yield f"{method}: {_as_text(result)}"
    yield f"opening: {_as_text(_results.open_result({}, [revision]))}"


_KINDS: Final[dict[str, tuple[Iterable[str], Callable[[str], Iterator[str]]]]] = {
    "answer": (_wrong_answers.ANSWERS, _answers),
    "push": (_script.PUSHES, _pushes),
    "question": (QUESTIONS, _questions),
    "http": (_wrong_http.HTTP_WAYS, _http),
    "results": (("2024-11-05", "2025-06-18", OLD, NEW), _methods),
}
# The entries of the file: a kind of step, and its name.
VARIANTS: Final = [f"{kind} {each}" for kind, (names, _) in _KINDS.items() for each in names]


def variants_of(title: str) -> str:
    """Return the entry of a kind of step: a line for each variant."""
    kind, _, name = title.partition(" ")
    return "\n".join([title, *(f"  {line}" for line in _KINDS[kind][1](name))])


def render_variants() -> str:
    """Return the whole file."""
    return "\n\n".join(map(variants_of, VARIANTS)) + "\n"


if __name__ == "__main__":
    VARIANTS_FILE.write_text(render_variants(), "utf-8")
