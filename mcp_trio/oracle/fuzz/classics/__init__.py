"""Classic cases: values and orders that have broken servers before, each kind with its source."""

from __future__ import annotations

from ._kinds import classic_cases as classic_cases
from ._table import CLASSIC_KINDS as CLASSIC_KINDS
from ._table import ClassicKind as ClassicKind

__all__ = ["CLASSIC_KINDS", "ClassicKind", "classic_cases"]
