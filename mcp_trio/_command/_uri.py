"""URIs of resources, as the user types them."""

from __future__ import annotations

import re
from typing import Final

from ._problem import CliError

__all__ = ["check_uri", "is_uri"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_VARIABLE: Final = re.compile(r"\{.*?\}")


def is_uri(word: str) -> bool:
    """Return True if `word` begins with a URI scheme (RFC 3986)."""
    return _SCHEME.match(word) is not None


def check_uri(uri: str) -> None:
    """Check that `uri` can be the URI of a resource.

    Raises:
        CliError: `uri` has no scheme, or is a URI template.
    """
    if not is_uri(uri):
        raise CliError(
            f"{uri!r} is not a URI: a URI begins with a scheme, as in tea://menu;"
            " `mcp-trio inspect` lists the resources"
        )
    if variable := _VARIABLE.search(uri):
        raise CliError(f"{uri} is a template: replace {variable[0]} by a value")
