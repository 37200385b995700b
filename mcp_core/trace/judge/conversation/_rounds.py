"""A conversation's `requestState`s: which request a retry continues."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._ids import text_key

from ._bounds import put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace._ids import GivenTexts
    from mcp_core.trace.judge._message import SeenMessage, SeenRequest

__all__ = ["Rounds"]

MAX_ROUNDS: Final = 1_000  # `requestState`s that are remembered with their requests
MAX_ROUND_BYTES: Final = 65_536  # of a result that is remembered with its `requestState`


class Rounds:
    """A conversation's rounds of input requests.

    Attributes:
        given: the `requestState`s that servers gave out in all of a trace's conversations.
    """

    def __init__(self, given: GivenTexts) -> None:
        self.given = given
        # None if several requests got the state.
        self._requests: OrderedDict[str, SeenRequest | None] = OrderedDict()

    def request_of(self, params: Mapping[str, Any]) -> SeenRequest | None:
        """Return the request whose `requestState` is repeated in params, or None if unknown."""
        found = params.get("requestState")
        return self._requests.get(text_key(found)) if isinstance(found, str) else None

    def receive(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        """Record an `input_required` result."""
        request.result = result if message.size <= MAX_ROUND_BYTES else None
        state = result.get("requestState")
        if not isinstance(state, str):
            return
        # A server can give the same state to several requests. Then a retry can be of any of them.
        # The exception is a retry that got back the state that it had sent.
        key = text_key(state)
        is_of_one = key not in self._requests or (
            self._requests[key] is not None and request.params.get("requestState") == state
        )
        put(self._requests, key, request if is_of_one else None, MAX_ROUNDS)
