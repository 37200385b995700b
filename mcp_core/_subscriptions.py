"""Changes: who wants to be told of what, and what is still to be told to whom.

A change is a level, not an event: it says "read again", so telling it once is as good as telling it a hundred times. The
whole file follows from that. What somebody wants is a set of `Change`s, and what is still to be told is a subset of it: a
listener who does not read costs no more than what it asked for, and never misses the last change.

Revisions say the same in two ways. Until 2025-11-25 a session hears of every list by itself, and of a resource after
`resources/subscribe`. Since 2026-07-28 it hears of what a `subscriptions/listen` asked for, with the id of that request on
each message. To `Interests` the first is an interest without an id. The client's end is `_listening.py`.

Rules of this file:

1. A URI means that resource and no other. The specification lets an update name a part of what was asked for, but what is a
   part of what only a server's author knows: who wants the whole to be told of says so for the whole.
2. Nothing is sent on a subscription before its acknowledgement, and nothing after its end. The end said by a server is the
   result of the listen request alone; two pages of 2026-07-28 contradict each other on that.
3. How a revision does it is read from its rows: has it `subscriptions/listen` or not.

It does not know connections, nor who is allowed to hear of what. Tasks are not in it: what is told of them is their state.
Sources: server/tools, server/prompts and server/resources of all revisions; basic/patterns/subscriptions of 2026-07-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from . import types as t
from ._capabilities import has
from ._errors import Fault, LocalProtocolError
from ._methods import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ._config import Config
    from ._dialects import Dialect
    from .types import RequestId, SubscriptionFilter

__all__ = [
    "ACKNOWLEDGED",
    "LISTEN",
    "LISTS",
    "UPDATED",
    "Change",
    "Farewell",
    "Interests",
    "Notice",
    "as_filter",
    "by_asking",
    "changes",
    "named",
    "offered",
]

LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"


class Change(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Something that a server offers has changed: one of its lists (`list`), or the resource with the URI `uri`. What was
    read of it before may be out of date. One of the two is None.

    Raises:
        ValueError: both are None, or neither.
    """

    list: Literal["tools", "prompts", "resources"] | None = None
    uri: str | None = None

    def __post_init__(self) -> None:
        if (self.list is None) is (self.uri is None):
            raise ValueError("what changes is either a list or a resource")

    @property
    def method(self) -> str:
        """The notification that tells it, in every revision."""
        return UPDATED if self.list is None else f"notifications/{self.list}/list_changed"


_TOOLS, _PROMPTS, _RESOURCES = Change("tools"), Change("prompts"), Change("resources")
LISTS: Final = {change.method: change for change in (_TOOLS, _PROMPTS, _RESOURCES)}


def changes(
    *, tools: bool = False, prompts: bool = False, resources: bool = False, uris: Iterable[str] = ()
) -> tuple[Change, ...]:
    """The changes of these lists and of the resources with these URIs, each once.

    Raises:
        ValueError: there are none.
        TypeError: `uris` is one string.
    """
    if isinstance(uris, str):
        raise TypeError("uris is several URIs, not one string")
    wanted = ((_TOOLS, tools), (_PROMPTS, prompts), (_RESOURCES, resources))
    found = dict.fromkeys(change for change, wants in wanted if wants)
    found.update((Change(uri=uri), None) for uri in uris)
    if not found:
        raise ValueError("name a list or a resource")
    return tuple(found)


def named(wish: SubscriptionFilter) -> dict[Change, None]:
    """What a filter names, each once."""
    flags = (wish.tools_list_changed, wish.prompts_list_changed, wish.resources_list_changed)
    found = {change: None for change, flag in zip(LISTS.values(), flags, strict=True) if flag}
    found.update((Change(uri=uri), None) for uri in wish.resource_subscriptions or ())
    return found


def as_filter(wanted: Iterable[Change]) -> SubscriptionFilter:
    wanted = tuple(wanted)
    return t.SubscriptionFilter(
        tools_list_changed=_TOOLS in wanted or None,
        prompts_list_changed=_PROMPTS in wanted or None,
        resources_list_changed=_RESOURCES in wanted or None,
        resource_subscriptions=[change.uri for change in wanted if change.uri is not None] or None,
    )


def offered(dialect: Dialect, capabilities: Any, wanted: Iterable[Change]) -> dict[Change, None]:
    """What of `wanted` a server with these capabilities tells."""
    rows = dialect.receives[Role.CLIENT]
    return {change: None for change in wanted if has(capabilities, rows[change.method].needs)}


def by_asking(dialect: Dialect) -> bool:
    """Whether one hears of changes only where one asked for them by a request that lasts."""
    return LISTEN in dialect.receives[Role.SERVER]


# -- A server's side -------------------------------------------------------------------------------------------------------


class Notice(Struct):
    """A notification to send in `dialect`. `related` is the listen request that it belongs to, None for a session."""

    dialect: Dialect
    related: RequestId | None
    method: str
    params: t.NotificationParams


class Farewell(Struct):
    """How to end the listen request `id`: tell the `rest`, then answer it with `result`."""

    dialect: Dialect
    id: RequestId
    rest: list[Notice]
    result: t.ListenResult


class _Interest(Struct):
    """What is wanted by one listen request or by the session, and what of it has changed since it was told, oldest first."""

    dialect: Dialect
    wanted: dict[Change, None]
    changed: dict[Change, None] = {}


