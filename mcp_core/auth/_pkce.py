"""The three values that nobody else can guess: the PKCE verifier, its challenge, and the state of an authorization request.

Rules of this file:

1. Randomness is `entropy`, handed in; 32 bytes for each value, so that a verifier has 43 characters and 256 bits.
2. The method is S256. `plain` does not exist here.

Source: RFC 7636 sections 4.1 and 4.2.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ._jose import base64url
from ._secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["challenge_of", "new_secret"]

_BYTES: Final = 32


def new_secret(entropy: Callable[[int], bytes]) -> Secret:
    """A fresh verifier, state or identifier."""
    return Secret(base64url(entropy(_BYTES)))


def challenge_of(verifier: Secret) -> str:
    """The S256 code challenge of a verifier."""
    return base64url(sha256(verifier.reveal().encode()).digest())
