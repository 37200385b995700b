"""A trace's last conversations, as many as fit in constant memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from .conversation._across import AcrossClients
from .conversation._conversation import ConversationState
from .conversation._http import SESSION

if TYPE_CHECKING:
    from mcp_core.trace._ids import GivenTexts

    from ._message import SeenMessage
    from ._sides import Side
    from .conversation._http import SeenExchange

__all__ = ["ConversationTable"]

MAX_CONVERSATIONS: Final = 1_000
MAX_KEPT_BYTES: Final = 32 * 1024 * 1024  # of the lists in all conversations


class ConversationTable:
    """A trace's last conversations.

    Args:
        observer: the side at which the trace was recorded, or "between".
        is_from_start: the first message of each conversation is known to be in the trace.
        server_versions: the revisions that the server is known to speak. Each conversation adds its
            own.
        given_states: the `requestState`s that the server gave out. Each conversation adds its own.
        is_ordered: False if the transport isn't known: see `ConversationState`.
    """

    def __init__(
        self,
        observer: str,
        *,
        is_from_start: bool,
        server_versions: set[str],
        given_states: GivenTexts,
        is_ordered: bool,
    ) -> None:
        self._observer = observer
        self._is_from_start = is_from_start
        self._server_versions = server_versions
        self._given_states = given_states
        self._is_ordered = is_ordered
        self._across = AcrossClients()
        self._states: OrderedDict[int, ConversationState] = OrderedDict()
        self._highest_dropped = 0
        self._spawned: set[int] = set()
        self._lost = ""
        self._kept_bytes = 0

    def get(self, number: int) -> ConversationState | None:
        """Return a conversation, or None if it isn't remembered."""
        return self._states.get(number)

    def find(self, number: int) -> ConversationState:
        """Return a conversation. Begin a new one if it isn't remembered."""
        state = self._states.get(number)
        if state is None:
            state = ConversationState(
                number,
                observer=self._observer,
                is_from_start=self._is_from_start or number in self._spawned,
                server_versions=self._server_versions,
                given_states=self._given_states,
                across=self._across,
                is_ordered=self._is_ordered,
            )
            if self._lost:
                state.lose(self._lost)
            if number <= self._highest_dropped:
                state.lose("there are too many conversations to remember")
            self._states[number] = state
            if len(self._states) > MAX_CONVERSATIONS:
                self._drop(next(iter(self._states)))
        return state

    def unread(self, side: Side) -> int:
        """Return how many messages of a side are unreadable or invalid, in all conversations."""
        return sum(state.unreadable[side] for state in self._states.values())

    def begin_session(self, state: ConversationState) -> ConversationState:
        """Replace a session's state by the state for the client's next session, and return that."""
        following = self._states[state.number] = state.next_session()
        self._kept_bytes -= state.lists.kept_bytes
        return following

    def receive(self, message: SeenMessage, state: ConversationState) -> None:
        """Update the state from a judged message. Forget conversations if lists take too much."""
        before = state.lists.kept_bytes
        state.receive(message)
        self._kept_bytes += state.lists.kept_bytes - before
        while self._kept_bytes > MAX_KEPT_BYTES and len(self._states) > 1:
            self._drop(next(each for each in self._states if each != state.number))

    def receive_head(self, exchange: SeenExchange, number: int) -> None:
        """Record a request of a conversation. If it names another client's session, so does that.

        What a session knows can then come from either client.
        """
        sent = exchange.headers.get(SESSION)
        given = None if sent is None else self._across.find_session(sent)
        if given is not None and given.conversation != number:
            owner = self._states.get(given.conversation)
            if owner is not None and owner.http.session == sent:
                owner.lose("another client uses the session")

    def spawn(self, number: int) -> None:
        """Record that a server's process was started: its conversation begins anew."""
        self._forget(number)
        self._spawned.add(number)

    def lose(self, reason: str) -> None:
        """Record that lines are missing from the trace, of any conversation."""
        self._lost = reason
        for state in self._states.values():
            state.lose(reason)

    def pop(self) -> ConversationState | None:
        """Forget the oldest conversation and return it, None if there isn't one."""
        return self._forget(next(iter(self._states))) if self._states else None

    def _drop(self, number: int) -> None:
        """Forget a conversation that may go on."""
        self._highest_dropped = max(self._highest_dropped, number)
        self._forget(number)

    def _forget(self, number: int) -> ConversationState | None:
        state = self._states.pop(number, None)
        if state is not None:
            self._kept_bytes -= state.lists.kept_bytes
        return state
