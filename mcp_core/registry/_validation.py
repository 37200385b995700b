"""Checks of declaration options: names, URIs, icons, keys of `_meta`.

What a peer must reject is an error. What only some peers reject is a warning, which points at the
line of the declaration. Nothing here runs during a call.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, get_args

from msgspec.structs import replace

from mcp_core._errors import UnencodableValue
from mcp_core._patterns import compile_on_first_use
from mcp_core.protocol.jsonrpc._unencodable import encode_exactly
from mcp_core.protocol.revisions._config import META_LABEL
from mcp_core.types import Annotations, Icon, Role

from ._errors import DeclarationError

__all__ = [
    "MAX_SHOWN",
    "check_annotations",
    "check_entry",
    "check_icons",
    "check_meta",
    "check_tool_name",
    "check_uri",
    "find_annotations_error",
    "plain_name",
    "time_text",
    "warn_author",
]

MAX_SHOWN: Final = 128  # characters of an unknown name that an error message repeats

_TOOL_NAME = compile_on_first_use(r"[A-Za-z0-9_.-]{1,128}")
# RFC 3986, section 3: a scheme, a colon, and nothing that has to be percent-encoded.
_URI = compile_on_first_use(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f-\x9f\"<>\\^`{|}]*")
_META_KEY = compile_on_first_use(
    rf"(?:{META_LABEL}(?:\.{META_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
)
_PACKAGE = __name__.rpartition(".")[0]


def warn_author(message: str) -> None:
    """Emit a `UserWarning` at the nearest caller outside this package."""
    level = 1
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        level += 1
        frame = frame.f_back
    warnings.warn(message, stacklevel=level)


def plain_name(name: Any) -> Any:
    """Return a name as a plain `str`. A member of an enum of texts shows itself otherwise."""
    return str.__str__(name) if isinstance(name, str) else name


def check_tool_name(name: str) -> None:
    """Warn about a name outside the grammar of server/tools, Tool Names.

    The name is legal, but some clients reject it.
    """
    if not _TOOL_NAME.fullmatch(name):
        warn_author(
            f"tool name {name!r} is not 1 to 128 characters of A-Z, a-z, 0-9, '_', '-' and '.'"
        )


def check_uri(uri: str, label: str) -> None:
    """Raise `DeclarationError` unless `uri` is an absolute URI (RFC 3986)."""
    if not _URI.fullmatch(uri):
        raise DeclarationError(
            f"{label}: {uri!r} is no URI; it begins with a scheme, as in 'notes://today', and white"
            " space and control characters are percent-encoded"
        )


def check_icons(icons: Sequence[Icon] | None, label: str) -> list[Icon] | None:
    """Return the icons as a list; None for no icon.

    Raises:
        DeclarationError: an icon's `src` is neither `https:` nor `data:`. Clients reject all other
            schemes.
    """
    for icon in icons or ():
        if not icon.src.lower().startswith(("https:", "data:")):
            raise DeclarationError(
                f"{label}: the icon {icon.src[:60]!r} is neither an https: nor a data: URI"
            )
    return list(icons) if icons else None


def check_annotations(annotations: Annotations | None, label: str) -> Annotations | None:
    """Return the annotations, with a `datetime` as `last_modified` converted to text.

    Raises:
        DeclarationError: the priority isn't from 0 to 1, `last_modified` isn't a time, or a role
            is unknown (schema, Annotations). Clients may reject the whole list for it.
    """
    if annotations is None:
        return None
    problem = find_annotations_error(annotations)
    if problem:
        raise DeclarationError(f"{label}: {problem}")
    if annotations.last_modified is None:
        return annotations
    return replace(annotations, last_modified=time_text(annotations.last_modified))


def find_annotations_error(annotations: Annotations) -> str:
    """Return what is wrong with annotations, and what is allowed; "" for valid ones."""
    priority = annotations.priority
    if priority is not None and not 0 <= priority <= 1:
        return f"the priority {priority!r} is not from 0 (optional) to 1 (needed)"
    audience: Any = annotations.audience
    if isinstance(audience, str) or not all(role in get_args(Role) for role in audience or ()):
        return f"the audience {audience!r} is not a list of 'user' and 'assistant'"
    try:
        if annotations.last_modified is not None:
            time_text(annotations.last_modified)
    except (TypeError, ValueError) as exc:
        return str(exc)
    return ""


def check_entry(entry: Any, label: str) -> None:
    """Raise `DeclarationError` if JSON cannot hold an entry of a list, such as its description."""
    try:
        encode_exactly(entry)
    except UnencodableValue as exc:
        raise DeclarationError(f"{label}: {exc}") from None


def time_text(value: datetime | str) -> str:
    """Return a time as ISO 8601 text, in UTC with `Z`. A text is returned unchanged.

    Raises:
        ValueError: a text isn't ISO 8601, or a `datetime` has no time zone.
        TypeError: the value is neither.
    """
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(
                f"lastModified {value!r} is no ISO 8601 time such as 2025-01-12T15:00:58Z"
            ) from None
        return value
    if not isinstance(value, datetime):
        raise TypeError(f"lastModified is a datetime or a text, not {type(value).__name__}")
    if value.tzinfo is None:
        raise ValueError(
            f"lastModified {value} has no time zone: use datetime.fromtimestamp(mtime, UTC)"
        )
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def check_meta(meta: Mapping[str, Any] | None, label: str) -> dict[str, Any] | None:
    """Return `_meta` as a dict, None if it is empty.

    Raises:
        DeclarationError: a key is outside the grammar of basic/index, `_meta`.
    """
    for key in meta or ():
        if not _META_KEY.fullmatch(key):
            raise DeclarationError(
                f"{label}: {key!r} is no key for _meta; keys are like 'example.com/name' or 'name'"
            )
    return dict(meta) if meta else None
