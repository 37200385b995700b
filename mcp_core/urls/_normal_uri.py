r"""The normal form of a URI: two spellings with the same one name the same resource.

1. Case, percent-encoding, default ports and an empty path are normalized as in RFC 3986, 6.2.2 and
   6.2.3. A character that a URI cannot have is percent-encoded first, as in an IRI (RFC 3987, 3.1):
   clients on the official Python SDK 1.x read `note://caf%C3%A9` where `note://café` is listed.
2. **Dot segments are not removed.** A URI with `..`, encoded or not, has no normal form: it could
   leave the directory that a declaration names. Only its exact spelling is known.
3. **The exact spelling comes first**, and a normal form that several known URIs have leads to none
   of them. URIs are compared in this form, and kept as they were written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from mcp_core._patterns import compile_on_first_use

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable

__all__ = ["UriSpellings", "normal_template", "normal_uri"]

# Most URIs are in normal form already. With `..` or `%` they are looked at more closely.
_NORMAL: Final = compile_on_first_use(
    r"[a-z][a-z0-9+.\-]*:(?:(?!//)|//[a-z0-9._~\-]*/)[A-Za-z0-9\-._~!$&'()*+,;=:@/?#]*"
)
_PARTS: Final = compile_on_first_use(
    r"([A-Za-z][A-Za-z0-9+.\-]*):(?://([^/?#]*))?([^?#]*)(.*)",
    16,  # re.DOTALL
)
_BROKEN: Final = compile_on_first_use(r"%(?![0-9A-Fa-f]{2})")
_TRIPLET: Final = compile_on_first_use(r"%[0-9A-Fa-f]{2}")
# Characters. A longer URI is only known by its exact spelling: to normalize one of megabytes takes
# a second, and a peer chooses how long it is.
_MAX_LENGTH: Final = 8 * 1024
_EXPRESSION: Final = compile_on_first_use(r"\{[^{}]*\}")
# Of RFC 3986, 2.2 and 2.3: these stay as they are, and only the unreserved are decoded.
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_KEPT: Final = "!$&'()*+,;=:@/?%-._~"
_DEFAULT_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
# Stands for an expression while the text around it is normalized. No URI has it: it is encoded.
_MARK: Final = "\x00"


def normal_uri(uri: str) -> str | None:
    """Return the normal form of a URI or IRI.

    Return None if it has none: it isn't absolute, is longer than 8 KiB, has a `%` without two hex
    digits, or has `..` as its host or as a part of its path.
    """
    if ".." not in uri and _NORMAL.fullmatch(uri):
        return uri
    return None if _MARK in uri else _normalize(uri)


def normal_template(text: str) -> str | None:
    """Return the normal form of a URI template: only the text between its expressions changes.

    Return None if it has none, as for `normal_uri`. The text without its expressions must be a URI.
    """
    expressions = _EXPRESSION.findall(text)
    if not expressions:
        return normal_uri(text)
    if _MARK in text:
        return None
    found = _normalize(_EXPRESSION.sub(_MARK, text))
    if found is None:
        return None
    pieces = found.split(_MARK)
    return "".join(piece for pair in zip(pieces, [*expressions, ""], strict=True) for piece in pair)


def _normalize(text: str) -> str | None:
    match = _PARTS.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None or _BROKEN.search(text):
        return None
    scheme, authority, path, rest = match.groups()
    if ".." in _segments(f"{authority or ''}/{path}"):
        return None
    scheme = scheme.lower()
    try:
        if authority is not None:
            authority = _authority(scheme, authority)
            if not path and not authority.endswith(_MARK):
                path = "/"
        query, fragment_mark, fragment = rest.partition("#")
        rest = _encode(query) + fragment_mark + _encode(fragment)
        path = _encode(path)
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    return f"{scheme}:{path}{rest}" if authority is None else f"{scheme}://{authority}{path}{rest}"


def _segments(path: str) -> list[str]:
    """Return the host and the segments of a path as a careless reader sees them."""
    return unquote(path).replace("\\", "/").split("/")


def _authority(scheme: str, text: str) -> str:
    user, at, address = text.rpartition("@")
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):  # no port, or the colons of an IPv6 address
        host, port = address, ""
    if host.startswith("[") and host.endswith("]") and host.isascii():
        host = host.lower()
    else:  # encoded first: only ASCII has one lower case, and an encoded letter has one too
        host = _encode(_encode(host).lower()).replace(":", "%3A")
    port = "" if port == _DEFAULT_PORTS.get(scheme) else port
    return f"{_encode(user)}{at}{host}{':' if port else ''}{_encode(port)}"


def _encode(text: str) -> str:
    """Return a part of a URI with the percent-encoding that it needs, and none that it does not."""
    text = _TRIPLET.sub(_decode_unreserved, text) if "%" in text else text
    return _MARK.join(quote(piece, safe=_KEPT) for piece in text.split(_MARK))


def _decode_unreserved(triplet: re.Match[str]) -> str:
    written = triplet[0]
    character = chr(int(written[1:], 16))
    return character if character in _UNRESERVED else written.upper()


class UriSpellings:
    """The way from a normal form back to known URIs, which are kept as they were written.

    Look for the exact spelling first: it wins over all others.

    Args:
        uris: the URIs that are known, or templates.
        normalize: returns the normal form of one, or None.
    """

    __slots__ = ("_by_normal", "_normalize")

    def __init__(
        self, uris: Iterable[str] = (), normalize: Callable[[str], str | None] = normal_uri
    ) -> None:
        self._normalize = normalize
        self._by_normal: dict[str, dict[str, None]] = {}
        for uri in uris:
            self.add(uri)

    def __repr__(self) -> str:
        return f"<UriSpellings of {len(self._by_normal)} URIs>"

    def __len__(self) -> int:
        return len(self._by_normal)

    def add(self, uri: str) -> None:
        """Remember a URI that is known now. Do nothing if it has no normal form."""
        normal = self._normalize(uri)
        if normal is not None:
            self._by_normal.setdefault(normal, {})[uri] = None

    def discard(self, uri: str) -> None:
        """Forget a URI, if it was added."""
        normal = self._normalize(uri)
        spellings = self._by_normal.get(normal) if normal is not None else None
        if normal is not None and spellings is not None:
            spellings.pop(uri, None)
            if not spellings:
                del self._by_normal[normal]

    def find_all(self, uri: str) -> list[str]:
        """Return the known URIs with the normal form of `uri`."""
        normal = self._normalize(uri)
        return [] if normal is None else list(self._by_normal.get(normal, ()))

    def find(self, uri: str) -> str | None:
        """Return the known URI with the normal form of `uri`, None if none or several have it."""
        found = self.find_all(uri)
        return found[0] if len(found) == 1 else None
