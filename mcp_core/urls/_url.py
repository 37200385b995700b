"""The URL of a server or a proxy: where to connect, and the request target to send there.

1. A URL that the user gives may be written as browsers accept it: non-ASCII names become IDNA,
   other characters are percent-encoded. URLs of OAuth, which a peer names, pass `find_url_error`
   first, which is strict.
2. Credentials in a URL are refused for a server, and kept apart for a proxy: no `Url` prints them.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from msgspec import Struct

from mcp_core._patterns import compile_on_first_use

__all__ = ["DEFAULT_PORTS", "Url", "effective_port", "redacted_url"]

# RFC 9110 4.2: the port of a URL that names none.
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# White space and control characters. `urlsplit` silently removes some of them, so they are looked
# for in the text itself.
_FORBIDDEN: Final = compile_on_first_use(r"[\x00-\x20\x7f]")
# All that RFC 3986 allows in a path or a query, and `%`: what is encoded already stays as it is.
_SAFE: Final = "/?%:@!$&'()*+,;=~-._[]"
_QUERY_START: Final = compile_on_first_use("[?#]")
_MAX_SHOWN: Final = 120  # characters of a URL in an error


def effective_port(parts: SplitResult) -> int:
    """Return a URL's port, or its scheme's port if it names none; 0 for an unknown scheme.

    `parts` is the URL as `urllib.parse.urlsplit` returns it (RFC 9110, section 4.2).

    Raises:
        ValueError: the port isn't a number from 1 to 65535.
    """
    if parts.port == 0:
        raise ValueError("nothing listens on port 0")
    return parts.port or DEFAULT_PORTS.get(parts.scheme, 0)


def redacted_url(url: str) -> str:
    """Return a URL as an error shows it: short, printable, without query and credentials.

    `url` may be any text. All that may be a password is left out, even where a parser would not see
    one because the password contains `/`, `?` or `#` unencoded.
    """
    text = _QUERY_START.split(url, maxsplit=1)[0]
    scheme, mark, authority = text.partition("://")
    if "@" in text:
        text = f"...@{text.rpartition('@')[2]}"
    elif "@" in url and "/" not in (authority if mark else text):
        # The text before a query without a path is an authority, and may be half of a password.
        text = f"{scheme}{mark}..." if mark else "..."
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")


def _split(text: str) -> SplitResult:
    """Split a URL. The error of `urlsplit` itself would repeat the credentials."""
    try:
        return urlsplit(text)
    except ValueError:
        raise ValueError(f"{redacted_url(text)} is not a URL: its host cannot be read") from None


class Url(Struct, frozen=True):
    """The URL of a server, over `http` or `https`. Make one with `Url.parse`.

    Attributes:
        text: the URL as the user wrote it.
        scheme: "http" or "https".
        host: the host in lower case, in IDNA form and without brackets.
        port: the port, the scheme's default if the URL names none.
        target: path and query, percent-encoded, as the first line of a request has it (RFC 9112,
            section 3.2.1).
    """

    text: str
    scheme: str
    host: str
    port: int
    target: bytes

    @classmethod
    def parse(cls, text: str) -> Url:
        """Return the URL of a server that `text` is, as a browser would accept it.

        A fragment is ignored. Names that aren't ASCII become IDNA, and other characters are
        percent-encoded.

        Raises:
            ValueError: it isn't `http://` or `https://` with a host, or it contains credentials.
        """
        parts = _split(text)
        if parts.scheme not in DEFAULT_PORTS or _FORBIDDEN.search(text):
            raise ValueError(f"a URL of http or https is needed, not {redacted_url(text)}")
        if "@" in parts.netloc:
            raise ValueError(
                "a URL must not contain a user name or password: send them in a header"
            )
        try:
            port = effective_port(parts)
            host = parts.hostname or ""
            if not host.isascii():
                host = host.encode("idna").decode()
        except ValueError:
            raise ValueError(f"host and port of {redacted_url(text)} cannot be read") from None
        if not host:
            raise ValueError(f"host and port of {redacted_url(text)} cannot be read")
        target = quote(parts.path or "/", safe=_SAFE)
        if parts.query:
            target += "?" + quote(parts.query, safe=_SAFE)
        return cls(text, parts.scheme, host, port, target.encode())

    @classmethod
    def parse_proxy(cls, text: str) -> tuple[Url, str | None]:
        """Read the URL of a proxy from `text`, as environment variables write it.

        Without a scheme it is `http`.

        Returns:
            The URL without its credentials, and the credentials as `user:password`,
            percent-decoded; None if it contains none.

        Raises:
            ValueError: the scheme is neither http nor https, or host or port cannot be read.
        """
        parts = _split(text if "://" in text else f"http://{text}")
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        if "@" in shown:  # a password with `/`, `?` or `#`
            raise ValueError(
                f"the proxy {redacted_url(text)} cannot be read: percent-encode the characters"
                " of its password"
            )
        try:
            port = effective_port(parts)
        except ValueError:
            raise ValueError(f"the proxy {shown} has an invalid port") from None
        if parts.scheme not in DEFAULT_PORTS:
            raise ValueError(
                f"the proxy {shown} cannot be used: only http:// and https:// proxies can"
            )
        if not parts.hostname:
            raise ValueError(f"the proxy {shown} has no host")
        credentials = None
        if parts.username is not None:
            credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return cls(shown, parts.scheme, parts.hostname, port, b"/"), credentials

    def __str__(self) -> str:
        """Return the URL without its query, which may be secret."""
        return self.text.partition("?")[0]

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: the server to connect to."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> bytes:
        """The value of the header `host`: without the port if that is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}").encode()

    def at(self, target: bytes) -> Url:
        """Return the URL of another `target` at this origin.

        Raises:
            ValueError: as `parse`.
        """
        return Url.parse(f"{self.scheme}://{self.authority.decode()}{target.decode()}")

    def join(self, reference: str) -> Url:
        """Return the URL of `reference`, which a document at this URL contains (RFC 3986, 5).

        Raises:
            ValueError: as `parse`.
        """
        return Url.parse(urljoin(self.text, reference))
