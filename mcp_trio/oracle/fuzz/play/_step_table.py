"""All steps by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ._ending import ENDING_STEPS
from ._opening import open_conversation
from ._reaction_steps import REACTION_STEPS
from ._request_steps import REQUEST_STEPS
from ._stress_steps import STRESS_STEPS
from ._unanswered import wait_for_all

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["STEPS"]

# The steps for every transport. A session has further ones for its own.
STEPS: Final[Mapping[str, Any]] = {
    "open": open_conversation,
    "wait": wait_for_all,
    **REQUEST_STEPS,
    **REACTION_STEPS,
    **ENDING_STEPS,
    **STRESS_STEPS,
}
