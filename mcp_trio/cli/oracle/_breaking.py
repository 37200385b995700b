"""`mcp-trio diff --breaking A B`: which differences in what a server offers break its users."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from msgspec import structs

from mcp_core.contract import Contract, InvalidContract, compare_contracts, offers_of_lists
from mcp_core.trace import recorded_offers
from mcp_trio.cli._errors import NOTHING_JUDGED, CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.use._contract import changes_document, contract_status, show_changes

from ._trace_file import load_trace_file

if TYPE_CHECKING:
    from mcp_core.trace import RecordedTrace

__all__ = ["diff_breaking"]


def diff_breaking(old: str, new: str, *, allow_unclear: bool, as_json: bool) -> int:
    """Print what has changed in the lists of the traces `old` and `new`; return the exit status.

    Args:
        old: the first file.
        new: the second one.
        allow_unclear: whether unclear changes are no failure.
        as_json: print one JSON document.

    Returns:
        0 if nothing breaks, 1 if something does or may, 4 if no list is in both traces.

    Raises:
        CliError: a file cannot be read or isn't a trace, or what it has cannot be compared.
    """
    stderr, stdout = Screen(sys.stderr), Screen(sys.stdout)
    try:
        first, second = (_contract(load_trace_file(each, stderr)) for each in (old, new))
    except InvalidContract as exc:
        raise CliError(str(exc), NOTHING_JUDGED) from exc
    # A trace has the revisions that its clients asked for, not all that the server speaks.
    common = [revision for revision in first.offers if revision in second.offers]
    revisions = [", ".join(each.offers) for each in (first, second)]
    first, second = (
        structs.replace(each, offers={name: each.offers[name] for name in common})
        for each in (first, second)
    )
    compared = sorted(
        {
            name
            for revision in common
            for name in first.offers[revision].lists
            if name in second.offers[revision].lists
        }
    )
    changes = compare_contracts(first, second) if compared else []
    if as_json:
        stdout.write_json(
            {"old": old, "new": new, "compared": compared, **changes_document(changes)}
        )
    elif compared:
        show_changes(stdout, changes, first.offers.keys())
    if not compared:
        why = (
            f"the lists are of different revisions, {revisions[0]} in {old}, {revisions[1]} in"
            f" {new}: record both with one --revision"
            if all(revisions) and not common
            else "no list was read to its end in both traces"
        )
        stderr.write_message(
            f"mcp-trio: nothing was compared: {why}; `mcp-trio inspect --record FILE` records all"
            " lists"
        )
        return NOTHING_JUDGED
    return contract_status(changes, allow_unclear=allow_unclear)


def _contract(trace: RecordedTrace) -> Contract:
    found = recorded_offers(trace)
    return Contract(
        server=next((each.server for each in found if each.server), ""),
        offers={
            each.revision: offers_of_lists(
                each.lists, capabilities=each.capabilities, instructions=each.instructions
            )
            for each in found
        },
    )
