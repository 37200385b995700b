"""The faults that the user has accepted: an earlier report's findings, and ignored rows.

A baseline is the `report.json` of an earlier run. One of version 1 has no causes: it leaves out
each row and method that it names, as it did when it was written. From version 3 on, a case can have
a second client.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_core import escape_text
from mcp_core.trace import ROWS, row_family
from mcp_trio.oracle.fuzz._case import decode_case

from ._cause import Cause

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz._step_shapes import Side

__all__ = [
    "NO_BASELINE",
    "REPORT_FORMAT",
    "Baseline",
    "IgnoredRow",
    "cause_document",
    "check_version",
    "decode_report",
    "parse_ignored_row",
    "read_baseline",
    "read_ignored_rows",
]

REPORT_FORMAT: Final = 3
_FAMILIES: Final = frozenset(map(row_family, ROWS)) | {"crash", "hang", "endless"}
_ENTRY: Final = re.compile(r"(?P<row>[^\s:]+)(?::(?P<scope>\S+))?(?:\s+(?P<reason>\S.*))?")


class Baseline(Struct, frozen=True, kw_only=True):
    """The findings of an earlier report.

    Attributes:
        form: the report's version; 0 without a baseline.
        target: the name and version that the server or client gave.
        side: whose findings they are.
        causes: their causes, and those that its own baseline held.
        methods: row and method of each finding of version 1.
    """

    form: int = 0
    target: str = ""
    side: Side = "server"
    causes: frozenset[Cause] = frozenset()
    methods: frozenset[tuple[str, str]] = frozenset()

    def find_difference(self, side: str, target: str) -> str:
        """Return why the baseline doesn't fit a target, as a clause; empty if it does.

        Only the names are compared: another version of a server is what a baseline is for.
        """
        if not self.form:
            return ""
        if self.side != side:
            return f"it is of a {self.side}, and this is a {side}"
        if _name(self.target) != _name(target):
            return f"it is of {self.target or 'a target without a name'}, and this is {target}"
        return ""


NO_BASELINE: Final = Baseline()


class IgnoredRow(Struct, frozen=True, kw_only=True):
    """A row that the user ignores.

    Attributes:
        row: a row's id or family, `crash`, `hang` or `endless`. Its whole family is ignored.
        scope: only this method or tool; empty for all.
        reason: why, "" on the command line.
    """

    row: str
    scope: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.row}:{self.scope}" if self.scope else self.row

    def matches(self, fault: TargetFault, scopes: Collection[str]) -> bool:
        """Return True if the entry ignores a fault.

        Args:
            fault: the fault.
            scopes: the tools or methods that can have shown it. An entry with a scope ignores it
                only if it has the fault's method, or if there is no other one.
        """
        family = row_family(fault.row)
        if fault.kind == "hang":
            family = "hang"
        if row_family(self.row) != family:
            return False
        # A hang's method is the method of the probe after the case, not what hangs.
        own = "" if fault.kind == "hang" else fault.method
        return self.scope in ("", own) or set(scopes) == {self.scope}


def parse_ignored_row(text: str, invariants: Collection[str] = ()) -> IgnoredRow:
    """Return the entry `ROW[:METHOD|:TOOL]`, with a reason after a space if it has one.

    `invariants` are the names of invariants, each of which may be the row.

    Raises:
        ValueError: it isn't an entry, or there is no such row.
    """
    found = _ENTRY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not ROW, ROW:METHOD or ROW:TOOL")
    row = found["row"]
    known = [*ROWS, *_FAMILIES, *invariants]
    if row not in known:
        close = get_close_matches(row.upper(), known, 1) or get_close_matches(row, known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ValueError(f"there is no row {row}{hint}")
    return IgnoredRow(row=row, scope=found["scope"] or "", reason=found["reason"] or "")


def read_ignored_rows(text: str, invariants: Collection[str] = ()) -> list[IgnoredRow]:
    """Return the entries of a file: one a line, with its reason. `#` begins a comment's line.

    Raises:
        ValueError: a line isn't an entry, or has no reason.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entry = parse_ignored_row(line, invariants)
        except ValueError as exc:
            raise ValueError(f"line {number}: {exc}") from exc
        if not entry.reason:
            raise ValueError(f"line {number}: {entry} has no reason: write one after it")
        found.append(entry)
    return found


def cause_document(cause: Cause) -> dict[str, str]:
    """Return a cause as JSON."""
    return {"family": cause.family, "shape": cause.shape, "scope": cause.scope}


