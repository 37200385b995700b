"""A trace's values, and the values that replace them in a live conversation.

1. A server makes up some values for each conversation: cursors, task ids, `requestState` and the
   names of input requests. The client sends them back, so a replayed client sends the live ones.
2. Any other text that looks like an id, and differs at the same place in the same result, counts as
   an id, too. One tool may return an id that another tool takes.
3. A trace may have a pseudonym for a value. The live value replaces the pseudonym.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ._volatile import may_be_id

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ValueMapping"]

# By member of a result: the member of params in which the client sends its value back.
_NAMED: Final[Mapping[str, str]] = {
    "nextCursor": "cursor",
    "taskId": "taskId",
    "requestState": "requestState",
}
_INPUT_REQUESTS: Final = "inputRequests"
_INPUT_RESPONSES: Final = "inputResponses"
_MAX_VALUES: Final = 100_000
_MAX_DEPTH: Final = 100


class ValueMapping:
    """Recorded values and the live values that replace them."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], Any] = {}
        self._ids: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<ValueMapping of {len(self._named) + len(self._ids)} values>"

    def learn_result(self, method: str, recorded: Any, live: Any) -> None:
        """Compare a recorded result of `method` with the live one, and keep the differences."""
        # Entries of lists may come in another order.
        self.learn(recorded, live, with_ids=not method.endswith("/list"))

    def learn(self, recorded: Any, live: Any, depth: int = 0, *, with_ids: bool = True) -> None:
        """Compare a recorded result or params with the live ones, and keep the differences.

        If `with_ids` is False, keep only values that the protocol defines.
        """
        if depth > _MAX_DEPTH or len(self._ids) + len(self._named) > _MAX_VALUES:
            return
        if isinstance(recorded, dict) and isinstance(live, dict):
            for key, value in recorded.items():
                if key not in live:
                    continue
                if key in _NAMED and isinstance(value, str):
                    self._named[_NAMED[key], value] = live[key]
                elif key == _INPUT_REQUESTS:
                    self._learn_keys(value, live[key], depth)
                else:
                    self.learn(value, live[key], depth + 1, with_ids=with_ids)
        elif isinstance(recorded, list) and isinstance(live, list):
            for value, other in zip(recorded, live, strict=False):
                self.learn(value, other, depth + 1, with_ids=with_ids)
        elif (
            with_ids
            and isinstance(recorded, str)
            and isinstance(live, str)
            and recorded != live
            and may_be_id(recorded)
            and may_be_id(live)
        ):
            self._ids[recorded] = live

    def _learn_keys(self, recorded: Any, live: Any, depth: int) -> None:
        """Keep the names of input requests, matched by method in their order."""
        if not isinstance(recorded, dict) or not isinstance(live, dict):
            return
        left = [key for key in live if key not in recorded]
        for key, value in recorded.items():
            if key in live:
                self.learn(value, live[key], depth + 1)
                continue
            method = value.get("method") if isinstance(value, dict) else None
            for other in left:
                found = live[other]
                if isinstance(found, dict) and found.get("method") == method:
                    self._keys[key] = other
                    self.learn(value, found, depth + 1)
                    left.remove(other)
                    break

    def apply(self, value: Any, depth: int = 0) -> Any:
        """Return params or a result with live values in place of the recorded ones."""
        if depth > _MAX_DEPTH:
            return value
        if isinstance(value, dict):
            return {
                key: each if key == "name" else self._member(key, each, depth)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self.apply(each, depth + 1) for each in value]
        return self._ids.get(value, value) if isinstance(value, str) else value

    def _member(self, key: str, value: Any, depth: int) -> Any:
        if isinstance(value, str) and (key, value) in self._named:
            return self._named[key, value]
        if key == _INPUT_RESPONSES and isinstance(value, dict):
            return {
                self._keys.get(name, name): self.apply(each, depth + 1)
                for name, each in value.items()
            }
        return self.apply(value, depth + 1)
