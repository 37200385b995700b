"""A fixed set of API keys, sent as `Authorization: Bearer <key>`, without OAuth.

1. Only the keys' SHA-256 digests are kept. All of them are compared, each in constant time, so the
   time of a response tells neither a key nor whose it is.
2. A challenge has no `resource_metadata`, and no metadata is published: there is no authorization
   server that a client could ask.
3. No text contains a key. Errors about a mapping don't even show its names, because a user may
   have swapped names and keys.

Source: RFC 6750.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import ClassVar, Final, TypeAlias

from mcp_core.auth._jose import MAX_TOKEN
from mcp_core.auth._secret import Secret

from ._grant import Grant
from ._protected_resource import TOKEN, AuthDenial, AuthFlow, Headers, ProtectedResource
from ._scopes import Scopes, checked_scopes

__all__ = ["ApiKeys"]

# Characters. A shorter key can be guessed, or found from its digest; 16 have about 96 bits.
_MIN_KEY: Final = 16
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_CURE: Final = "make one with `python -c 'import secrets; print(secrets.token_urlsafe())'`"

Key: TypeAlias = str | Secret


class ApiKeys(ProtectedResource):
    """The authorization of an MCP server by a fixed set of API keys.

    Pass it to the HTTP server (`auth=`). A client sends one of the keys with each request, as
    `Authorization: Bearer <key>`. A request without a key, or with another one, gets 401. Handlers
    see whose key it is in `context.principal`.

    The time of a check grows with the number of keys: 1,000 take about 0.05 ms.

    Args:
        keys: by its owner's name, who becomes the principal, a key or several, such as an old
            and a new one. A key is a text of 16 characters or more of `A-Z a-z 0-9 - . _ ~ + /`,
            a `Secret`, or its SHA-256 digest as `"sha256:<64 lower-case hexadecimal digits>"`.
        granted_scopes: by an owner's name, the scopes of its keys. None by default.
        scopes: the scopes that every request needs.
        tool_scopes: further scopes by a tool's name: a mapping or a function, as for
            `OAuthResourceServer`.
        resource_scopes: further scopes by the URI or URI template of a resource.
        prompt_scopes: further scopes by a prompt's name.
        method_scopes: further scopes by method.
        satisfies: returns True if the scopes of a key include another scope. Default: a scope must
            be listed.

    Raises:
        ValueError: there is no key; a key is too short, has other characters, or has two owners;
            `granted_scopes` names an owner without a key; or a scope is invalid.
    """

    _credential: ClassVar[str] = "API key"

    def __init__(
        self,
        keys: Mapping[str, Key | Iterable[Key]],
        *,
        granted_scopes: Mapping[str, Iterable[str]] | None = None,
        scopes: Iterable[str] = (),
        tool_scopes: Scopes | None = None,
        resource_scopes: Scopes | None = None,
        prompt_scopes: Scopes | None = None,
        method_scopes: Scopes | None = None,
        satisfies: Callable[[frozenset[str], str], bool] | None = None,
    ) -> None:
        super().__init__(
            scopes=scopes,
            tool_scopes=tool_scopes,
            resource_scopes=resource_scopes,
            prompt_scopes=prompt_scopes,
            method_scopes=method_scopes,
            satisfies=satisfies,
        )
        granted = dict(granted_scopes or {})
        if granted.keys() - keys.keys():
            raise ValueError("granted_scopes has the name of an owner without a key")
        self._grants: dict[bytes, Grant] = {}  # by digest
        for name, given in keys.items():
            grant = Grant(name, scopes=frozenset(checked_scopes(granted.get(name, ()))))
            for key in (given,) if isinstance(given, str | Secret) else given:
                if self._grants.setdefault(_digest(key), grant) is not grant:
                    raise ValueError("one key has two owners: give each a key of its own")
        if not self._grants:
            raise ValueError("there is no key, so every request would be refused")

    def __repr__(self) -> str:
        return f"<ApiKeys: {len(self._grants)}>"

    def admit(self, method: bytes, target: bytes, headers: Headers, now: float) -> AuthFlow:
        """Authorize a request's head. Return its key's grant, or a denial.

        This is a flow without any step. Its parameters are as for `OAuthResourceServer.admit`.
        """
        yield from ()
        credentials = self.read_credentials(headers)
        if isinstance(credentials, AuthDenial):
            return credentials
        digest = sha256(credentials.token.reveal().encode()).digest()
        found = None
        for known, grant in self._grants.items():  # all of them, see rule 1
            if compare_digest(known, digest):
                found = grant
        if found is None:
            return self._refuse("the key is none of those that this server accepts")
        if method != b"POST":
            denial = self.check(found)
            if denial is not None:
                return denial
        return found


def _digest(key: Key) -> bytes:
    """Return the SHA-256 digest of a key, which may be given as such.

    Raises:
        ValueError: it cannot be a key. The text doesn't show it.
    """
    text = Secret(key).reveal()
    hashed = _DIGEST.fullmatch(text)
    if hashed is not None:
        return bytes.fromhex(hashed[1])
    if text.startswith("sha256:"):
        raise ValueError("a digest of a key is sha256: and 64 lower-case hexadecimal digits")
    encoded = text.encode("utf-8", "replace")
    if TOKEN.fullmatch(encoded) is None or len(encoded) > MAX_TOKEN:
        raise ValueError(
            f"a key has characters other than A-Z a-z 0-9 - . _ ~ + /, or more than {MAX_TOKEN}"
        )
    if len(text) < _MIN_KEY:
        raise ValueError(
            f"a key is shorter than {_MIN_KEY} characters, so it could be guessed: {_CURE}. The "
            "mapping is from names to keys"
        )
    return sha256(encoded).digest()
