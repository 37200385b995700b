"""The changes that one worker tells the others, and hears from them.

1. A change is a level: it means "read again". Changes merge, and no number of them grows a queue.
2. At most one publish is under way. One that has failed may have had its effect: its changes are
   published again, together with later ones, and may be heard twice.
3. Nothing is heard late without being noticed. A gap, or a store that has lost what it had, makes
   the worker ask what was missed. What the store doesn't know may be anything: then everything
   counts as changed.
4. A worker doesn't hear itself. It knows its own messages by its number and by what they say, since
   after an outage another worker may have got the same number.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from ._messages import ChangesPublished, TaskChanged, merged
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

    def join(self, place: WorkerPlace) -> None:
        """Take the number of `place`, which the store has given, and hear of what comes after it.

        A worker that has heard of messages of this epoch goes on where it was. For any other
        everything counts as changed.

        Raises:
            TypeError, ValueError: the store has given something else.
        """
        number, position = place
        if type(number) is not int or number < 1:
            raise ValueError(f"a worker's number is 1 or more, not {number!r}")
        if _checked(position).epoch != self.position.epoch:
            self.position = position
            self.missed_since = None
            self._hear(self._everything())
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
            self.position = last
            self.missed_since = None
            self._hear(self._everything())

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

    def publishing_failed(self) -> None:
        """Publish the message that was under way again, with what has changed meanwhile."""
        self._unpublished = merged((self._under_way, self._unpublished), self._server)
        self._under_way = self._nothing

    # -- Changes at other workers, to deliver ----------------------------------------------------

    def receive(self, batch: WorkerBatch) -> bool:
        """Take `batch`, the response to a read. Return True if it has brought anything.

        One that isn't after `position` brings nothing: it was on its way during a `join`.

        Raises:
            TypeError, ValueError: it isn't a batch.
        """
        if not isinstance(batch, WorkerBatch):
            raise TypeError(f"a read gives a WorkerBatch, not {type(batch).__name__}")
        position, messages = _checked(batch.position), list(batch.messages)
        if position <= self.position:
            return False
        for entry in messages:
            message = self._message_of(entry)
            if message is None:
                self._miss()
            else:
                self._receive(*message)
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
        elif not isinstance(message, ChangesPublished):
            raise TypeError(f"what was missed is ChangesPublished, not {type(message).__name__}")
        self._hear(message)
        self.missed_since = None

    def take_heard(self) -> ChangesPublished | None:
        """Return what has changed at other workers since the last call, or None."""
        if self._heard == self._nothing:
            return None
        heard, self._heard = self._heard, self._nothing
        return heard

    def _message_of(self, entry: Any) -> tuple[int, ChangesPublished | TaskChanged] | None:
        """Return an entry of a batch, None for a gap.

        What a store gives in place of a message may have been one, so it counts as a gap.
        """
        if not isinstance(entry, tuple) or len(entry) != 2 or type(entry[0]) is not int:
            return None
        return entry if isinstance(entry[1], ChangesPublished | TaskChanged) else None

    def _receive(self, worker: int, message: ChangesPublished | TaskChanged) -> None:
        if not isinstance(message, ChangesPublished) or message.server != self._server:
            return
        if worker == self.number and message in self._unheard:
            # Those before it were never stored: messages keep their order.
            while self._unheard.popleft() != message:
                pass
            return
        self._hear(message)

    def _miss(self) -> None:
        if self.missed_since is None:
            self.missed_since = self.position

    def _hear(self, message: ChangesPublished) -> None:
        self._heard = merged((self._heard, message), self._server)

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
