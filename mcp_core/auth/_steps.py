"""What authorization asks of the world, as data: fetch this, show that to the user, remember those bytes.

Rules of this file:

1. Everything in `mcp_core.auth` that needs the world is a generator of these steps; whoever runs it (the *runner*)
   does what a step says and sends back its result. So a whole flow is tested as a list of steps and replies.
2. A `Fetch` is one request and one response. The runner follows no redirect, opens only addresses that `may_fetch` allows,
   reads no more than `MAX_BODY` bytes and gives up after a time of its own; what goes wrong it throws into the generator as
   `FetchFailed`. A status is no failure.
3. Nothing here shows a body or the value of a header when printed: they hold tokens, codes and passwords.

It does not know what is fetched, or why.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct, field

from ._secret import Opaque

__all__ = [
    "MAX_BODY",
    "Browse",
    "Fetch",
    "Flow",
    "HttpReply",
    "HttpRequest",
    "Listen",
    "Load",
    "Save",
    "Step",
]

# No document of OAuth has a reason to be longer; in bytes, after decompression.
MAX_BODY: Final = 65_536

T = TypeVar("T")


class HttpRequest(Opaque, frozen=True):
    """An HTTP request to send as it is. `url` is absolute, `headers` are pairs of name and value."""

    method: str
    url: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        url = self.url.partition("?")[0]
        return f"<HttpRequest {self.method} {url} headers=[{names}] body={len(self.body)} bytes>"


class HttpReply(Opaque, frozen=True):
    """The response to it: the names of `headers` in lower case, `body` complete and decompressed."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first value of a header; `name` in lower case."""
        return next((value for key, value in self.headers if key == name), None)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        return f"<HttpReply {self.status} headers=[{names}] body={len(self.body)} bytes>"


class Fetch(Struct, frozen=True):
    """Send `request`; the reply is an `HttpReply`. Thrown in if there is none: `FetchFailed`.

    `named_by` is for who fetches what a server's own configuration says, from any address: the URL, which is configured, of who
    named this one, which is not. It may be at an address that is not public only if that one is.
    """

    request: HttpRequest
    named_by: str | None = None


class Listen(Struct, frozen=True):
    """A user is about to be sent to a login page: get ready for him to come back to `redirect_uri`, until the flow is over.

    The reply is where he will come back to: the same, or the same at another port if it is taken, or is 0, and `any_port` will do.
    If nobody can listen there, `AuthorizationFailed` is thrown in; if nobody can be asked, `AuthRequired`.
    """

    redirect_uri: str
    any_port: bool = False


class Browse(Opaque, frozen=True):
    """Let the user log in at `url`; the reply is the whole URL, with its query, to which the browser was sent back.

    A `Listen` came before. The runner takes the first request to `redirect_uri` that `answers` this step. `url` was judged by
    `url_fault`. If nobody comes back, `AuthorizationFailed` is thrown in; if nobody can be asked, `AuthRequired`.
    """

    url: str
    redirect_uri: str

    def __repr__(self) -> str:
        return f"<Browse {self.url.partition('?')[0]} redirect_uri={self.redirect_uri!r}>"


class Load(Struct, frozen=True):
    """Give what was saved under `key`, or None: also if it cannot be read, which the runner reports by itself.

    `to_replace`: it is about to be replaced. Until the next `Save` or `Listen`, or the end of the flow, no other process that says so
    gets it, if the storage can arrange that.
    """

    key: str
    to_replace: bool = False


class Save(Opaque, frozen=True):
    """Keep `value` under `key`, safe from other users, or forget what is there (None). No reply; the runner reports a failure."""

    key: str
    value: bytes | None

    def __repr__(self) -> str:
        return f"<Save {self.key!r} {'nothing' if self.value is None else f'{len(self.value)} bytes'}>"


Step: TypeAlias = Fetch | Listen | Browse | Load | Save
Flow: TypeAlias = Generator[Step, Any, T]