def check_version(form: Any, other_cure: str) -> int:
    """Return a report's version.

    Args:
        form: the member `version` of the report.
        other_cure: what else can be done than to update this package.

    Raises:
        ValueError: it isn't a version, or is a newer one.
    """
    if type(form) is not int or form < 1:
        raise ValueError(f"its version is {json.dumps(form)[:20]}, not a number")
    if form > REPORT_FORMAT:
        raise ValueError(
            f"it is of version {form}, and this mcp-trio reads up to {REPORT_FORMAT}: update"
            f" mcp-trio, or {other_cure}"
        )
    return form


def decode_report(data: bytes) -> Any:
    """Return the JSON value of a report's file.

    Raises:
        ValueError: it isn't JSON.
    """
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError as exc:
        raise ValueError(f"it is not UTF-8 text: byte {exc.start} is wrong") from exc
    except json.JSONDecodeError as exc:
        is_cut = exc.pos >= len(exc.doc.rstrip()) or exc.msg.startswith("Unterminated")
        what = "it is cut off" if is_cut else "it is not JSON"
        raise ValueError(f"{what}: {exc.msg} in line {exc.lineno}") from exc
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc


def read_baseline(data: bytes) -> Baseline:
    """Return the findings of a report.

    Args:
        data: the content of a `report.json`.

    Raises:
        ValueError: it isn't a whole report, or is of a newer version.
    """
    document = decode_report(data)
    if not isinstance(document, dict) or "seed" not in document or "trace" in document:
        raise ValueError("it is not a report of `mcp-trio fuzz`: give the report.json of a run")
    form = check_version(document.get("version", 1), "write a new baseline")
    side: Side = "client" if "client" in document else "server"
    findings = _list(document, "findings")
    is_first = form == 1
    return Baseline(
        form=form,
        target=str(document.get(side, "")),
        side=side,
        causes=frozenset() if is_first else frozenset(_causes(document, findings, side)),
        methods=frozenset(_methods(findings) if is_first else _pairs(document, "known_methods")),
    )


def _methods(findings: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield the row and each method of the findings of version 1."""
    for place, each in enumerate(findings):
        where = f"findings[{place}]"
        row = _text(each, "row", where)
        for method in (each.get("method", ""), *_list(each, "also", where)):
            yield row, str(method)


def _causes(document: dict[str, Any], findings: list[Any], side: Side) -> Iterator[Cause]:
    """Yield the causes of the findings, and those that the run's own baseline held."""
    for place, each in enumerate(findings):
        where = f"findings[{place}]"
        cause = _cause(each.get("cause") if isinstance(each, dict) else each, f"{where}.cause")
        _check_steps(each.get("steps", []), where, side)
        if each.get("cause_is_unclear") is not True:
            yield cause
        for at, other in enumerate(_list(each, "further_causes", where)):
            yield _cause(other, f"{where}.further_causes[{at}]")
        for at, other in enumerate(_list(each, "also_causes", where)):
            found = _cause(other, f"{where}.also_causes[{at}]")
            # No play has confirmed it: it isn't known of a tool, nor of what ends a process.
            if not found.is_of_tool and found.family not in ("crash", "hang"):
                yield found
    for place, each in enumerate(_list(document, "known")):
        yield _cause(each, f"known[{place}]")


def _check_steps(steps: Any, where: str, side: Side) -> None:
    try:
        decode_case(steps, side)
    except ValueError as exc:
        raise ValueError(f"it was edited: {where}.steps is no case: {exc}") from exc


def _cause(value: Any, where: str) -> Cause:
    family = _text(value, "family", where)
    if family not in _FAMILIES and not family.isidentifier():  # an invariant's name is one
        raise ValueError(
            f"it was edited: {where}.family is {escape_text(family[:40])}, and there is no such row"
        )
    return Cause(family, _text(value, "shape", where), _text(value, "scope", where))


def _text(value: Any, name: str, where: str) -> str:
    """Return a member that must be a text."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, str) or not found:
        raise ValueError(f"it was edited: {where} has no text {name!r}")
    return found


def _list(value: Any, name: str, where: str = "") -> list[Any]:
    """Return a member that must be a list. Only the whole report's list is required."""
    found = value.get(name, None if not where and name == "findings" else [])
    if not isinstance(found, list):
        place = f"{where}.{name}" if where else name
        raise ValueError(f"it was edited: {place} is not a list")
    return found


def _pairs(document: dict[str, Any], name: str) -> list[tuple[str, str]]:
    pairs = _list(document, name)
    for place, each in enumerate(pairs):
        if not isinstance(each, list) or [type(one) for one in each] != [str, str]:
            raise ValueError(f"it was edited: {name}[{place}] is not a row and a method")
    return [(row, method) for row, method in pairs]


def _name(target: str) -> str:
    """Return the name in a target's name and version."""
    return target.rpartition(" ")[0] or target
