"""The pictures of the documentation, drawn from tables.

`python -m docs.pictures` writes them to `docs/images/`. A test compares the files with what is
drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._states import draw_lifecycle, draw_request

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PICTURES"]

# The name of each file in `docs/images/`, and the function that returns its text.
PICTURES: Final[dict[str, Callable[[], str]]] = {
    "connection-states.svg": draw_lifecycle,
    "request-phases.svg": draw_request,
}
