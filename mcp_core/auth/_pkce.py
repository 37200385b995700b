"""Random values of an authorization request: `state`, PKCE verifier and its challenge (RFC 7636).

The method is S256 (section 4.2). `plain` is not implemented.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ._jose import base64url
from ._secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["challenge_of", "new_secret"]

# 256 bits. base64url writes them as 43 characters, the shortest verifier that RFC 7636 allows.
_SECRET_SIZE: Final = 32


def new_secret(entropy: Callable[[int], bytes]) -> Secret:
    """Return a new PKCE verifier, `state` or identifier.

    `entropy` returns that many random bytes. It must be fit for secrets.
    """
    return Secret(base64url(entropy(_SECRET_SIZE)))


def challenge_of(verifier: Secret) -> str:
    """Return the S256 code challenge of `verifier`."""
    return base64url(sha256(verifier.reveal().encode()).digest())
