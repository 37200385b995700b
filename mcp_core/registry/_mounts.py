"""Servers mounted in others: the form that their entries have there.

1. The outer server's tables have a `MountedEntry` for each entry of a mounted server, and the next
   outer server's tables a `MountedEntry` for that one. So lookups, lists and capabilities treat all
   entries alike, and a call passes one `Mount` for each server that it enters.
2. Handlers and middlewares see a request with their own server's names, as if it were served alone.
3. A mounted server's middlewares run before arguments are read, as the outer server's do.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from msgspec.structs import replace

from mcp_core._patterns import compile_on_first_use
from mcp_core.registry.entries._invocation import Invocation, MountedCall
from mcp_core.types import CallToolParams, CompleteParams, GetPromptParams, PromptReference

from ._context import mounted_context
from ._errors import DeclarationError
from ._validation import check_tool_name, plain_name
from ._visibility import Visibility, set_enabled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from msgspec import Struct

    from mcp_core.protocol.messages._events import RequestReceived
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.registry.entries._completion import Completers
    from mcp_core.registry.tasks._options import TaskOptions

    from ._context import Context
    from ._server import Server

__all__ = ["Mount", "check_own", "joined_instructions", "make_mount", "set_enabled_on_outer"]

_PREFIX: Final = compile_on_first_use(r"[A-Za-z0-9_.-]*[A-Za-z0-9.-]")
_PREFIXED: Final = frozenset({"tool", "prompt"})  # the kinds whose names get the prefix


class Mount:
    """One server, mounted in another with a prefix. `Server.mount` makes it."""

    __slots__ = ("__weakref__", "_outer", "prefix", "server")

    def __init__(self, outer: Server, server: Server, prefix: str) -> None:
        # Weak, since the outer server has this: one that is dropped is gone at once, with the names
        # that it forbids to the mounted one.
        self._outer = ref(outer)
        self.server = server
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"<Mount of {self.server!r} as {self.prefix!r}>"

    @property
    def outer(self) -> Server | None:
        """The server that it is mounted in, None if that was dropped."""
        return self._outer()

    def key(self, kind: str, key: str) -> str:
        """Return the name or URI in the outer server of what is `key` in the mounted one."""
        return f"{self.prefix}_{key}" if self.prefix and kind in _PREFIXED else key

    def wrap(self, kind: str, entry: Any) -> MountedEntry:
        """Return an entry of the mounted server for the outer one."""
        if kind in _PREFIXED:
            name = self.key(kind, entry.name)
            if kind == "tool" and self.prefix:
                check_tool_name(name)
            return MountedNamedEntry(self, entry, name)
        return MountedEntry(self, entry)

    def enter(self, context: Context) -> Context:
        """Return the context of the mounted server's handlers, for one of the outer server."""
        return mounted_context(context, self.server, self._inner_request)

    def _inner_request(self, request: RequestReceived) -> RequestReceived:
        """Return a request with the name that the mounted server has for what it names."""
        if not self.prefix:
            return request
        match request.params:
            case (CallToolParams() | GetPromptParams()) as params:
                return replace(request, params=self._renamed(params))
            case CompleteParams(ref=PromptReference() as ref) as params:
                return replace(request, params=replace(params, ref=self._renamed(ref)))
        return request

    def _renamed(self, named: Any) -> Any:
        return replace(named, name=named.name.removeprefix(f"{self.prefix}_"))

    def answer(self, prepare: Callable[[], Any], task: TaskOptions | None = None) -> Any:
        """Return what `prepare` returns for a request, or the `MountedCall` that will call it."""
        if self.server.middlewares:
            return MountedCall(self, self.server.middlewares, prepare, task)
        found = prepare()
        if isinstance(found, (Invocation, MountedCall)):
            found.mounts = (self, *found.mounts)
        return found


class MountedEntry:
    """An entry of a mounted server: what isn't below is as in its own server."""

    __slots__ = ("_entry", "_is_disabled", "_mount", "number")
    number: int  # the number of the declaration on the outer server

    def __init__(self, mount: Mount, entry: Any) -> None:
        self._mount = mount
        self._entry = entry
        self._is_disabled = False  # on the outer server

    def __repr__(self) -> str:
        return f"{self._entry!r} of {self._mount.server.info.name!r}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    @property
    def visibility(self) -> Visibility | None:
        """Its callers. It may be disabled on its own server, on the outer one, or on both."""
        found: Visibility | None = self._entry.visibility
        if not self._is_disabled:
            return found
        function, label = (None, "") if found is None else (found.function, found.label)
        return Visibility(function, label, is_enabled=False)

    def set_enabled(self, label: str, *, enabled: bool) -> bool:
        """Show or hide it on the outer server. Return True if that changes what clients see.

        Raises:
            DeclarationError: it is disabled on its own server.
        """
        own: Visibility | None = self._entry.visibility
        disabled_there = own is not None and not own.is_enabled
        if enabled and disabled_there:
            raise DeclarationError(
                f"the {label} is disabled on its mounted server: enable it there"
            )
        changes = enabled == self._is_disabled and not disabled_there
        self._is_disabled = not enabled
        return changes

    @property
    def completers(self) -> MountedCompleters:
        """The completers of a prompt or template."""
        return MountedCompleters(self._mount, self._entry.completers)

    def prepare(self, *arguments: Any) -> Any:
        """Prepare the entry's own call, at once or later within a `MountedCall`."""
        return self._mount.answer(partial(self._entry.prepare, *arguments))

    def check_own(self, kind: str, key: str) -> None:
        """Raise `DeclarationError`: the outer server cannot remove this."""
        name = self._mount.server.info.name
        raise DeclarationError(
            f"the {kind} {key!r} belongs to the mounted server {name!r}: remove it there"
        )


