"""The rules of the judge, by subject. Importing this package fills the table of rules."""

from __future__ import annotations

from . import _features, _lifecycle, _messages, _rounds, _tasks, _utilities
from ._registry import RULES as RULES
from ._registry import Outcome as Outcome
from ._registry import Rule as Rule
from ._registry import RuleFailure as RuleFailure

__all__ = ["RULES", "Outcome", "Rule", "RuleFailure"]

_MODULES = (_messages, _lifecycle, _utilities, _features, _rounds, _tasks)
