"""Fetch metadata: which requests without an `Origin` come from web pages of other sites.

A browser sends no `Origin` with a GET for an image, a script, a frame or a link. But it says in
`Sec-Fetch-Site` whose page has caused the request, and no page can change that (W3C, Fetch Metadata
Request Headers).

1. **Only two values aren't of another site**: `same-origin` is a page of this server, and `none`
   the user. Anything else is: `cross-site`, `same-site` (a page at another port of this machine), a
   repeated header, and a value of a later specification.
2. A request without the header doesn't count as a page's. Programs send none. Nor do browsers
   older than 2023, or any browser to `http://` at another machine: a server that is reached so
   needs authorization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ._messages import Headers

__all__ = [
    "SEC_FETCH_DEST",
    "SEC_FETCH_MODE",
    "SEC_FETCH_SITE",
    "is_foreign_fetch",
    "is_visit",
    "sent_by_foreign_page",
]

SEC_FETCH_SITE: Final = b"sec-fetch-site"
SEC_FETCH_MODE: Final = b"sec-fetch-mode"
SEC_FETCH_DEST: Final = b"sec-fetch-dest"

_OWN: Final = frozenset((b"same-origin", b"none"))


def is_foreign_fetch(site: bytes | None) -> bool:
    """Return True if a request without an `Origin` comes from a page of another site.

    `site` is its `Sec-Fetch-Site`, with a comma between the values of a repeated one; None without.
    """
    return site is not None and site not in _OWN


def is_visit(method: bytes, mode: bytes | None, dest: bytes | None) -> bool:
    """Return True if the user goes to a page, such as by a link or a redirect of a login.

    The page that the user leaves sees nothing of the response. A frame isn't a visit, nor is a
    form that is posted: that has an `Origin`.

    Args:
        method: the request's method.
        mode: its `Sec-Fetch-Mode`, None without one.
        dest: its `Sec-Fetch-Dest`, None without one.
    """
    return method in (b"GET", b"HEAD") and mode == b"navigate" and dest == b"document"


def sent_by_foreign_page(headers: Headers) -> bool:
    """Return True if `headers` have no `Origin`, and come from another site's page."""
    if any(name == b"origin" for name, _ in headers):
        return False
    sites = [value for name, value in headers if name == SEC_FETCH_SITE]
    return is_foreign_fetch(b", ".join(sites) if sites else None)
