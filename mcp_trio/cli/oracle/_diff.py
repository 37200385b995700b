"""`mcp-trio diff A B`: the differences of two recorded conversations, request by request."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_core.drivers import shorten_text
from mcp_core.trace import diff_traces
from mcp_trio.cli._errors import NOTHING_JUDGED, CliError
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen

from ._trace_file import load_trace_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from mcp_core.trace import ChangedValue, TraceDiff, TraceDifference

__all__ = [
    "add_diff_options",
    "diff",
    "diff_document",
    "parse",
    "show_diff",
]

_DESCRIPTION: Final = """\
Compares two conversations that --record has recorded, request by request: what is missing in B,
what B has more, which results and error codes changed, and what came in another order. Ids,
tokens, cursors and the time of the recording do not count."""
_EPILOG: Final = """\
example:
  mcp-trio diff old.mcp.jsonl new.mcp.jsonl
  mcp-trio diff --ignore '/result/content/*/text' old.mcp.jsonl new.mcp.jsonl
  mcp-trio diff --breaking old.mcp.jsonl new.mcp.jsonl

exit status:
  0    they are the same
  1    they differ; with --breaking, a difference breaks users, or may break them
  2    the command line is wrong, or a file is not a trace
  4    nothing was compared: a trace has no messages, or no request has a response in both
"""

DIFFERENT: Final = 1
_MAX_VALUE: Final = 120  # characters of a value in a line
_CONTEXT: Final = 20  # of them before the first difference
_MAX_LINES: Final = 20  # changed values of one response in the text
_STYLES: Final = {"missing": "red", "added": "green", "error code changed": "bold red"}


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser("diff", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("old", metavar="A", help="the first trace, such as old.mcp.jsonl")
    parser.add_argument("new", metavar="B", help="the second one")
    add_diff_options(parser)
    parser.add_argument(
        "--breaking",
        action="store_true",
        help="compare only what the server offers, the lists in both traces, and say which changes"
        " break its users, as `mcp-trio inspect --against` does",
    )
    parser.add_argument(
        "--allow-unclear",
        action="store_true",
        help="with --breaking: a change that may break users or not is no failure",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    found = parser.parse_intermixed_args(words)
    if found.breaking and (found.ignore or found.meta):
        parser.error("--breaking compares what is in a contract: leave --ignore and --meta out")
    if found.allow_unclear and not found.breaking:
        parser.error("--allow-unclear is for --breaking")
    if found.breaking:
        from ._breaking import diff_breaking

        return partial(
            diff_breaking,
            found.old,
            found.new,
            allow_unclear=found.allow_unclear,
            as_json=found.json,
        )
    return partial(
        diff,
        found.old,
        found.new,
        ignore=found.ignore,
        with_meta=found.meta,
        as_json=found.json,
    )


def add_diff_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for what counts as a difference."""
    parser.add_argument(
        "--ignore",
        metavar="POINTER",
        action="append",
        default=[],
        help="do not compare the value at this JSON pointer of a message, such as"
        " /result/content/0/text; * stands for any member (may be repeated)",
    )
    parser.add_argument("--meta", action="store_true", help="compare _meta, too")


def diff(
    old: str, new: str, *, ignore: Sequence[str] = (), with_meta: bool = False, as_json: bool
) -> int:
    """Print the differences of the traces in the files `old` and `new`; return the exit status.

    Args:
        old: the first file.
        new: the second one.
        ignore: JSON pointers of values that don't count.
        with_meta: whether `_meta` counts.
        as_json: print one JSON document.

    Returns:
        0 without a difference, 1 with differences, 4 if there was nothing to compare.

    Raises:
        CliError: a file cannot be read or isn't a trace, or a pointer isn't one.
    """
    stderr, stdout = Screen(sys.stderr), Screen(sys.stdout)
    first, second = load_trace_file(old, stderr), load_trace_file(new, stderr)
    try:
        found = diff_traces(first, second, ignore=ignore, with_meta=with_meta)
    except ValueError as exc:
        raise CliError(f"--ignore: {exc}") from exc
    if as_json:
        stdout.write_json({"old": old, "new": new, **diff_document(found)})
    else:
        show_diff(stdout, found)
        stdout.write_line(_summary(found))
    if found.count:
        return DIFFERENT
    if not found.responses:
        stderr.write_message(
            "mcp-trio: nothing was compared: no request has a whole response in both traces; record"
            " conversations in which the server answers"
        )
        return NOTHING_JUDGED
    return 0


def diff_document(found: TraceDiff) -> dict[str, Any]:
    """Return a comparison as members of a JSON document."""
    return {
        "compared": found.compared,
        "notCompared": found.not_compared,
        "count": found.count,
        "differences": [_difference_document(each) for each in found.differences],
    }


def show_diff(screen: Screen, found: TraceDiff) -> None:
    """Print the differences of a comparison."""
    for each in found.differences:
        where = _where(each)
        session = f" (session {each.session})" if each.session > 1 else ""
        part = f" the {each.part}" if each.kind in ("missing", "added") else ""
        screen.write_line(
            (each.kind, _STYLES.get(each.kind, "yellow")),
            f"{part}: {each.what}, {where}{session}",
        )
        if each.kind == "error code changed":
            screen.write_line(f"    {_code(each.old_code)} → {_code(each.new_code)}")
        for value in each.values[:_MAX_LINES]:
            screen.write_line(f"    {value.pointer}: {_change(value)}")
        if each.value_count > _MAX_LINES:
            screen.write_line(f"    and {each.value_count - _MAX_LINES} more")
    if found.count > len(found.differences):
        screen.write_line(f"... and {found.count - len(found.differences)} more")


def _summary(found: TraceDiff) -> str:
    partly = f", {found.not_compared} responses recorded in part" if found.not_compared else ""
    return f"{found.compared} requests in both, {found.count} differences{partly}"


def _where(each: TraceDifference) -> str:
    if not each.new_line:
        return f"line {each.old_line} of A"
    if not each.old_line:
        return f"line {each.new_line} of B"
    return f"line {each.old_line} of A, line {each.new_line} of B"


def _code(code: int | None) -> str:
    return "a result" if code is None else f"error {code}"


def _change(value: ChangedValue) -> str:
    if value.is_missing:
        return f"added {_short(value.new)}"
    if value.is_removed:
        return f"removed {_short(value.old)}"
    old, new = _json(value.old), _json(value.new)
    # Long values are shown from a little before the place where they differ.
    start = _common(old, new) - _CONTEXT
    if start > 0 and max(len(old), len(new)) > _MAX_VALUE:
        old, new = f"…{old[start:]}", f"…{new[start:]}"
    return f"{shorten_text(old, _MAX_VALUE)} → {shorten_text(new, _MAX_VALUE)}"


def _common(old: str, new: str) -> int:
    """Return the length of the texts' common beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(old), len(new)))


def _short(value: Any) -> str:
    return shorten_text(_json(value), _MAX_VALUE)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _difference_document(each: TraceDifference) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": each.kind,
        "part": each.part,
        "what": each.what,
        "from": each.sender,
        "session": each.session,
        "oldLine": each.old_line or None,
        "newLine": each.new_line or None,
    }
    if each.kind == "error code changed":
        found |= {"oldCode": each.old_code, "newCode": each.new_code}
    if each.values:
        found["valueCount"] = each.value_count
        found["values"] = [_value_document(value) for value in each.values]
    return found


def _value_document(value: ChangedValue) -> dict[str, Any]:
    found: dict[str, Any] = {"pointer": value.pointer}
    if not value.is_missing:
        found["old"] = value.old
    if not value.is_removed:
        found["new"] = value.new
    return found
