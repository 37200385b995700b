"""The clients that hear of a server's changes, here and at other workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcp_core.protocol.subscriptions._server import Change

__all__ = ["ChangeBus", "ChangeListener", "ChangeListeners"]


class ChangeListener(Protocol):
    """The part of `mcp_core.runtime.Service` that a `Server` notifies of changes.

    Both methods may be called from any thread.
    """

    def changed(self, changes: Iterable[Change], /, *, all_resources: bool = False) -> None:
        """Notify the client of `changes`, as far as it is subscribed to them.

        With `all_resources`, the contents of each resource may have changed.
        """

    def elicitation_completed(self, elicitation_id: str, /) -> None:
        """Notify the client that its user has finished on a page, if it was sent there."""


class ChangeBus(Protocol):
    """The part of `mcp_core.runtime.sharing.WorkerBus` that a `Server` notifies of changes.

    Both methods may be called from any thread.
    """

    @property
    def store(self) -> object:
        """The store that the workers share."""

    @property
    def has_joined(self) -> bool:
        """True once it hears of changes at other workers."""

    def changed(self, changes: Iterable[Change], /) -> bool:
        """Share `changes` with other workers. Return True to notify this worker's clients itself.

        It does that soon, by `deliver_changes`.
        """

    def elicitation_completed(self, elicitation_id: str, /) -> None:
        """Tell other workers that a user has finished on a page."""


class ChangeListeners:
    """The listeners of one server.

    Another thread may attach or detach one at any time, so each loop has a copy.

    Args:
        name: the server's name, for errors.

    Attributes:
        clients: those that are served here. The server adds and removes them.
        buses: what shares changes with other workers, one for each time that the server is served
            with a store.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.clients: dict[ChangeListener, None] = {}
        self.buses: dict[ChangeBus, None] = {}

    def __repr__(self) -> str:
        return f"<ChangeListeners of {self._name!r}: {len(self.clients)}>"

    def __iter__(self) -> Iterator[ChangeListener]:
        return iter(list(self.clients))

    def add_bus(self, bus: ChangeBus) -> None:
        """Pass changes on to a bus, as the last one.

        Raises:
            ValueError: another bus has another store, whose workers would hear of nothing.
        """
        if any(other.store is not bus.store for other in list(self.buses)):
            raise ValueError(
                f"server {self._name!r} is served with another store already: pass the same"
                " store= object at each of its addresses"
            )
        others = {other: None for other in list(self.buses) if other is not bus}
        self.buses = {**others, bus: None}  # in one step: a thread may change something

    def discard_bus(self, bus: ChangeBus) -> None:
        """Stop passing changes on to a bus. Do nothing if it isn't here."""
        self.buses.pop(bus, None)

    def first_bus(self) -> list[ChangeBus]:
        """Return the bus that shares changes, or none."""
        buses = list(self.buses)
        return ([bus for bus in buses if bus.has_joined] or buses)[:1]

    def notify(self, changed: tuple[Change, ...]) -> None:
        """Notify all clients of changes, by the bus if there is one."""
        if self.buses and any(bus.changed(changed) for bus in self.first_bus()):
            return
        for listener in self:
            listener.changed(changed)
