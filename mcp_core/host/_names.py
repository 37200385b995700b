"""The names of tools, prompts and resources of many servers in one list.

1. A merged name depends only on the server and the name there. It is the same after a reconnect,
   and in whichever order servers connect.
2. No entry wins a collision: the name leads to neither, and the error names both. If the first one
   won, a server could take the place of another by being faster.
3. A table leads from a merged name back to its server. Merged names aren't parsed: `mcp__a__b__c`
   can be the tool `b__c` of `a` or the tool `c` of `a__b`.

Sources: the names of Claude Code; gemini-cli `packages/core/src/tools/mcp-tool.ts` for written
names; RFC 3986, section 2.1 for the URIs.
"""

from __future__ import annotations

import abc
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from mcp_core._errors import McpTrioError
from mcp_core._text import escape_text, shorten_text

if TYPE_CHECKING:
    from mcp_core.urls._normal_uri import UriSpellings

__all__ = [
    "MAX_NAME_LENGTH",
    "NameCollision",
    "NameScheme",
    "NameTable",
    "QualifiedName",
    "ResourceTable",
    "fit_name",
    "merged_name",
    "merged_prefix",
    "plain_name",
    "read_resource_label",
    "replace_unwritten",
    "resource_label",
    "written_names",
]

# What the APIs of common models accept as a tool's name.
MAX_NAME_LENGTH: Final = 64
_FITTING: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNFITTING: Final = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_LENGTH: Final = 8  # hex digits
# Characters kept of a name that doesn't fit, before an underscore and the digest.
_KEPT_LENGTH: Final = MAX_NAME_LENGTH - 1 - _DIGEST_LENGTH

# What Gemini CLI doesn't write in a name, its longest name, and what it keeps of a longer one.
_UNWRITTEN: Final = re.compile(r"[^a-zA-Z0-9_.-]")
_MAX_WRITTEN: Final = 63
_KEPT_BEGINNING, _KEPT_END = 28, 32

_GATEWAY: Final = "mcp-gateway://"
_GATEWAY_SCHEME: Final = "mcp-gateway:"
# Characters of a server's name that a label cannot have, or that are hard to type.
_NOT_IN_LABEL: Final = re.compile(r"[\x00-\x20%:\x7f-\xa0]")
_NOT_IN_SERVER: Final = re.compile(r"[\x00-\x20:\x7f-\xa0]")
_SHOWN: Final = 80  # characters of a name in an error

# Makes a merged name from a server's name and a name of its tool or prompt. It has to return the
# same text for the same names. `fit_name` then shortens a text that doesn't fit.
NameScheme: TypeAlias = Callable[[str, str], str]


class QualifiedName(NamedTuple):
    """The name of a `server`, and the `name` of a tool or prompt, or the URI of a resource, there.

    `str()` of it has both, with hidden characters escaped.
    """

    server: str
    name: str

    def __str__(self) -> str:
        return f"{_shown(self.name)} of {_shown(self.server)}"


class NameCollision(McpTrioError):
    """Several tools or prompts with one merged name, or several servers with one URI.

    Attributes:
        merged: the merged name, or the URI.
        names: the `QualifiedName` of each, sorted.

    Args:
        cure: what to do about it, for the text.
    """

    def __init__(
        self,
        merged: str,
        names: Sequence[QualifiedName],
        cure: str = "rename a server, or choose another scheme of names",
    ) -> None:
        self.merged = merged
        self.names = tuple(names)
        first, second, *others = map(str, self.names)
        more = f" and {len(others)} more" if others else ""
        super().__init__(f"{_shown(merged)} is the name of {first} and of {second}{more}: {cure}")


def _shown(text: str) -> str:
    return shorten_text(escape_text(text), _SHOWN)


def merged_name(server: str, name: str) -> str:
    """Return `mcp__<server>__<name>`, the default scheme. It may be too long: see `fit_name`."""
    return f"mcp__{server}__{name}"


def merged_prefix(server: str) -> str:
    """Return the text with which all merged names of `server` begin, in the default scheme.

    Merged names of other servers may begin with it too.
    """
    return _UNFITTING.sub("_", merged_name(server, ""))[:_KEPT_LENGTH]


