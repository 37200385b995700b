"""The judge's rules, by subject. Importing this package fills the table of rules.

In a rule, `return None  # RPC-3` says that the rule for the row RPC-3 judges this case.
"""

from __future__ import annotations

from typing import Final

from . import (
    _eras,
    _errors,
    _features,
    _headers,
    _http,
    _lifecycle,
    _messages,
    _rounds,
    _streams,
    _tasks,
    _utilities,
)
from ._opportunity import OF_LINES
from ._opportunity import RowOpportunity as RowOpportunity
from ._opportunity import opportunity_of as opportunity_of
from ._registry import RULES as RULES
from ._registry import On as On
from ._registry import Outcome as Outcome
from ._registry import Rule as Rule
from ._registry import RuleFailure as RuleFailure
from ._registry import rules_for as rules_for
from ._registry import rules_for_message as rules_for_message
from ._shapes import META_ROWS, SHAPE_ROWS

__all__ = [
    "JUDGED_ROWS",
    "RULES",
    "On",
    "Outcome",
    "RowOpportunity",
    "Rule",
    "RuleFailure",
    "opportunity_of",
    "rules_for",
    "rules_for_message",
]

# All rows that the judge can judge.
JUDGED_ROWS: Final = (
    OF_LINES
    | {row for each in RULES for row in each.rows}
    | {row for patterns in SHAPE_ROWS.values() for _, rows in patterns for row in rows}
    | {row for _, rows in META_ROWS for row in rows}
)
_MODULES = (
    _messages,
    _lifecycle,
    _eras,
    _utilities,
    _features,
    _errors,
    _rounds,
    _tasks,
    _http,
    _headers,
    _streams,
)
