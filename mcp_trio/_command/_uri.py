"""URIs of resources, as somebody typed them."""

from __future__ import annotations

import re
from typing import Final

from ._problem import Problem

__all__ = ["check_uri", "is_uri"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_VARIABLE: Final = re.compile(r"\{.*?\}")


def is_uri(word: str) -> bool:
    """Whether a word is meant as a URI."""
    return _SCHEME.match(word) is not None


def check_uri(uri: str) -> None:
    """Make sure that it is the URI of a resource.

    Raises:
        Problem: it is none, or a template of some.
    """
    if not is_uri(uri):
        raise Problem(
            f"{uri!r} is no URI: it begins with a scheme, as in tea://menu; `mcp-trio inspect` lists the resources"
        )
    if variable := _VARIABLE.search(uri):
        raise Problem(f"{uri} is a template: put a value in the place of {variable[0]}")
