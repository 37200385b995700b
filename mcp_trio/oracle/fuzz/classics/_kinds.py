"""All classic cases for a target, the kinds one after the other."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from . import _features, _lifecycle, _lines, _messages, _streamable_http, _two_clients
from ._facts import TargetFacts
from ._table import CLASSIC_KINDS

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices

__all__ = ["classic_cases"]

# Importing them fills the table, in this order.
_MODULES: Final = (_features, _messages, _lifecycle, _streamable_http, _two_clients, _lines)


def classic_cases(choices: CaseChoices) -> list[Case]:
    """Return the classic cases for a target, the same in each run.

    The first case of each kind comes first, then the second ones, and so on: in a short run every
    kind has had its turn. A target without a feature has no cases of its kinds.

    Args:
        choices: what the target offers, and which of its tools may be called.
    """
    facts = TargetFacts(choices)
    made = [list(each.make(facts)) for each in CLASSIC_KINDS]
    rounds = itertools.zip_longest(*made)
    return [case for cases in rounds for case in cases if case is not None]
