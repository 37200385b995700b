"""Redirects of a client's requests: where they lead, and why some aren't followed.

1. **Only 307 and 308 within one origin are followed**, three in a row. They keep the method, the
   body and the headers (RFC 9110, 15.4.8 and 15.4.9). With any other status a POST may become a
   GET, and another origin would get the messages and headers of a user who did not name it.
2. Following a redirect repeats no call: its sender says that the request has to be made elsewhere,
   so it wasn't handled there.
3. A credential goes only to paths that its resource covers. One host may have several servers, and
   each of them could otherwise get another one's token by a redirect.

The usual case is a Starlette application that is mounted at `/mcp`: it redirects to `/mcp/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from mcp_core.http.wire._messages import header
from mcp_core.urls._addresses import MAX_URL, covers_url
from mcp_core.urls._normal_uri import normal_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.http.wire._messages import Head
    from mcp_core.urls._url import Url

__all__ = ["redirect_target"]

_FOLLOWED: Final = frozenset({307, 308})
_TO_PAGE: Final = frozenset({302, 303})  # so proxies send a browser to their login page
_LOGIN: Final = ". If it is a login page, a proxy in front of the server wants a login"
_MAX_REDIRECTS: Final = 3  # in a row; one is usual
_MAX_SHOWN: Final = 200  # characters of a URL in an error
_PROXY: Final = (
    "A server behind a proxy redirects so if it doesn't know its own URL: let the proxy send the "
    "client's Host and X-Forwarded-Proto, and the server trust them (uvicorn: --proxy-headers with "
    "--forwarded-allow-ips)"
)


def redirect_target(
    redirected: Sequence[Url],
    head: Head,
    *,
    has_credential: bool = False,
    covers: Callable[[str], bool] | None = None,
) -> Url | str:
    """Return the URL to which a redirect leads, or why it isn't followed, as a text with the cure.

    Args:
        redirected: the URLs that have redirected the request, oldest first. The last one has sent
            `head`.
        head: the head of a response with a status 3xx.
        has_credential: the request has a credential. It is for the first URL, and what is below it.
        covers: returns True if the credential is also for an absolute URL.
    """
    url = redirected[-1]
    location = header(head, b"location")
    target = None if location is None else _read(url, location)
    if location is None or target is None:
        return "a redirect without a location that can be used"
    where = _shown(target, target.target)
    cure = f"connect to {where} instead"
    login = _LOGIN if head.status in _TO_PAGE else ""
    if target.origin != url.origin:
        if url.scheme == "https" and target.scheme == "http" and target.host == url.host:
            cure = f"connect to {_shown(url, target.target)} instead. {_PROXY}"
            return f"a redirect from https to http, which is not followed: {cure}"
        proxy = f". {_PROXY}" if target.scheme == "http" else ""
        return f"a redirect to another origin, which is not followed: {cure}{proxy}{login}"
    if head.status not in _FOLLOWED:
        return f"a redirect that may change the method, which is not followed: {cure}{login}"
    if len(redirected) > _MAX_REDIRECTS or target.target in [each.target for each in redirected]:
        return f"a redirect after {len(redirected) - 1} others, which is not followed: {cure}"
    if (
        has_credential
        and not covers_url(redirected[0].text, target.text)
        and not (covers is not None and covers(target.text))
    ):
        source = _shown(redirected[0], redirected[0].target)
        return (
            f"a redirect to {where}, which is not followed: the credential is for {source}. If"
            f" that is its server, {cure}"
        )
    return target


def _shown(url: Url, target: bytes) -> str:
    """Return the URL of `target` at the origin of `url`, in ASCII, for an error.

    Without the query, which may have a key.
    """
    path, _, _ = target.partition(b"?")
    text = f"{url.scheme}://{url.authority.decode()}{path.decode()}"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _read(url: Url, location: bytes) -> Url | None:
    """Return the URL that `location` is, relative to `url`. Return None if it is unclear.

    It is unclear if it has `..` in its path after it was resolved, encoded once or twice, or as the
    `..;` that some servers know: they would take it for another path than the one that is checked.
    """
    if len(location) > MAX_URL:
        return None
    try:
        target = url.join(location.decode())
    except ValueError:
        return None
    path = unquote(unquote(target.target.partition(b"?")[0].decode()))
    return None if ".." in path or normal_uri(target.text) is None else target
