"""All that an address can mean to those who read it: proxies, servers, and parsers of hosts.

`/a/..;/b`, `/a%252fb` and `//a\\b` are one path to a proxy and another one to the server behind it,
and `0x7f.1` is 127.0.0.1 to most systems. A list that forbids looks at each reading, and one that
allows must find all of them allowed.

Sources: RFC 3986, 5.2.4 and 6.2.2; WHATWG URL, "host parser" and "path state"; Orange Tsai,
"Breaking Parser Logic" (2018).
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

__all__ = ["plain_host", "read_host", "read_target"]

# A longer address, or one that can be read in more ways, isn't compared. A server's address has
# about 100 characters and one reading.
_MAX_LENGTH: Final = 4096
_MAX_READINGS: Final = 64

_PARAMETERS: Final = re.compile(r";[^/?]*")
_SLASHES: Final = re.compile(r"//+")
_IGNORED: Final = re.compile(r"[\t\n\r]")  # WHATWG: removed before parsing
_ENDS: Final = re.compile(r"[\\/?#@]")
# `%u002e` of IIS, and `.` and `/` in more bytes than UTF-8 allows.
_OTHER_ENCODING: Final = re.compile(
    r"%u(?P<code>[0-9a-f]{4})|(?P<overlong>%c0%a[ef]|%e0%80%a[ef])", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def plain_host(host: str) -> str:
    """Return a host in lower case and in IDNA form, without brackets and a dot at its end.

    A host with `*` is a pattern, and has no form of an address.
    """
    host = host.lower().strip("[]").removesuffix(".")
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return host
    return host if "*" in host else _read_address(host) or host


def read_host(host: str) -> frozenset[str]:
    """Return a host's readings, each as `plain_host` has it.

    Args:
        host: the host without its port.
    """
    readings = set() if ":" in host else {host.lower().removesuffix(".")}
    for text in (host, unquote(host)):
        text = _IGNORED.sub("", unicodedata.normalize("NFKC", text))
        # A parser that ends the host at a backslash, or begins it after an @, sees another one.
        readings.update(plain_host(part) for part in (text, *_ENDS.split(text)) if part)
    if embedded := _embedded_address(host):
        readings.add(embedded)
    return frozenset(readings)


def _read_address(host: str) -> str | None:
    """Return the usual form of an IP address, or None for a name.

    An IPv4 address may be written as `inet_aton` reads it: `2130706433`, `0x7f.1` and `0177.0.0.1`
    are 127.0.0.1.
    """
    if ":" in host:
        try:
            address = ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return None
        mapped = address.ipv4_mapped  # RFC 5952, 5; before Python 3.13 its text is `::ffff:7f00:1`
        return str(address) if mapped is None else f"::ffff:{mapped}"
    parts = host.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) and len(part) < 20 for part in parts):
        return None
    try:
        *first, last = [_read_number(part) for part in parts]
        value = int.from_bytes(bytes(first)) << 8 * (4 - len(first))
        return str(ipaddress.IPv4Address(value + last)) if last < 256 ** (4 - len(first)) else None
    except ValueError:
        return None


def _read_number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


def _embedded_address(host: str) -> str | None:
    """Return the IPv4 address that an IPv6 address is connected to, such as `::ffff:127.0.0.1`."""
    try:
        address = ipaddress.IPv6Address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    embedded = address.ipv4_mapped or address.sixtofour
    return None if embedded is None else str(embedded)


@lru_cache(maxsize=256)  # an address is compared with each entry of a list
def read_target(target: str) -> frozenset[str] | None:
    """Return the readings of a path with a query, or None if there are too many.

    Programs may decode a path again, take `\\` for `/`, leave out parameters after `;`, empty
    segments or white space, or resolve `.` and `..`. Each of these gives another reading. A query
    is read as it is, and decoded.

    Args:
        target: the path and the query, as a request has it.
    """
    if len(target) > _MAX_LENGTH:
        return None
    path, mark, query = target.partition("?")
    paths = _closure(path)
    queries = _closure(query, is_path=False)
    if paths is None or queries is None or len(paths) * len(queries) > _MAX_READINGS:
        return None
    return frozenset(f"{each}{mark}{words}" for each in paths for words in queries)


def _closure(text: str, *, is_path: bool = True) -> set[str] | None:
    """Return all texts that the steps make of a text, in any order, or None above the limit."""
    found = {text}
    waiting = [text]
    while waiting:
        each = waiting.pop()
        for reading in _steps(each) if is_path else (unquote(each),):
            if reading not in found:
                found.add(reading)
                waiting.append(reading)
                if len(found) > _MAX_READINGS:
                    return None
    return found


def _steps(path: str) -> tuple[str, ...]:
    """Return what different programs make of a path, one step each."""
    return (
        unquote(path),
        _OTHER_ENCODING.sub(_decode_other, path),
        unicodedata.normalize("NFKC", path) if not path.isascii() else path,
        path.replace("\\", "/"),
        _PARAMETERS.sub("", path),
        _SLASHES.sub("/", path),
        _IGNORED.sub("", path),
        path.partition("\x00")[0],
        _without_dots(path),
    )


def _decode_other(match: re.Match[str]) -> str:
    if match["code"]:
        return chr(int(match["code"], 16))
    return "." if match["overlong"][-1] in "eE" else "/"


def _without_dots(path: str) -> str:
    """Return a path without its segments `.` and `..` (RFC 3986, 5.2.4)."""
    segments: list[str] = []
    names = path.split("/")
    for name in names:
        if name == "..":
            if len(segments) > 1:
                segments.pop()
        elif name != ".":
            segments.append(name)
    if names[-1] in (".", ".."):
        segments.append("")
    return "/".join(segments) or "/"
