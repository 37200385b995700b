"""What we hand to a peer to keep for us: sealed, so that it comes back unchanged, from the same hands and for the same use.

It decides whether a `requestState` (2026-07-28, basic/patterns/mrtr) is one that we gave out: to this principal, for this
request and not too long ago. A text of ours reads `1.<key>.<body>.<signature>`: the version of this form, the name of the
key, the body as base64url without padding, and HMAC-SHA256 over all that stands before it, in the same alphabet.

Rules of this file:

1. **Signed, not secret.** Whoever holds a state can read what is in it, and only cannot change it. What a peer must not know
   does not belong there. The principal alone is hidden, behind a digest that needs the key.
2. Before the signature is right nothing of a state is believed, and of the text every character is signed: there are no two
   spellings of one state.
3. Why a state was refused is for the log. The peer hears one sentence whatever it was, and learns nothing from trying.
4. A state may come back any number of times until it expires. Who needs it used once must remember the uses.

It refuses to know what is sealed, what time it is and where keys come from.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Raw, Struct

from ._errors import Fault, LocalProtocolError, RemoteProtocolError
from ._jsonrpc import Unreadable, encode, reader

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BadState", "Binding", "KeyRing"]

_VERSION: Final = b"1"
_KEY_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_SHORTEST_KEY: Final = 32  # as long as the digest, which is what RFC 2104 (section 3) wants
# The users of this library may have other uses for their key: what we sign is never what they do.
_PURPOSE: Final = b"mcp requestState"


class BadState(RemoteProtocolError):
    """`requestState` is none that we gave out for this request. The text is for the log; the peer is told `TOLD`."""

    TOLD: ClassVar[str] = "requestState is not valid for this request; make the request again without it"

    def __init__(self, reason: str) -> None:
        super().__init__(f"requestState refused: {reason}", Fault.INVALID_PARAMS)


class Binding(Struct, frozen=True):
    """What a state is good for: a request of `method` by `principal` whose salient params have this `digest`.

    `principal` is empty where nobody is authenticated.
    """

    principal: str
    method: str
    digest: str


class _Body(Struct, array_like=True):
    expires: int  # seconds since 1970
    principal: str
    method: str
    digest: str
    content: Raw


_read_body = reader(_Body)


class KeyRing:
    """The keys that states are signed with, by name. The first signs, all are recognised.

    To change keys without refusing anyone: add the new key behind the old one everywhere, put it in front everywhere, and
    take the old one away after `lifetime`. Servers that share a ring take each other's states: give a ring to all instances
    of one server, and to nobody else.

    Args:
        keys: secrets of at least 32 random bytes. A name has up to 32 letters, digits, `-` and `_`, and is no secret.
        lifetime: seconds for which a state is good: long enough for a person to answer.
        longest: characters of a state. It travels in a message beside the answers, and so is a fraction of `Limits.message`.

    Raises:
        ValueError: there is no key, one is too short, or a name is none.
    """

    __slots__ = ("_first", "_keys", "lifetime", "longest")

    def __init__(
        self, keys: Mapping[str, bytes], *, lifetime: float = 600.0, longest: int = 1024 * 1024
    ) -> None:
        if not keys:
            raise ValueError("a key ring has at least one key")
        for name, key in keys.items():
            if not _KEY_NAME.fullmatch(name):
                raise ValueError(f"a key's name has up to 32 letters, digits, '-' and '_', not {name!r}")
            if len(key) < _SHORTEST_KEY:
                raise ValueError(f"key {name!r} has {len(key)} bytes; {_SHORTEST_KEY} are the least")
        self._keys = {name: _hmac(key, _PURPOSE) for name, key in keys.items()}
        self._first = next(iter(keys))
        self.lifetime = lifetime
        self.longest = longest

    def __repr__(self) -> str:
        return f"<KeyRing of {', '.join(self._keys)}>"

    def seal(self, content: bytes, binding: Binding, now: float) -> str:
        """`content` (JSON) as a state that is good for `binding` until `lifetime` after `now`, in seconds since 1970.

        Raises:
            LocalProtocolError: it would be longer than `longest`.
        """
        key = self._keys[self._first]
        body = _Body(
            expires=int(now + self.lifetime),
            principal=_hidden(key, binding.principal),
            method=binding.method,
            digest=binding.digest,
            content=Raw(content),
        )
        signed = b"%b.%b.%b" % (_VERSION, self._first.encode(), _text(encode(body)))
        state = b"%b.%b" % (signed, _text(_hmac(key, signed)))
        if len(state) > self.longest:
            problem = f"the answers so far are too long to be kept: {len(state)} characters, more than {self.longest}"
            raise LocalProtocolError(problem, Fault.INVALID_PARAMS)
        return state.decode()

    def open(self, state: str, binding: Binding, now: float) -> bytes:
        """The content of a state that came back with a request.

        Raises:
            BadState: it is none of ours, has expired, or is for another principal or another request.
        """
        if len(state) > self.longest:
            raise BadState(f"it has {len(state)} characters, more than {self.longest}")
        if not state.isascii():
            raise BadState("it is none of ours")
        parts = state.encode().split(b".", 4)
        if len(parts) != 4 or parts[0] != _VERSION:
            raise BadState("it is none of ours")
        _, name, text, signature = parts
        key = self._keys.get(name.decode())
        if key is None:
            raise BadState(f"it names a key that is not in the ring, {name.decode()[:32]!r}")
        if not hmac.compare_digest(signature, _text(_hmac(key, state.encode()[: -len(signature) - 1]))):
            raise BadState("it was altered, or signed with another key of this name")
        try:
            body = _read_body(urlsafe_b64decode(text + b"=="))
        except (Unreadable, ValueError):
            raise BadState("it is signed with our key, but not by this code") from None
        if now >= body.expires:
            raise BadState(f"it expired {now - body.expires:.0f} s ago")
        if body.principal != _hidden(key, binding.principal):
            raise BadState("it was given to another principal")
        if body.method != binding.method:
            raise BadState(f"it was given for {body.method}, not {binding.method}")
        if body.digest != binding.digest:
            raise BadState(f"it was given for a request of {body.method} with other params")
        return bytes(body.content)


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _hidden(key: bytes, principal: str) -> str:
    # A name that an authorization server made up may hold anything that a str can.
    return _text(_hmac(key, b"principal " + principal.encode("utf-8", "surrogatepass"))[:16]).decode()


def _text(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")