def plain_name(server: str, name: str) -> str:
    """Return `name` alone, without `server`: a scheme for servers that share no names."""
    return name


def fit_name(text: str) -> str:
    """Return `text` if it is at most 64 characters of `[a-zA-Z0-9_-]`, else a name that is.

    Such a name begins like `text`, with underscores for other characters, and ends in an underscore
    and 8 hex digits of the SHA-256 of `text`.
    """
    if _FITTING.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{_UNFITTING.sub('_', text[:_KEPT_LENGTH])}_{digest}"


def replace_unwritten(text: str) -> str:
    """Return a name with the underscores that Gemini CLI writes, one for each unit of UTF-16."""
    return _UNWRITTEN.sub(lambda match: "_" * (1 + (match[0] > "\uffff")), text)


def written_names(server: str, tool: str) -> set[str]:
    """Return the names that Gemini CLI may write for a tool, alone and with the server's name.

    A long name lacks its middle.
    """
    names = (tool, f"mcp_{server}_{tool}", f"mcp__{server}__{tool}", f"{server}__{tool}")
    return {
        name if len(name) <= _MAX_WRITTEN else f"{name[:_KEPT_BEGINNING]}___{name[-_KEPT_END:]}"
        for name in map(replace_unwritten, names)
    }


class _ServerNames(abc.ABC):
    """The names of many servers, grouped by a merged name; the common part of both tables."""

    def __init__(self) -> None:
        self._names: dict[QualifiedName, str] = {}
        self._by_server: dict[str, list[QualifiedName]] = {}
        self._by_merged: dict[str, dict[QualifiedName, None]] = {}

    def __len__(self) -> int:
        return len(self._names)

    @abc.abstractmethod
    def _merge(self, server: str, name: str) -> str:
        """Return the text that leads to `name` of `server`, unless others have the same one."""

    def set_server(self, server: str, names: Iterable[str]) -> None:
        """Replace the `names` of `server`. A name that it lists twice counts once."""
        added = {QualifiedName(server, name): self._merge(server, name) for name in names}
        self.discard_server(server)
        self._names.update(added)
        self._by_server[server] = list(added)
        for name, merged in added.items():
            self._by_merged.setdefault(merged, {})[name] = None

    def discard_server(self, server: str) -> None:
        """Remove the names of `server`, if it has any."""
        for name in self._by_server.pop(server, ()):
            merged = self._names.pop(name)
            sharing = self._by_merged[merged]
            del sharing[name]
            if not sharing:
                del self._by_merged[merged]

    def collisions(self) -> list[NameCollision]:
        """Return the collisions, sorted by merged name: to show, or to raise the first."""
        return [
            self._collision(merged, sorted(names))
            for merged, names in sorted(self._by_merged.items())
            if len(names) > 1
        ]

    def _only(self, merged: str) -> QualifiedName | None:
        names = self._by_merged.get(merged)
        if names is None:
            return None
        if len(names) > 1:
            raise self._collision(merged, sorted(names))
        [name] = names
        return name

    def _collision(self, merged: str, names: list[QualifiedName]) -> NameCollision:
        """Build the error about `names`, which share a merged name."""
        return NameCollision(merged, names)


class NameTable(_ServerNames):
    """The merged names of many servers' tools, or of their prompts, and the way back.

    The length is the number of tools or prompts. Iteration yields those that can be called, each as
    a pair of its merged name and its `QualifiedName`.

    Args:
        scheme: makes a merged name, which `fit_name` then shortens.
    """

    def __init__(self, scheme: NameScheme = merged_name) -> None:
        super().__init__()
        self._scheme = scheme

    def _merge(self, server: str, name: str) -> str:
        return fit_name(self._scheme(server, name))

    def __iter__(self) -> Iterator[tuple[str, QualifiedName]]:
        for merged, names in self._by_merged.items():
            if len(names) == 1:
                yield merged, next(iter(names))

    def merged(self, server: str, name: str) -> str:
        """Return the merged name of `server`'s tool or prompt `name`.

        Raises:
            KeyError: the table doesn't have it.
            NameCollision: it shares the merged name with another one.
        """
        merged = self._names[QualifiedName(server, name)]
        self._only(merged)
        return merged

    def find(self, merged: str) -> QualifiedName | None:
        """Return the tool or prompt with the name `merged`, or None.

        Raises:
            NameCollision: there are several.
        """
        return self._only(merged)


