"""Sign and check `requestState`: state of a request that the client keeps for the server.

A state is accepted only if this server issued it to this principal, for this request, and it has
not expired (2026-07-28, basic/patterns/mrtr). It reads `1.<key>.<body>.<signature>`: this format's
version, the key's name, the body as base64url without padding, and an HMAC-SHA256 over all before
it, in base64url too.

1. A state is signed, not encrypted. The client can read it, so put no secrets into it. Only the
   principal is hidden, behind a keyed digest.
2. Nothing of a state is decoded before its signature is verified. Every character is signed, so a
   state has only one spelling.
3. A state may be sent any number of times until it expires. If it must be used once, record the
   uses elsewhere.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Raw, Struct

from mcp_core._errors import Fault, LocalProtocolError, RemoteProtocolError
from mcp_core._patterns import compile_on_first_use
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["DeploymentSigner", "InvalidRequestState", "KeyRing", "SigningKeys", "StateBinding"]

_VERSION: Final = b"1"
_KEY_NAME: Final = compile_on_first_use(r"[A-Za-z0-9_-]{1,32}")
_MIN_KEY_SIZE: Final = 32  # bytes; the digest's length, as RFC 2104 (section 3) recommends
# Derives our key from the user's: they may sign other things with theirs, which must not be valid
# here.
_PURPOSE: Final = b"mcp requestState"
_SIGNATURE_SIZE: Final = 32  # bytes, of an HMAC-SHA256


class InvalidRequestState(RemoteProtocolError):
    """A `requestState` that wasn't issued for this request.

    The text is for the log, and so is `reason`, a part of it. Send `PUBLIC_MESSAGE` to the peer: it
    is the same for every reason, so that nothing can be learned by trying.
    """

    PUBLIC_MESSAGE: ClassVar[str] = (
        "requestState is not valid for this request; make the request again without it"
    )

    def __init__(self, reason: str) -> None:
        super().__init__(f"requestState refused: {reason}", Fault.INVALID_PARAMS)
        self.reason = reason


class StateBinding(Struct, frozen=True):
    """The request that a state is valid for: its method, principal, and digest of its params.

    `principal` is empty for unauthenticated clients.
    """

    principal: str
    method: str
    digest: str


class _StatePayload(Struct, array_like=True):
    expires: int  # seconds since 1970
    principal: str
    method: str
    digest: str
    content: Raw


_read_body = reader(_StatePayload)


class KeyRing:
    """The keys that sign states, by name. The first signs, and all are accepted.

    To change keys without rejecting any state: add the new key as the last one everywhere, move it
    to the front everywhere, and remove the old one after `lifetime`. Servers with the same ring
    accept each other's states: share a ring between all instances of one server, and no others.

    Args:
        keys: secrets of at least 32 random bytes. A name has up to 32 letters, digits, `-` and `_`,
            and isn't secret.
        lifetime: seconds until a state expires: long enough for a user to answer.
        max_length: the maximum length of a state, in characters. It travels in a message beside the
            responses, so it should be a fraction of `Limits.message`.

    Raises:
        ValueError: there is no key, a key is too short, or a name is invalid.
    """

    __slots__ = ("_keys", "_signing_key", "lifetime", "max_length")

    def __init__(
        self, keys: Mapping[str, bytes], *, lifetime: float = 600.0, max_length: int = 1024 * 1024
    ) -> None:
        if not keys:
            raise ValueError("a key ring has at least one key")
        for name, key in keys.items():
            if not _KEY_NAME.fullmatch(name):
                raise ValueError(
                    f"a key's name has up to 32 letters, digits, '-' and '_', not {name!r}"
                )
            if len(key) < _MIN_KEY_SIZE:
                raise ValueError(
                    f"key {name!r} has {len(key)} bytes; {_MIN_KEY_SIZE} are the least"
                )
        self._keys = {name: _hmac(key, _PURPOSE) for name, key in keys.items()}
        self._signing_key = next(iter(keys))
        self.lifetime = lifetime
        self.max_length = max_length

    def __repr__(self) -> str:
        return f"<KeyRing of {', '.join(self._keys)}>"

    def signing_keys(self, purpose: str) -> SigningKeys:
        """Return keys that are derived from these, and valid for `purpose` only."""
        label = b"derive " + purpose.encode()
        # The first one signs, as here: a dict keeps its order, and so does `keys`.
        return SigningKeys([_hmac(key, label) for key in self._keys.values()])

    def seal(
        self, content: bytes, binding: StateBinding, now: float, *, lifetime: float | None = None
    ) -> str:
        """Return a state with `content` that is valid for `binding`, for `lifetime` seconds.

        Args:
            content: JSON.
            binding: what the state is valid for.
            now: seconds since 1970.
            lifetime: the ring's if None.

        Raises:
            LocalProtocolError: the state would be longer than `max_length`.
        """
        key = self._keys[self._signing_key]
        body = _StatePayload(
            expires=int(now + (self.lifetime if lifetime is None else lifetime)),
            principal=_principal_digest(key, binding.principal),
            method=binding.method,
            digest=binding.digest,
            content=Raw(content),
        )
        signed = b"%b.%b.%b" % (_VERSION, self._signing_key.encode(), _base64url(encode(body)))
        state = b"%b.%b" % (signed, _base64url(_hmac(key, signed)))
        if len(state) > self.max_length:
            error = (
                f"the answers so far are too long to be kept: {len(state)} characters, "
                f"more than {self.max_length}"
            )
            raise LocalProtocolError(error, Fault.INVALID_PARAMS)
        return state.decode()

    def open(self, state: str, binding: StateBinding, now: float) -> bytes:
        """Return the content of a state that came with a request. `now` is seconds since 1970.

        Raises:
            InvalidRequestState: this server did not issue it, it has expired, or it is for another
                principal or request.
        """
        if len(state) > self.max_length:
            raise InvalidRequestState(
                f"it has {len(state)} characters, more than {self.max_length}"
            )
        if not state.isascii():
            raise InvalidRequestState("it was not issued by this server")
        parts = state.encode().split(b".", 4)
        if len(parts) != 4 or parts[0] != _VERSION:
            raise InvalidRequestState("it was not issued by this server")
        _, name, encoded, signature = parts
        key = self._keys.get(name.decode())
        if key is None:
            raise InvalidRequestState(
                f"it names a key that is not in the ring, {name.decode()[:32]!r}"
            )
        if not hmac.compare_digest(
            signature, _base64url(_hmac(key, state.encode()[: -len(signature) - 1]))
        ):
            raise InvalidRequestState("it was altered, or signed with another key of this name")
        try:
            body = _read_body(urlsafe_b64decode(encoded + b"=="))
        except (InvalidPayload, ValueError):
            raise InvalidRequestState("it is signed with our key, but not by this code") from None
        if now >= body.expires:
            raise InvalidRequestState(f"it expired {now - body.expires:.0f} s ago")
        if body.principal != _principal_digest(key, binding.principal):
            raise InvalidRequestState("it was given to another principal")
        if body.method != binding.method:
            raise InvalidRequestState(f"it was given for {body.method}, not {binding.method}")
        if body.digest != binding.digest:
            raise InvalidRequestState(
                f"it was given for a request of {body.method} with other params"
            )
        return bytes(body.content)


class SigningKeys:
    """Keys for one purpose, derived from a `KeyRing`. The first one signs, and all verify."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = tuple(keys)

    def __repr__(self) -> str:
        return f"<SigningKeys, {len(self._keys)}>"

    def sign(self, data: bytes) -> bytes:
        """Return the signature of `data`: an HMAC-SHA256, 32 bytes."""
        return _hmac(self._keys[0], data)

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Return True if one of the keys has signed `data`."""
        return any(hmac.compare_digest(_hmac(key, data), signature) for key in self._keys)


class DeploymentSigner:
    """Signs what the processes of one deployment keep where others may write.

    Signed data reads `SIGNATURE BODY`. The signature covers the deployment and the place, such as a
    stream's name, so that it can't be moved to another one.

    Args:
        keys: the keys that sign and verify.
        deployment: the deployment's name.
    """

    __slots__ = ("_deployment", "_keys")

    def __init__(self, keys: SigningKeys, deployment: str) -> None:
        self._keys = keys
        self._deployment = deployment.encode()

    def __repr__(self) -> str:
        return f"<DeploymentSigner of {self._deployment.decode()!r}>"

    def sign(self, body: bytes, place: str) -> bytes:
        """Return `body` with its signature, for `place`."""
        return self._keys.sign(self._signed(body, place)) + body

    def verified(self, data: bytes, place: str) -> bytes | None:
        """Return the body of `data`, or None if no key has signed it for `place`."""
        signature, body = data[:_SIGNATURE_SIZE], data[_SIGNATURE_SIZE:]
        return body if self._keys.verify(self._signed(body, place), signature) else None

    def _signed(self, body: bytes, place: str) -> bytes:
        name = place.encode()
        # Each part with its length, so that no two have the same signed bytes.
        return b"%d %b%d %b%b" % (len(self._deployment), self._deployment, len(name), name, body)


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _principal_digest(key: bytes, principal: str) -> str:
    # A name made up by an authorization server may contain anything, even surrogates.
    return _base64url(
        _hmac(key, b"principal " + principal.encode("utf-8", "surrogatepass"))[:16]
    ).decode()


def _base64url(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")
