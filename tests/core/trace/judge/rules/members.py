"""How the verdict of each rule depends on its message's members, in `members.txt`.

    python -m tests.core.trace.judge.rules.members

writes the file again. The last message of each conversation with a fault is judged without one of
its members, and with another value of it. The file has the verdict on the rule's row, if it isn't
the one on the whole message: `perhaps`, `passes`, or `not judged`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mcp_core.trace import TraceLine
from tests.core.trace.judge.conversations import META, Sent, as_lines, judge
from tests.core.trace.judge.rules.verdicts import names_of
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.core.trace.judge.rules.case import Case

__all__ = ["kept_members", "verdicts_by_member"]

_FILE: Final = Path(__file__).with_name("members.txt")
_MISSING: Final = object()
_MAX_DEPTH: Final = 6
# Members of each message of 2026-07-28, whose own members are left alone.
_OF_EACH: Final = tuple(META + each for each in ("clientInfo", "clientCapabilities", "serverInfo"))


def verdicts_by_member(case: Case) -> str:
    """Return the verdicts on a case's row, each with the changes of the message that lead to it."""
    *before, last = as_lines(case.fails, case.revision)
    base = _verdict(case, [*before, last])
    found: dict[str, list[str]] = {}
    message = _decoded(last.raw or "")
    for path in _paths(message, _MAX_DEPTH):
        for text, value in _others(message, path):
            changed = replace(last, raw=json.dumps(_with(message, path, value)))
            verdict = _verdict(case, [*before, changed])
            if verdict != base:
                found.setdefault(verdict, []).append(f"{'.'.join(map(str, path))}{text}")
    return "\n".join([f"  {base}", *(f"  {each}: {', '.join(of)}" for each, of in found.items())])


def _verdict(case: Case, lines: list[TraceLine]) -> str:
    findings, judged = judge(None, [Sent("client", line) for line in lines], case.revision)
    mine = [each for each in findings if each.row == case.row]
    if mine:
        return "fails" if any(each.is_certain for each in mine) else "perhaps"
    return "passes" if judged.opportunities[case.row] else "not judged"


def _decoded(text: str) -> Any:
    """Return a message, or None if the text isn't JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _paths(value: Any, depth: int) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each member in a value."""
    members: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        members = enumerate(value)
    for key, each in members if depth else ():
        if key != "jsonrpc":
            yield (key,)
            if key in _OF_EACH:
                continue
            yield from ((key, *rest) for rest in _paths(each, depth - 1))


def _others(message: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield other values of a member, each with what is written for it."""
    value = message
    for key in path:
        value = value[key]
    others = [_MISSING, 5 if not isinstance(value, int) else "x"]
    if isinstance(value, bool):
        others += [not value]
    elif isinstance(value, int):
        others += [value + 1, value - 1]
    elif value:
        others += [type(value)()]
    for other in others:
        yield "" if other is _MISSING else f"={json.dumps(other)}", other


def _with(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    """Return a message with another value of a member, or without it."""
    if not path:
        return other
    copy: Any = value.copy()
    key, *rest = path
    if other is _MISSING and not rest:
        del copy[key]
    else:
        copy[key] = _with(value[key], tuple(rest), other)
    return copy


def kept_members() -> dict[str, str]:
    """Return the verdicts in the file, by the names of their cases."""
    return read_kept(_FILE)


def main() -> None:
    from tests.core.trace.judge.rules.test_rules import CASES

    verdicts = map(verdicts_by_member, CASES)
    write_kept(_FILE, dict(zip(names_of(CASES), verdicts, strict=True)))


if __name__ == "__main__":
    main()
