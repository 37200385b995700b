"""A load whose turn can be ended before its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import trio

    from ._tally import Tally

__all__ = ["NurseryLoad"]


class NurseryLoad:
    """A load whose callers are tasks of one nursery. Its scope, once cancelled, ends the turn."""

    # What is being measured now, with the scope of the callers.
    _measured: tuple[Tally, trio.CancelScope] | None = None

    def cut(self) -> bool:
        """End the turn now. Return False if none is being measured."""
        if self._measured is None:
            return False
        tally, scope = self._measured
        tally.is_cut = True
        scope.cancel()
        return True
