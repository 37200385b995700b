"""The URL of a Redis or Valkey server: where it is, and with which credentials.

1. A URL has a password, so nothing here prints one.
2. What is unknown is refused: an option that has no effect, such as a wrong name for a file of
   certificates, would make the connection another one than its author believes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from mcp_core.urls import redacted_url

if TYPE_CHECKING:
    from urllib.parse import SplitResult

__all__ = ["RedisUrl"]

_DEFAULT_PORT: Final = 6379
_SCHEMES: Final = ("redis", "rediss", "unix")
_TLS_OPTIONS: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


class RedisUrl(Struct, frozen=True, kw_only=True):
    """A parsed URL. Make one with `RedisUrl.parse`.

    Attributes:
        host: the name or address, "" for a Unix socket.
        port: the TCP port.
        path: the Unix socket, "" for TCP.
        database: its number.
        user: the name of an ACL user, None for the default one.
        password: None if the server needs none.
        tls: whether the connection is TLS. The server's certificate and name are always verified.
        ca_file: the PEM file with the certificates to trust, None for the system's.
        certificate: the PEM file of a client's certificate, None for none.
        key: the PEM file with its key, None if it is in `certificate`.
    """

    host: str = ""
    port: int = _DEFAULT_PORT
    path: str = ""
    database: int = 0
    user: str | None = None
    password: str | None = None
    tls: bool = False
    ca_file: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return f"<RedisUrl {self.shown}>"

    @property
    def shown(self) -> str:
        """The URL without credentials and options."""
        if self.path:
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        database = f"/{self.database}" if self.database else ""
        return f"{'rediss' if self.tls else 'redis'}://{host}:{self.port}{database}"

    @classmethod
    def parse(cls, url: str) -> RedisUrl:
        """Return the parts of `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`.

        `rediss://` is the same over TLS, and has the options `ssl_ca_certs`, `ssl_certfile` and
        `ssl_keyfile`, names of files. `unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE]` is a Unix
        socket. User and password are percent-encoded.

        Raises:
            ValueError: the URL isn't of this form. The text has no credentials.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise _refused(url, "its host or port cannot be read") from None
        if parts.scheme not in _SCHEMES:
            raise _refused(url, "it has to begin with redis://, rediss:// or unix://")
        if parts.fragment:
            raise _refused(url, "it has a #, which has to be written as %23 in a password")
        options = _options(url, parts)
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        if user is not None and password is None:
            raise _refused(url, "it has a user and no password: write :PASSWORD@ or USER:PASSWORD@")
        database = _database(url, parts, options)
        if parts.scheme == "unix":
            if parts.hostname or not parts.path.startswith("/"):
                raise _refused(url, "a Unix socket is unix:// and an absolute path")
            path = unquote(parts.path)
            return cls(path=path, database=database, user=user, password=password)
        if not parts.hostname:
            raise _refused(url, "it has no host")
        return cls(
            host=parts.hostname,
            port=_DEFAULT_PORT if port is None else port,
            database=database,
            user=user,
            password=password,
            tls=parts.scheme == "rediss",
            ca_file=options.get("ssl_ca_certs"),
            certificate=options.get("ssl_certfile"),
            key=options.get("ssl_keyfile"),
        )


def _options(url: str, parts: SplitResult) -> dict[str, str]:
    allowed = ("db", *_TLS_OPTIONS) if parts.scheme == "rediss" else ("db",)
    options: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in allowed or name in options or not value:
            # The name is shown only if it is a known one: any other may be half of a password.
            known = f"the option {name}" if name in ("db", *_TLS_OPTIONS) else "an option"
            raise _refused(
                url,
                f"{known} of it is unknown here, empty, or there twice; it may have"
                f" {', '.join(allowed)}. For others make a client of coredis, and pass that",
            )
        options[name] = value
    if "ssl_keyfile" in options and "ssl_certfile" not in options:
        raise _refused(url, "it has ssl_keyfile without ssl_certfile")
    return options


def _database(url: str, parts: SplitResult, options: dict[str, str]) -> int:
    path = "" if parts.scheme == "unix" else parts.path.strip("/")
    if path and "db" in options:
        raise _refused(url, "it has two numbers of a database")
    number = options.get("db", path) or "0"
    if not (number.isascii() and number.isdigit()) or len(number) > 9:
        raise _refused(url, "its path has to be the number of a database")
    return int(number)


def _refused(url: str, problem: str) -> ValueError:
    return ValueError(f"the URL of Redis {redacted_url(url)} cannot be used: {problem}")
