"""Failures of a store in the log: one line for each cause and minute, not one for each try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core.tasks import TaskStoreError

if TYPE_CHECKING:
    from ._runtime import TaskRuntime

__all__ = ["StoreReports"]

_INTERVAL: Final = 60.0  # seconds between two lines about one cause
# How many causes get lines of their own. The text of an exception may differ each time: further
# causes share one line a minute.
_MAX_CAUSES: Final = 16
_OTHER: Final = ("other causes", "")


class StoreReports:
    """Logs why a store failed.

    Args:
        runtime: has the log and the time.
        expected: the store's own exception, which says all in its text.
    """

    def __init__(self, runtime: TaskRuntime, expected: type[Exception] = TaskStoreError) -> None:
        self._runtime = runtime
        self._expected = (expected, TimeoutError)
        # By cause: when it was logged last, and how often it was met since.
        self._causes: dict[tuple[str, str], tuple[float, int]] = {}

    def failed(self, name: str, exc: BaseException) -> None:
        """Log that `name` has raised `exc`, unless that was logged lately.

        Any exception but the store's own, or a `TimeoutError`, is logged with its traceback.
        """
        again = self._is_due((type(exc).__name__, str(exc)))
        if again is None:
            return
        if isinstance(exc, self._expected):
            self._runtime.warn(f"{name} failed: {exc}{again}")
        else:
            self._runtime.report_hook(f"{name}{again}", exc)

    def warn(self, text: str) -> bool:
        """Log `text`, unless that was done lately. Return True if it was logged now."""
        again = self._is_due(("", text))
        if again is not None:
            self._runtime.warn(f"{text}{again}")
        return again is not None

    def _is_due(self, cause: tuple[str, str]) -> str | None:
        """Return what to append to the line, None if there is to be no line."""
        now = self._runtime.monotonic()
        if cause not in self._causes and len(self._causes) >= _MAX_CAUSES:
            for known, (logged_at, _) in list(self._causes.items()):
                if now - logged_at >= _INTERVAL:
                    del self._causes[known]
            if len(self._causes) >= _MAX_CAUSES:
                cause = _OTHER
        if cause not in self._causes:
            self._causes[cause] = now, 0
            return ""
        logged_at, count = self._causes[cause]
        if now - logged_at < _INTERVAL:
            self._causes[cause] = logged_at, count + 1
            return None
        self._causes[cause] = now, 0
        return f" ({count} times more since the last line)" if count else ""