class ResourceTable(_ServerNames):
    """The URIs of many servers' resources, and the way back from a URI on the wire.

    On the wire a resource has its own URI if only one server has it. Otherwise it has the longer
    form `mcp-gateway://<server>/<percent-encoded uri>`, by which every resource can be read. The
    length is the number of resources.
    """

    def __init__(self) -> None:
        super().__init__()
        # Made once a URI is asked for that no server lists as it is spelled.
        self._spellings: UriSpellings | None = None

    def set_server(self, server: str, names: Iterable[str]) -> None:
        super().set_server(server, names)
        self._spellings = None

    def discard_server(self, server: str) -> None:
        super().discard_server(server)
        self._spellings = None

    def _merge(self, server: str, name: str) -> str:
        return name

    def _collision(self, merged: str, names: list[QualifiedName]) -> NameCollision:
        label = _shown(resource_label(*names[0]))
        return NameCollision(merged, names, f"name the server, as in {label}")

    def wire_uri(self, server: str, uri: str) -> str:
        """Return the URI by which clients read `uri` of `server`, such as for a link in a result.

        Some URIs get the longer form because they could lead to another server: those that the
        server doesn't list, those with the scheme `mcp-gateway`, and those that begin with "@", as
        labels of `resource_label` do.
        """
        sharing = self._by_merged.get(uri, ())
        is_alone = len(sharing) == 1 and QualifiedName(server, uri) in sharing
        if is_alone and not _is_gateway_uri(uri) and not uri.startswith("@"):
            return uri
        # A name may hold halves of surrogate pairs: they have to come out as they went in.
        return _GATEWAY + "/".join(
            quote(part, "", "utf-8", "surrogatepass") for part in (server, uri)
        )

    def find(self, wire: str) -> QualifiedName | None:
        """Return server and URI for `wire`, a client's URI, or None if no server lists it.

        A URI that no server lists as it is spelled leads to the only one with its normal form. The
        longer form leads to its server even if that doesn't list the URI, or doesn't exist.

        Raises:
            NameCollision: several servers have the URI, and it names none of them.
        """
        if not _is_gateway_uri(wire):
            return self._only(wire) or self._only(self._respell(wire))
        server, slash, uri = wire[len(_GATEWAY) :].partition("/")
        if not slash or not server or wire[: len(_GATEWAY)].lower() != _GATEWAY:
            return None
        try:
            return QualifiedName(
                *(unquote(part, "utf-8", "surrogatepass") for part in (server, uri))
            )
        except UnicodeDecodeError:
            return None

    def _respell(self, uri: str) -> str:
        """Return the only listed URI with the normal form of `uri`, else `uri`."""
        if self._spellings is None:
            # On first use: most callers take a URI from a list.
            from mcp_core.urls._normal_uri import UriSpellings

            self._spellings = UriSpellings(self._by_merged)
        return self._spellings.find(uri) or uri


def _is_gateway_uri(uri: str) -> bool:
    return uri[: len(_GATEWAY_SCHEME)].lower() == _GATEWAY_SCHEME


def resource_label(server: str, uri: str) -> str:
    """Return `@<server>:<uri>`, the name of a resource for people.

    Colons, white space and percent signs in `server` are percent-encoded, so that
    `read_resource_label` finds its end. It isn't a URI.
    """
    return f"@{_NOT_IN_LABEL.sub(lambda match: quote(match[0], ''), server)}:{uri}"


def read_resource_label(label: str) -> QualifiedName | None:
    """Return server and URI of a label of `resource_label`, None if `label` isn't one."""
    server, colon, uri = label.removeprefix("@").partition(":")
    if not label.startswith("@") or not server or not colon or _NOT_IN_SERVER.search(server):
        return None
    return QualifiedName(unquote(server), uri)
