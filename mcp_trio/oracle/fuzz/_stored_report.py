"""The last report in a run's folder: which cases are played first, and which findings are kept.

A finding whose case cannot be played shows neither that its fault is still there nor that it is
repaired. So the next report keeps it unchanged, and a note names it and the cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from mcp_trio._files import read_regular_file

from ._case import decode_case
from ._report import REPORT
from ._step_shapes import MAX_LEVELS, CaseError, is_json
from .causes._baseline import REPORT_FORMAT, check_version, decode_report
from .invariants._stored import needed_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from ._case import Case
    from ._step_shapes import Side

__all__ = ["StoredReport", "read_stored"]

_MAX_REPORT: Final = 64 * 1024 * 1024  # bytes; a finding has some KiB
_MORE_LEVELS: Final = 10  # of a report around a value of a case
_MAX_NOTES: Final = 20  # of reasons
_MAX_NAMES: Final = 3  # findings that a note names
_SHOWN: Final = 60  # characters of a row


class StoredReport(Struct):
    """The last report in a folder, as a run reads it.

    Attributes:
        cases: those that the run plays first, which shows which faults are repaired. Cases that
            the run before has not played come last.
        kept: what the run can't play as a whole, as the next report has it.
        notes: why, with the places of the findings in the last report.
    """

    cases: list[Case] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_stored(
    folder: Path,
    side: Side = "server",
    *,
    known: Collection[str] = (),
    lacks: Callable[[Case], str] = lambda case: "",
) -> StoredReport:
    """Return the cases and findings of the last report in a folder; none if there is no report.

    Args:
        folder: the folder.
        side: whom the run is about.
        known: the names that the author's file declares. Cases that need others are kept.
        lacks: returns why this run can't play a whole case, as a clause; empty if it can. Such a
            case is kept, and is among `cases` as well: a part of it may be played.

    Raises:
        OSError: the report cannot be read.
        ValueError: it isn't a report. Its findings would be lost with the next one.
    """
    try:
        data, _ = read_regular_file(folder / REPORT, max_size=_MAX_REPORT)
    except FileNotFoundError:
        return StoredReport()
    document = decode_report(data)
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise ValueError("it is not a report of `mcp-trio fuzz`: its findings are not a list")
    if not is_json(document, MAX_LEVELS + _MORE_LEVELS):
        raise ValueError("it is nested too deeply")
    found = StoredReport()
    reasons: dict[str, list[str]] = {}
    for name, entry in _entries(document):
        form = _form_of(entry, document)
        case, reason = _read_entry(entry, form, side, known)
        if case is not None and not reason:
            found.cases.append(case)
            reason = lacks(case)
        if reason:
            found.kept.append(_marked(entry, form))
            reasons.setdefault(reason, []).append(name)
    found.notes = list(_notes(reasons))
    return found


def _entries(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield a report's findings and cases with their names. A case is a finding with steps alone.

    Raises:
        ValueError: a member of the report is not a list.
    """
    for member in ("findings", "kept", "unplayed"):
        entries = document.get(member, [])
        if not isinstance(entries, list):
            raise ValueError(f"it was edited: {member} is not a list")
        for place, entry in enumerate(entries):
            row = entry.get("row") if isinstance(entry, dict) else None
            name = f"{member}[{place}]" + (f" ({row[:_SHOWN]})" if isinstance(row, str) else "")
            yield name, {"steps": entry} if member == "unplayed" else entry


def _form_of(entry: Any, document: dict[str, Any]) -> Any:
    """Return the version of the report that an entry was first in."""
    form = document.get("version", 1)
    return entry.get("version", form) if isinstance(entry, dict) else form


def _marked(entry: Any, form: Any) -> Any:
    """Return an entry as the next report keeps it: unchanged, unless it is of a newer version."""
    is_known = type(form) is int and 1 <= form <= REPORT_FORMAT
    return entry if is_known or not isinstance(entry, dict) else {**entry, "version": form}


def _read_entry(
    entry: Any, form: Any, side: Side, known: Collection[str]
) -> tuple[Case | None, str]:
    """Return an entry's case, None for none, and why it can't be played, as a clause."""
    try:
        check_version(form, "give another folder with --output")
        if not isinstance(entry, dict):
            raise CaseError("it is not an object")
        case = decode_case(entry.get("steps"), side)
    except ValueError as exc:
        return None, str(exc)
    invariant = str(entry.get("row", "")) if entry.get("kind") == "invariant" else ""
    needed = needed_names(case, invariant)
    if needed.issubset(known):
        return case, ""
    return case, f"--invariants FILE is needed, with {', '.join(sorted(needed))}"


def _notes(reasons: dict[str, list[str]]) -> Iterator[str]:
    """Yield a note for each of the first reasons, with the findings that it keeps from a play."""
    for place, (reason, names) in enumerate(reasons.items()):
        if place == _MAX_NOTES:
            more = sum(map(len, [*reasons.values()][place:]))
            yield f"{more} more findings of the last report stay in this one"
            return
        shown = ", ".join(names[:_MAX_NAMES])
        if len(names) > _MAX_NAMES:
            shown += f" and {len(names) - _MAX_NAMES} more"
        stay = "stays" if len(names) == 1 else "stay"
        yield f"{shown} of the last report cannot be played, and {stay} in this one: {reason}"
