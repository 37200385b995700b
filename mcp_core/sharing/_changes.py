"""The changes that one worker tells the others, and hears from them.

1. A change is a level: it means "read again". Changes merge, and no number of them grows a queue.
2. At most one publish is under way. One that has failed may have had its effect: its changes are
   published again, together with later ones, and may be heard twice.
3. Nothing is heard late without being noticed. A gap, or a store that has lost what it had, makes
   the worker ask what was missed. What the store doesn't know may be anything: then everything
   counts as changed. One loss isn't noticed: a store that has lost messages and has given their
   numbers to as many others before the next heartbeat.
4. A worker doesn't hear itself. It knows its own messages by its number and by what they say, since
   after an outage another worker may have got the same number.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from ._messages import ChangesPublished, WorkerMessage, is_well_formed, merged
from ._store import Position, WorkerBatch, WorkerPlace

__all__ = ["SharedChanges"]

# How many of its own messages a worker expects to hear. It hears each within some milliseconds;
# one that was forgotten is only a change that its own clients are notified of twice.
_MAX_UNHEARD: Final = 1_000


class SharedChanges:
    """The changes that one worker of the server with the name `server` shares with the others.

    Attributes:
        number: the worker's number, 0 while it has none.
        position: the last message that it has heard. Read from there.
        missed_since: ask the store what was published after this position, and pass the answer to
            `receive_missed`, before the next read. None if nothing was missed.
    """

    def __init__(self, server: str) -> None:
        self.number = 0
        self.position = Position(-1, 0)  # of no store's epoch
        self.missed_since: Position | None = None
        self._server = server
        self._nothing = ChangesPublished(server)
        self._unpublished = self._nothing
        self._under_way = self._nothing
        self._heard = self._nothing
        # Own messages that were published and are still to be heard, oldest first.
        self._unheard: deque[ChangesPublished] = deque(maxlen=_MAX_UNHEARD)

    def __repr__(self) -> str:
        return f"<SharedChanges of {self._server!r}, worker {self.number} at {self.position}>"

    # -- Membership ------------------------------------------------------------------------------

    def join(self, place: WorkerPlace, sent_at: Position) -> None:
        """Take the number of `place`, which the store has given, and hear of what comes after it.

        A worker that has heard of messages of this epoch goes on where it was. For any other
        everything counts as changed, and also if the store has lost messages since: if `place` is
        before `sent_at`, which is `position` when the join was sent.

        Raises:
            TypeError, ValueError: the store has given something else.
        """
        number, position = place
        if type(number) is not int or number < 1:
            raise ValueError(f"a worker's number is 1 or more, not {number!r}")
        if _checked(position).epoch != self.position.epoch or position < sent_at:
            self._begin_at(position)
        self.number = number
        self._unheard.clear()

    def lose_number(self) -> None:
        """Publish nothing until the next `join`: another worker has the number."""
        self.number = 0

    def receive_heartbeat(self, last: Position, sent_at: Position) -> None:
        """Take `last`, the store's last message, as the response to a heartbeat.

        `sent_at` is `position` when it was sent. A store whose last message is before that has lost
        some, as after a failover to a replica. It gives their numbers to other messages, so this
        worker goes back, and everything counts as changed.

        Raises:
            TypeError: it isn't a position.
        """
        if _checked(last) < sent_at:
            self._begin_at(last)

    # -- Local changes, to publish ---------------------------------------------------------------

    def add(self, change: ChangesPublished) -> None:
        """Add `change`, a local one, which is to be published."""
        self._unpublished = merged((self._unpublished, change), self._server)

    @property
    def has_unpublished(self) -> bool:
        """True if there is something to publish, or being published."""
        return self._unpublished != self._nothing or self._under_way != self._nothing

    def start_publishing(self) -> ChangesPublished | None:
        """Return the message to publish now, or None.

        Until `published` or `publishing_failed` is called, there is no other.
        """
        if not self.number or self._unpublished == self._nothing:
            return None
        if self._under_way != self._nothing:
            return None
        self._under_way, self._unpublished = self._unpublished, self._nothing
        # Before it is sent: it may be heard before the store has confirmed it.
        self._unheard.append(self._under_way)
        return self._under_way

    def published(self) -> None:
        """Take note that the store has the message that was under way."""
        self._under_way = self._nothing

    def publishing_refused(self) -> None:
        """Give up the message that was under way, which can't be sent: all counts as changed.

        If that can't be sent either, nothing is left to publish of it.
        """
        refused, self._under_way = self._under_way, self._nothing
        if refused != self._everything():
            self.add(self._everything())

    def publishing_failed(self) -> None:
        """Publish the message that was under way again, with what has changed meanwhile."""
        self._unpublished = merged((self._under_way, self._unpublished), self._server)
        self._under_way = self._nothing

    # -- Changes at other workers, to deliver ----------------------------------------------------

    def receive(self, batch: WorkerBatch, asked: Position) -> bool:
        """Take `batch`, the response to a read. Return True if it has brought anything.

        `asked` is `position` when the read began. If that has moved meanwhile, such as by a `join`,
        the batch brings nothing, and neither does one that isn't after `position`.

        Raises:
            TypeError, ValueError: it isn't a batch.
        """
        if not isinstance(batch, WorkerBatch):
            raise TypeError(f"a read gives a WorkerBatch, not {type(batch).__name__}")
        messages: list[Any] = list(batch.messages)
        position = _checked(batch.position)
        if asked != self.position or position <= self.position:
            return False
        heard: list[ChangesPublished] = []
        for entry in messages:
            message = self._message_of(entry)
            if message is None:
                self._miss()
            elif isinstance(message, ChangesPublished) and self._is_from_others(entry[0], message):
                heard.append(message)
        self._hear(*heard)
        if position.epoch != self.position.epoch:
            self._miss()  # also if the store has noticed no gap
        self.position = position
        return True

    def receive_missed(self, message: ChangesPublished | None) -> None:
        """Take `message`, the store's response about `missed_since`.

        Raises:
            TypeError: it isn't a message.
        """
        if message is None:
            message = self._everything()
        elif type(message) is not ChangesPublished or not is_well_formed(message):
            raise TypeError(f"what was missed is ChangesPublished, not {message!r:.200}")
        self._hear(message)
        self.missed_since = None

    def take_heard(self) -> ChangesPublished | None:
        """Return what has changed at other workers since the last call, or None."""
        if self._heard == self._nothing:
            return None
        heard, self._heard = self._heard, self._nothing
        return heard

    def _message_of(self, entry: Any) -> WorkerMessage | None:
        """Return the message of an entry of a batch, None for a gap.

        What a store gives in place of a message may have been one, so it counts as a gap.
        """
        if not isinstance(entry, tuple) or len(entry) != 2 or type(entry[0]) is not int:
            return None
        message: Any = entry[1]
        return message if is_well_formed(message) else None

    def _is_from_others(self, worker: int, message: ChangesPublished) -> bool:
        if message.server != self._server:
            return False
        if worker != self.number or message not in self._unheard:
            return True
        # Those before it were never stored: messages keep their order.
        while self._unheard.popleft() != message:
            pass
        return False

    def _begin_at(self, position: Position) -> None:
        self.position = position
        self.missed_since = None
        self.miss_all()

    def miss_all(self) -> None:
        """Count everything as changed."""
        self._hear(self._everything())

    def _miss(self) -> None:
        if self.missed_since is None:
            self.missed_since = self.position

    def _hear(self, *messages: ChangesPublished) -> None:
        if messages:
            self._heard = merged((self._heard, *messages), self._server)

    def _everything(self) -> ChangesPublished:
        return ChangesPublished(
            self._server, lists=("tools", "prompts", "resources"), all_uris=True
        )


def _checked(position: Any) -> Position:
    """Return `position`, which a store has given.

    Raises:
        TypeError: it isn't a position.
    """
    if not isinstance(position, Position) or {*map(type, position)} != {int}:
        raise TypeError(f"a position has two integers, not {position!r}")
    return position
