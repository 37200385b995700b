"""The pages of a listener on loopback during one login: the start page, and the redirect.

1. The login URL contains `state`. An attacker who knows it can finish the login with another
   account. A process's arguments are visible to other users, so the browser is started with
   the URL of a start page, which leads to the login page and works once.
2. The redirect is accepted once, and only with the `state` of this login. Any other request gets a
   404 and changes nothing.
3. No page contains any part of the redirect URL, which has the authorization code.

Sources: RFC 8252 sections 7.3 and 8.1, OAuth 2.1 section 7.5.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Final
from urllib.parse import urlsplit

from mcp_core.auth._secret import Secret
from mcp_core.auth._steps import Browse, HttpResponse

from ._callback import is_callback_for, new_secret

__all__ = ["LoopbackLogin"]

_HEADERS: Final = [
    ("content-type", "text/html; charset=utf-8"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("connection", "close"),
]
_HEAD: Final = "<!doctype html><meta charset=utf-8><title>mcp-trio</title>"
_DONE: Final = f"{_HEAD}<p>Thank you: you can close this page and go back to the program.</p>"
_NOT_FOUND: Final = f"{_HEAD}<p>This page belongs to no login in progress.</p>"


class LoopbackLogin:
    """The pages of one login on loopback.

    `callback` is the redirect's complete URL, None until it arrived. `start_url` is the URL to open
    in the browser instead of `step.url`. Nothing can be learned from it before it is opened; allow
    that only to the user (`is_start`).

    `entropy` returns random bytes that are fit for secrets.
    """

    __slots__ = ("_origin", "_path", "_start_path", "_started", "_step", "callback")

    def __init__(self, step: Browse, entropy: Callable[[int], bytes]) -> None:
        parts = urlsplit(step.redirect_uri)
        self.callback: str | None = None
        self._step = step
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path or "/"
        self._start_path = Secret(f"/start/{new_secret(entropy).reveal()}")
        self._started = False

    def __repr__(self) -> str:
        return f"<LoopbackLogin at {self._origin}{self._path}>"

    @property
    def start_url(self) -> str:
        """The URL to open in the browser. It works once."""
        return f"{self._origin}{self._start_path.reveal()}"

    def is_start(self, target: str) -> bool:
        """Return True if `target` is the start page's.

        Other users on the machine may have seen it: call `respond` only if the request is known to
        come from a program of this user.
        """
        return Secret(target) == self._start_path

    def respond(self, method: str, target: str) -> HttpResponse:
        """Return the response to a request of a browser, with `method` and `target`.

        `target` is path and query. If it is this login's redirect, `callback` is its URL then.
        """
        status = 404
        text = _NOT_FOUND
        headers = _HEADERS
        if method == "GET" and self.is_start(target) and not self._started:
            self._started = True
            if not self._step.new_scopes:
                return HttpResponse(303, [*_HEADERS, ("location", self._step.url)])
            status = 200
            text = self.start_page()
        elif method == "GET" and self.callback is None and target.partition("?")[0] == self._path:
            callback = f"{self._origin}{target}"
            if is_callback_for(self._step, callback):
                self.callback = callback
                status = 200
                text = _DONE
        return HttpResponse(status, headers, b"" if method == "HEAD" else text.encode())

    def not_found(self) -> HttpResponse:
        """Return the response to a request that must not be answered otherwise."""
        return HttpResponse(404, _HEADERS, _NOT_FOUND.encode())

    def start_page(self) -> str:
        """Return the start page as HTML, for a file that only the user can read.

        It leads on by itself, unless there are new scopes: then the user has to read them first.
        """
        step = self._step
        url = escape(step.url)
        if not step.new_scopes:
            refresh = f'<meta http-equiv="refresh" content="0;url={url}">'
            return f'{_HEAD}{refresh}<p><a rel="noreferrer" href="{url}">Log in</a></p>'
        scopes = "".join(f"<li><code>{escape(scope)}</code></li>" for scope in step.new_scopes)
        host = escape(urlsplit(step.url).netloc)
        return (
            f"{_HEAD}<p>{escape(step.server)} demands more than at the last login:</p>"
            f'<ul>{scopes}</ul><p><a rel="noreferrer" href="{url}">Continue to {host}</a> to allow '
            "or refuse it. Close this page if you did not expect it.</p>"
        )
