"""The declarations of a server: its tables, and their entries on servers that it is mounted in.

1. An entry is inserted into all tables where it belongs, or into none.
2. An outer server's tables have an entry of their own for each of a mounted server's.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from mcp_core.protocol.subscriptions._server import Change, changes

from ._errors import DeclarationError
from ._visibility import set_enabled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcp_core.registry.entries._custom_methods import CustomMethodEntry
    from mcp_core.registry.entries._prompts import PromptEntry
    from mcp_core.registry.entries._resources import ResourceEntry, TemplateEntry
    from mcp_core.registry.entries._tools import ToolEntry

    from ._lookup import RequestLookup
    from ._mounts import Mount
    from ._server import Server

__all__ = ["LIST_CHANGES", "Declarations"]

_RESOURCES: Final = changes(resources=True)
# The kinds of declarations, with the change of a list that each of them is.
LIST_CHANGES: Final[Mapping[str, tuple[Change, ...]]] = {
    "tool": changes(tools=True),
    "prompt": changes(prompts=True),
    "resource": _RESOURCES,
    "resource template": _RESOURCES,
    "method": (),
}
# By the `kind` of `Server.enable`: the kinds of declarations that it may mean.
_DISABLED_KINDS: Final[Mapping[str | None, Sequence[str]]] = {
    None: ("tool", "prompt", "resource", "resource template"),
    "tool": ("tool",),
    "prompt": ("prompt",),
    "resource": ("resource", "resource template"),
}


class Declarations:
    """The declarations of one server, and the mounts of it and in it.

    Args:
        server: the server.

    Attributes:
        tools, prompts, resources, templates, methods: the entries by name, URI or URI template.
        by_kind: these tables by the kind's name in errors.
        mounts: of the servers that are mounted in this one.
        outer_mounts: where this one is mounted. They don't keep an outer server alive.
        lookup: learns the spellings of resources. The server sets it.
    """

    lookup: RequestLookup

    def __init__(self, server: Server) -> None:
        self._server = ref(server)
        self.tools: dict[str, ToolEntry] = {}
        self.prompts: dict[str, PromptEntry] = {}
        self.resources: dict[str, ResourceEntry] = {}
        self.templates: dict[str, TemplateEntry] = {}
        self.methods: dict[str, CustomMethodEntry] = {}
        self.by_kind: dict[str, dict[str, Any]] = {
            "tool": self.tools,
            "prompt": self.prompts,
            "resource": self.resources,
            "resource template": self.templates,
            "method": self.methods,
        }
        self.mounts: list[Mount] = []
        self.outer_mounts: tuple[ref[Mount], ...] = ()
        self._numbers = count()

    def __repr__(self) -> str:
        return f"<Declarations: {self.text}>"

    @property
    def text(self) -> str:
        """How many of each kind there are, such as "2 tools, 1 prompts"."""
        counts = (
            (len(self.tools), "tools"),
            (len(self.resources) + len(self.templates), "resources"),
            (len(self.prompts), "prompts"),
            (len(self.methods), "methods"),
        )
        return ", ".join(f"{n} {kind}" for n, kind in counts if n) or "nothing"

    def add(self, kind: str, key: str, entry: Any) -> None:
        """Insert `entry` here, and on all servers in which this one is mounted.

        Raises:
            DeclarationError: one of them has a declaration of that kind under its key already.
        """
        self._insert([(kind, *placed) for placed in self._placements(kind, key, entry)])

    def add_mount(self, mount: Mount) -> None:
        """Insert all entries of a mounted server here, and on all servers around this one.

        Raises:
            DeclarationError: a name or URI is in use.
        """
        other = mount.server._declared
        self._insert(
            [
                (kind, *placed)
                for kind, entries in other.by_kind.items()
                for key, entry in entries.items()
                for placed in self._placements(kind, mount.key(kind, key), mount.wrap(kind, entry))
            ]
        )
        self.mounts.append(mount)
        live = (ref(each) for each, _ in other._live_outer_mounts())
        other.outer_mounts = (*live, ref(mount))

    def remove(self, kind: str, key: str) -> None:
        """Remove an entry from here, and from all servers in which this one is mounted.

        Raises:
            KeyError: there is none.
            DeclarationError: it belongs to a mounted server.
        """
        entry = self.by_kind[kind][key]
        if self.mounts:
            from ._mounts import check_own

            check_own(entry, kind, key)
        for declared, name, _ in self._placements(kind, key, entry):
            del declared.by_kind[kind][name]
            if kind.startswith("resource"):
                declared.lookup.remove_spelling(name)

    def set_enabled(self, name: str, kind: str | None, *, enabled: bool) -> tuple[Change, ...]:
        """Show or hide an entry, and return how that changes a list.

        Raises:
            KeyError, ValueError, DeclarationError: as for `Server.enable`.
        """
        kinds = _DISABLED_KINDS.get(kind)
        if kinds is None:
            raise ValueError(f"kind is 'tool', 'prompt' or 'resource', not {kind!r}")
        found = [each for each in kinds if name in self.by_kind[each]]
        if not found:
            raise KeyError(name)
        if len(found) > 1:
            raise ValueError(f"{name!r} is a {' and a '.join(found)}: say which, by kind=")
        entry = self.by_kind[found[0]][name]
        change = set_enabled
        if self.mounts:
            from ._mounts import set_enabled_on_outer as change
        is_other = change(entry, f"{found[0]} {name!r}", enabled=enabled)
        return LIST_CHANGES[found[0]] if is_other else ()

    def with_outer(self) -> list[Server]:
        """Return this server and all in which it is mounted, each once."""
        server = self._server()
        assert server is not None, "the server has this"
        if not self.outer_mounts:
            return [server]
        found = {server: None}
        for _, outer in self._live_outer_mounts():
            found.update(dict.fromkeys(outer._declared.with_outer()))
        return list(found)

    def _placements(
        self, kind: str, key: str, entry: Any
    ) -> Iterator[tuple[Declarations, str, Any]]:
        """Yield these declarations and each around them, with the entry's key and form there.

        A server in which this one is mounted in two ways comes twice.
        """
        yield self, key, entry
        for mount, outer in self._live_outer_mounts():
            yield from outer._declared._placements(
                kind, mount.key(kind, key), mount.wrap(kind, entry)
            )

    def _insert(self, placements: Sequence[tuple[str, Declarations, str, Any]]) -> None:
        """Insert entries, by kind, declarations and key, if there is room for all of them."""
        taken: dict[tuple[str, Declarations, str], Any] = {}
        for kind, declared, key, entry in placements:
            other = declared.by_kind[kind].get(key) or taken.get((kind, declared, key))
            if other is not None:
                outer = declared._server() if declared is not self else None
                where = "" if outer is None else f" on server {outer.info.name!r}"
                raise DeclarationError(
                    f"there is a {kind} {key!r} already{where}: {other.function.label}"
                )
            taken[kind, declared, key] = entry
        for (kind, declared, key), entry in taken.items():
            entry.number = next(declared._numbers)
            declared.by_kind[kind][key] = entry
            if kind.startswith("resource"):
                declared.lookup.add_spelling(key)

    def _live_outer_mounts(self) -> list[tuple[Mount, Server]]:
        found = []
        for each in self.outer_mounts:
            mount = each()
            outer = None if mount is None else mount.outer
            if mount is not None and outer is not None:
                found.append((mount, outer))
        return found
