"""The steps of authorization flows: I/O that a flow needs, described as data.

1. Everything in `mcp_core.auth` that needs I/O is a generator of these steps. The driver executes
   each step and sends its result back, so a test of a flow is a list of steps and replies.
2. No `repr` here shows a body, a header value or a query: they hold tokens, codes and passwords.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct, field

from ._secret import RedactedStruct

__all__ = [
    "MAX_BODY",
    "Browse",
    "Fetch",
    "Flow",
    "HttpRequest",
    "HttpResponse",
    "ListenForRedirect",
    "Load",
    "Save",
    "Step",
]

# Bytes after decompression. No OAuth document has a reason to be longer.
MAX_BODY: Final = 65_536

T = TypeVar("T")


class HttpRequest(RedactedStruct, frozen=True):
    """An HTTP request to send unchanged.

    Attributes:
        method: the method, such as "POST".
        url: the absolute URL.
        headers: pairs of name and value.
        body: the content, empty for none.
    """

    method: str
    url: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        url = self.url.partition("?")[0]
        return f"<HttpRequest {self.method} {url} headers=[{names}] body={len(self.body)} bytes>"


class HttpResponse(RedactedStruct, frozen=True):
    """The response to an `HttpRequest`.

    Attributes:
        status: the status code.
        headers: pairs of name and value; the names are in lower case.
        body: the complete content, decompressed.
        address: the IP address that it came from, None if that is unknown, as behind a proxy.
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    address: str | None = None

    def header(self, name: str) -> str | None:
        """Return the first value of a header, or None. `name` is in lower case."""
        return next((value for key, value in self.headers if key == name), None)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.headers)
        return f"<HttpResponse {self.status} headers=[{names}] body={len(self.body)} bytes>"


class Fetch(Struct, frozen=True):
    """The step to send `request`. Its result is an `HttpResponse` of any status.

    The driver follows no redirect, reads at most `MAX_BODY` bytes and applies a timeout of its own.
    If there is no complete response, it throws in `FetchFailed`.

    `named_by` is the issuer whose metadata named the URL, None if the URL is from elsewhere. A
    client's driver passes it to `Authorizer.may_fetch`, and connects only to addresses that this
    allows. A server's driver fetches a configured URL from any address. With `named_by` it connects
    only to addresses that `mcp_core.urls.may_fetch_named` allows.
    """

    request: HttpRequest
    named_by: str | None = None


class ListenForRedirect(Struct, frozen=True):
    """The step to listen at `redirect_uri` for the browser, until the flow ends.

    A `Browse` follows. The result is the redirect URI in use: the same one, or with another port if
    `any_port` is set and the port is 0 or taken. The driver throws in `AuthorizationFailed` if it
    cannot listen there, and `AuthRequired` if there is no user to send to a login page.
    """

    redirect_uri: str
    any_port: bool = False


class Browse(RedactedStruct, frozen=True):
    """The step to let the user log in at `url`.

    The result is the full URL to which the browser was redirected. A `ListenForRedirect` came
    before. The driver takes the first request to `redirect_uri` for which `is_callback_for` is
    true. `url` has passed `find_url_error`. The driver throws in `AuthorizationFailed` if no such
    request arrives in time, and `AuthRequired` if there is no user to ask or the user declines.

    `server` is the MCP server's URL. `new_scopes` are those that it demands in addition to the last
    login; the driver shows them to the user first. They are empty at the first login, where the
    authorization server shows all of them.
    """

    url: str
    redirect_uri: str
    server: str = ""
    new_scopes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        new = f" new_scopes={' '.join(self.new_scopes)!r}" if self.new_scopes else ""
        return f"<Browse {self.url.partition('?')[0]} redirect_uri={self.redirect_uri!r}{new}>"


class Load(Struct, frozen=True):
    """The step to read the bytes saved under `key`. Its result is None if nothing was saved.

    The result is also None if they cannot be read; the driver reports that itself, or throws an
    `AuthorizationFailed` into the flow if the user has to do something first. `for_update`
    announces that a `Save` follows: until the next `Save` or `ListenForRedirect`, or the end of the
    flow, a `Load` with `for_update` in another process has to wait, if the storage has locks.
    """

    key: str
    for_update: bool = False


class Save(RedactedStruct, frozen=True):
    """The step to store `value` under `key`, or to delete the key if `value` is None.

    Other users must not be able to read the value. There is no result. The driver reports a failure
    itself.
    """

    key: str
    value: bytes | None

    def __repr__(self) -> str:
        return (
            f"<Save {self.key!r} {'nothing' if self.value is None else f'{len(self.value)} bytes'}>"
        )


# What a flow needs next from its driver.
Step: TypeAlias = Fetch | ListenForRedirect | Browse | Load | Save
# A flow yields steps, gets the outcome of each, and returns a `T`.
Flow: TypeAlias = Generator[Step, Any, T]