class MountedNamedEntry(MountedEntry):
    """A tool or a prompt of a mounted server, with its prefix."""

    __slots__ = ("name",)

    def __init__(self, mount: Mount, entry: Any, name: str) -> None:
        super().__init__(mount, entry)
        self.name = name

    def list_entry(self, dialect: Dialect) -> Struct:
        """Return the list's entry in this revision."""
        listed: Struct = self._entry.list_entry(dialect)
        return replace(listed, name=self.name)

    def prepare(self, arguments: Any, dialect: Dialect, task: TaskOptions | None = None) -> Any:
        further = () if task is None else (task,)  # prompts don't run as tasks
        prepare = partial(self._entry.prepare, arguments, dialect, *further)
        return self._mount.answer(prepare, task)


class MountedCompleters:
    """The completers of a prompt or template of a mounted server."""

    __slots__ = ("_completers", "_mount")

    def __init__(self, mount: Mount, completers: Completers) -> None:
        self._mount = mount
        self._completers = completers

    def __repr__(self) -> str:
        return f"{self._completers!r} of {self._mount.server.info.name!r}"

    def __bool__(self) -> bool:
        return bool(self._completers)

    def add(self, argument: str, completer: object, owner: str) -> None:
        """Raise `DeclarationError`: its own server declares completions."""
        name = self._mount.server.info.name
        raise DeclarationError(
            f"{owner} belongs to the mounted server {name!r}: declare its completions there"
        )

    def prepare(self, params: Any, dialect: Dialect) -> Any:
        """Return what the completers themselves return, as an entry does."""
        return self._mount.answer(partial(self._completers.prepare, params, dialect))


def make_mount(outers: Sequence[Server], other: Server, prefix: str) -> Mount | None:
    """Return the mount of `other` in the first of `outers`, which isn't registered yet.

    It is None if `other` is mounted there with that prefix already. The others of `outers` are the
    servers in which the first one is mounted.

    Raises:
        DeclarationError: as by `Server.mount`.
    """
    outer = outers[0]
    name = outer.info.name
    prefix = plain_name(prefix)
    if prefix and not _PREFIX.fullmatch(prefix):
        raise DeclarationError(
            f"{prefix!r} cannot be a prefix: use A-Z, a-z, 0-9, '.', '_' and '-'; the underscore"
            " after it is added"
        )
    mounted = other.info.name
    if other is outer:
        raise DeclarationError(f"server {name!r} cannot be mounted in itself")
    if outer in other.mounted_servers():
        raise DeclarationError(
            f"server {mounted!r} cannot be mounted in {name!r}, which is mounted in it"
        )
    if any(each.server is other and each.prefix == prefix for each in outer.mounts):
        return None
    added = other.extensions
    for server in outers:
        settings = server.extensions
        for identifier in settings.keys() & added.keys():
            if settings[identifier] != added[identifier]:
                raise DeclarationError(
                    f"servers {server.info.name!r} and {mounted!r} declare the extension"
                    f" {identifier!r} with different settings"
                )
    return Mount(outer, other, prefix)


def set_enabled_on_outer(entry: Any, label: str, *, enabled: bool) -> bool:
    """Show or hide `entry` on a server with mounts. Return True if clients see another list.

    Raises:
        DeclarationError: it is disabled on a mounted server.
    """
    if isinstance(entry, MountedEntry):
        return entry.set_enabled(label, enabled=enabled)
    return set_enabled(entry, label, enabled=enabled)


def check_own(entry: Any, kind: str, key: str) -> None:
    """Raise `DeclarationError` if `entry` belongs to a mounted server."""
    if isinstance(entry, MountedEntry):
        entry.check_own(kind, key)


def joined_instructions(server: Server) -> str | None:
    """Return the instructions of `server` and of all that are mounted in it, for the model."""
    texts = [server.instructions or "", *_instructions_of(server.mounts, "")]
    return "\n\n".join(filter(None, texts)) or None


def _instructions_of(mounts: Sequence[Mount], prefix: str) -> list[str]:
    texts = []
    for mount in mounts:
        whole = f"{prefix}{mount.prefix}_" if mount.prefix else prefix
        if mount.server.instructions:
            names = f" (its names begin with {whole})" if whole else ""
            texts.append(f"# {mount.server.info.name}{names}\n\n{mount.server.instructions}")
        texts += _instructions_of(mount.server.mounts, whole)
    return texts
