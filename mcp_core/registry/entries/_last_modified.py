"""`lastModified` of resources: a time, or a function that returns the present one for each list.

Source: server/resources, Annotations; since 2025-06-18.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from mcp_core.registry._errors import DeclarationError
from mcp_core.registry._validation import time_text
from mcp_core.registry.functions._function import inspect_function, runs_in_thread
from mcp_core.types import Annotations, Resource, ResourceTemplate

if TYPE_CHECKING:
    from mcp_core.protocol.revisions._dialects import Dialect

__all__ = ["LastModified", "OnError", "PresentTime", "with_last_modified"]

LastModified: TypeAlias = datetime | str | Callable[[], datetime | str | None]
OnError: TypeAlias = Callable[[str, Exception], object]  # gets the name of what has failed


class PresentTime:
    """The function that returns the `lastModified` of one resource.

    Raises:
        DeclarationError: it takes arguments, or is an `async def`.
    """

    __slots__ = ("_call", "_label", "thread")

    def __init__(
        self, function: Callable[[], datetime | str | None], label: str, thread: bool, threads: bool
    ) -> None:
        found = inspect_function(function, returns=False)
        if found.is_async or found.parameters or found.context:
            raise DeclarationError(
                f"{label}: last_modified is a plain function without parameters, not {found.label}"
            )
        self._call = function
        self._label = label
        self.thread = runs_in_thread(found, thread or None, threads)

    def __repr__(self) -> str:
        return f"<last_modified of {self._label}>"

    def apply_to(
        self, entry: Resource | ResourceTemplate, dialect: Dialect, on_error: OnError
    ) -> Resource | ResourceTemplate:
        """Return `entry` with the present time, without one if the function has none or fails."""
        if dialect.lacks(Annotations, "last_modified"):
            return entry
        try:
            value = self._call()
            text = None if value is None else time_text(value)
        except Exception as exc:  # noqa: BLE001 - one resource must not end the list of all
            on_error(repr(self)[1:-1], exc)
            return entry
        if text is None:
            return entry
        annotations = entry.annotations or Annotations()
        return replace(entry, annotations=replace(annotations, last_modified=text))


def with_last_modified(
    annotations: Annotations | None, value: Any, label: str
) -> Annotations | None:
    """Return a declaration's annotations, with the time that was given beside them.

    Raises:
        DeclarationError: there are two times, or it isn't a time.
    """
    if value is None:
        return annotations
    if annotations is not None and annotations.last_modified is not None:
        raise DeclarationError(f"{label}: lastModified is given twice; leave one of them out")
    if callable(value):
        return annotations
    try:
        text = time_text(value)
    except (TypeError, ValueError) as exc:
        raise DeclarationError(f"{label}: {exc}") from None
    return replace(annotations or Annotations(), last_modified=text)