class Interests:
    """What the peer of one connection wants to be told of, by its session and by its listen requests.

    `publish` each change, then send what `next_notice` gives for as long as there is room for it.

    `config` is what this server declares, for nothing else is ever told, and its limits.
    """

    __slots__ = ("_config", "_interests", "_limits", "_uris_watched", "_waiting")

    def __init__(self, config: Config) -> None:
        self._config = config
        self._limits = config.limits
        self._interests: dict[RequestId | None, _Interest] = {}  # the session's under None
        self._waiting: dict[RequestId | None, None] = {}  # those with changes to tell; served in turn
        self._uris_watched = 0

    def __repr__(self) -> str:
        session = "a session and " if None in self._interests else ""
        return f"<Interests of {session}{self.streams} streams, {self._uris_watched} URIs, {len(self._waiting)} waiting>"

    def __contains__(self, id: RequestId) -> bool:
        """Whether `id` is a listen request that has not ended."""
        return id in self._interests

    @property
    def streams(self) -> int:
        """Listen requests that have not ended."""
        return len(self._interests) - (None in self._interests)

    # -- Who wants what --------------------------------------------------------------------------------------------------

    def remember(self, dialect: Dialect) -> None:
        """There was a handshake: tell of every list from now on, unless in this revision one has to ask for that."""
        if not by_asking(dialect) and None not in self._interests:
            self._interests[None] = _Interest(
                dialect, offered(dialect, self._config.capabilities, LISTS.values())
            )

    def subscribe(self, dialect: Dialect, uri: str) -> None:
        """The session wants to be told of updates of a resource, whether or not there is one. Twice is once.

        Raises:
            LocalProtocolError: it is too long, or one too many; `fault` says which.
        """
        self.remember(dialect)
        wanted = self._interests[None].wanted
        change = Change(uri=uri)
        if change not in wanted:
            self._watch([change])
            wanted[change] = None

    def unsubscribe(self, uri: str) -> None:
        """The session no longer wants that; if it never did, nothing happens."""
        change = Change(uri=uri)
        session = self._interests.get(None)
        if session is None or change not in session.wanted:
            return
        del session.wanted[change]
        self._uris_watched -= 1
        session.changed.pop(change, None)
        if not session.changed:
            self._waiting.pop(None, None)

    def listen(self, id: RequestId, dialect: Dialect, wish: SubscriptionFilter) -> Notice:
        """A listen request. Gives its acknowledgement, to be sent before anything else is asked of this object: it names
        what of the wish will be told, and every change from here on is.

        Raises:
            LocalProtocolError: it is one too many, or a URI of it is or is too long; `fault` says which.
        """
        assert id not in self._interests, "an id is in use until its request has ended"
        most = self._limits.listens
        if self.streams >= most:
            raise LocalProtocolError(f"at most {most} subscriptions at once; end one first", Fault.BUSY)
        wanted = offered(dialect, self._config.capabilities, named(wish))
        self._watch([change for change in wanted if change.uri is not None])
        self._interests[id] = _Interest(dialect, wanted)
        params = t.AcknowledgedParams(meta=_subscription(id), notifications=as_filter(wanted))
        return Notice(dialect, id, ACKNOWLEDGED, params)

    def cancel(self, id: RequestId) -> bool:
        """The peer ends its listen request: nothing more is sent for it. False if there is none."""
        interest = self._interests.pop(id, None)
        if interest is None:
            return False
        self._uris_watched -= sum(change.uri is not None for change in interest.wanted)
        self._waiting.pop(id, None)
        return True

    def end(self) -> list[Farewell]:
        """End everything from our side. Gives for each listen request how to end it; a session just hears no more."""
        ended = [
            Farewell(
                interest.dialect,
                id,
                [_notice(id, interest, change) for change in interest.changed],
                t.ListenResult(meta=_subscription(id)),
            )
            for id, interest in self._interests.items()
            if id is not None
        ]
        self._interests.clear()
        self._waiting.clear()
        self._uris_watched = 0
        return ended

    def _watch(self, resources: list[Change]) -> None:
        longest, most = self._limits.uri, self._limits.uris
        for change in resources:
            assert change.uri is not None
            if len(change.uri) > longest:
                raise LocalProtocolError(f"a URI has at most {longest} characters here", Fault.INVALID_PARAMS)
        if self._uris_watched + len(resources) > most:
            raise LocalProtocolError(f"at most {most} URIs can be watched at once", Fault.BUSY)
        self._uris_watched += len(resources)

    # -- What is to be told ----------------------------------------------------------------------------------------------

    def publish(self, change: Change) -> bool:
        """Something has changed. True if that is to be told to this peer: then ask for notices."""
        told = False
        for id, interest in self._interests.items():
            if change in interest.wanted:
                interest.changed[change] = None
                self._waiting[id] = None
                told = True
        return told

    def next_notice(self, has_room: Callable[[RequestId | None], bool] | None = None) -> Notice | None:
        """The next notification to send, None if there is none, or room for none. It counts as told.

        Who listens is served in turn. `has_room` tells whether more can be sent now for a listen request, or for the session
        (None); without it everybody has.
        """
        for id in self._waiting:
            if has_room is None or has_room(id):
                break
        else:
            return None
        interest = self._interests[id]
        change = next(iter(interest.changed))
        del interest.changed[change]
        del self._waiting[id]
        if interest.changed:
            self._waiting[id] = None  # behind the others
        return _notice(id, interest, change)


def _notice(id: RequestId | None, interest: _Interest, change: Change) -> Notice:
    meta = _subscription(id) if id is not None else None
    if change.uri is None:
        params = t.ListChangedParams(meta=meta)
    else:
        params = t.ResourceUpdatedParams(uri=change.uri, meta=meta)
    return Notice(interest.dialect, id, change.method, params)


def _subscription(id: RequestId) -> dict[str, Any]:
    return {t.META_SUBSCRIPTION_ID: id}
