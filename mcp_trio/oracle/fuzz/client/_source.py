"""Draw cases for clients from a seed, and probe what a client does with a correct server."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from mcp_core import ALL, ConnectFailed, escape_text
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz._revisions import dialect_of
from mcp_trio.streams._child import with_cure

from ._client_play import HANG, ClientPlayer
from ._questions import RIGHT_QUESTIONS
from ._results import SCHEMA_TOOL
from ._wrong_http import HTTP_WAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.oracle.fuzz._case import Case, Step

    from ._client_session import ClientSession
    from ._client_target import ClientTarget

__all__ = ["ClientOffers", "ScriptChoices", "ScriptSource", "probe_client"]

MAX_PLACE: Final = 12  # later requests are mostly like earlier ones
_NUMBERS: Final = 1_000
_FIRST_NUMBERS: Final = 2  # only the first variants, which are the plainest
# Kinds of which more variants are played at first.
_FIRST_OF: Final = {
    "revision": range(4),
    "unsupported": range(3),
    "output": range(4),
    "input": range(5),
    "sampling": range(RIGHT_QUESTIONS["sampling/createMessage"]),
    "elicitation": range(RIGHT_QUESTIONS["elicitation/create"]),
}
# Probabilities.
_AVOIDED: Final = 0.05  # of drawing a step that has already shown a fault
_AT_FIRST: Final = 0.15
_OF_HTTP: Final = 0.35
_OF_PUSHES: Final = 0.4
_OF_MODERN: Final = 0.25
_OF_ALWAYS: Final = 0.1
_OF_REFUSED: Final = 0.05
_WHERE_WANTED: Final = 0.8
# The suffixes of the methods that a kind of answer is for.
_WANTED: Final = {
    "page": ("/list",),
    "cursor": ("/list",),
    "input": ("tools/call", "prompts/get", "resources/read"),
    "output": ("tools/call",),
    "task": ("tools/call",),
    "acknowledged": ("/listen",),
    "revision": ("initialize", "server/discover"),
}
# What comes after the opening: nothing is asked before it.
_ASKS: Final = ("ping", "sampling", "elicitation", "roots", "unknown-request", "cancelled-request")

_ANSWERS: Final = (
    *("error", "error", "odd-error", "odd-error", "shape", "shape", "shape", "shape", "twice"),
    *("id-type", "id-other", "without", "version", "both", "odd-result", "never", "late", "close"),
    *("cursor", "page", "unknown-members", "spaced", "batch", "huge", "deep", "half"),
    *("progress-after", "result-type", "input", "task", "output", "revision", "cursor"),
)
_MODERN_ANSWERS: Final = (
    *("result-type", "input", "input", "input", "input", "task", "acknowledged", "unsupported"),
)
# Answers that each request with a method gets: pages, rounds and retries without end.
_ENDLESS: Final = ("cursor", "cursor", "page", "input", "error", "unsupported", "task")
_PUSHES: Final = (
    *("ping", "ping", "sampling", "sampling", "sampling", "elicitation", "elicitation"),
    *("elicitation", "roots", "roots", "unknown-request", "cancelled-request"),
    *("list-changed", "progress", "log", "notification", "notification", "response", "junk"),
    *("junk", "empty-line", "batch"),
)


class ClientOffers(Offers, kw_only=True):
    """The behaviour of a client with a correct server.

    Attributes:
        servers: the methods of its requests, by the revisions of a server that it talks to.
        refused: the revisions of a server that it gives up on.
        called: the names of the tools that it calls.
        ends: True if it ends when its connection ends.
    """

    servers: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    refused: list[tuple[str, ...]] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    ends: bool = True

    @property
    def requests(self) -> int:
        """How many requests the client sends at most."""
        return max(len(methods) for methods in self.servers.values())


class ScriptChoices:
    """The choices for drawing cases.

    Args:
        offers: what the client does with a correct server.
        http: True if it speaks HTTP.

    Attributes:
        avoided: names of steps that are drawn rarely, because they have shown a fault already.
        names: empty; a campaign asks which tools may be called.
    """

    def __init__(self, offers: ClientOffers, *, http: bool) -> None:
        self.offers = offers
        self.http = http
        self.avoided: set[tuple[str, str]] = set()
        self.names: tuple[str, ...] = ()

    @property
    def tools(self) -> list[str]:
        """The names of the server's tools."""
        return [SCHEMA_TOOL, *(each for each in self.offers.called if each != SCHEMA_TOOL)]


class ScriptSource:
    """A source of cases. The same choices and seed give the same cases on every machine.

    It begins with a correct server and one case for each kind of step: the smallest case finds a
    fault first. Combinations follow.
    """

    def __init__(self, choices: ScriptChoices, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - cases can be drawn again
        self._choices = choices
        self._refused = choices.offers.refused
        self._first = self._single_steps()

    @property
    def fixed(self) -> int:
        """How many of the next cases don't depend on what the choices avoid."""
        return len(self._first)

    def draw(self, count: int) -> list[Case]:
        """Return `count` cases."""
        found, self._first = self._first[:count], self._first[count:]
        return found + [self._draw_one() for _ in range(count - len(found))]

    def _single_steps(self) -> list[Case]:
        offers = self._choices.offers
        found = [self._serve(each) for each in (*offers.servers, *offers.refused)]
        kinds = [("answer", how) for how in sorted({*_ANSWERS, *_MODERN_ANSWERS})]
        kinds += [("push", what) for what in sorted(set(_PUSHES))]
        kinds += [("always", how) for how in sorted(set(_ENDLESS))]
        kinds += [("http", way) for way in HTTP_WAYS if self._choices.http]
        single: list[Case] = []
        # The first two differ most: a server with all revisions, and one with some of them.
        for revisions in list(offers.servers)[:2]:
            for kind, how in kinds:
                numbers: Sequence[int] = (self._random.randrange(_FIRST_NUMBERS),)
                if kind == "always":
                    numbers = range(_FIRST_NUMBERS)
                for number in _FIRST_OF.get(how, numbers):
                    single += [
                        [*self._serve(revisions), (kind, how, place, number)]
                        for place in self._first_places(how, offers.servers[revisions])
                    ]
        self._random.shuffle(single)
        return found + single

    def _serve(self, revisions: tuple[str, ...]) -> list[Step]:
        return [("serve", list(revisions), self._choices.tools)]

    def _draw_one(self) -> Case:
        random, choices = self._random, self._choices
        servers = choices.offers.servers
        revisions = random.choice(list(servers))
        if self._refused and random.random() < _OF_REFUSED:
            revisions = random.choice(self._refused)
        modern = any(not dialect_of(each).stateful for each in revisions)
        steps = self._serve(revisions)
        for _ in range(random.choice((1, 1, 2, 3))):
            step = self._draw_step(servers.get(revisions, []), modern=modern)
            if (step[0], step[1]) not in choices.avoided or random.random() < _AVOIDED:
                steps.append(step)
        return steps

    def _draw_step(self, methods: list[str], *, modern: bool) -> Step:
        random = self._random
        kind = "answer"
        names: tuple[str, ...] = _ANSWERS
        if self._choices.http and random.random() < _OF_HTTP:
            kind, names = "http", HTTP_WAYS
        elif random.random() < _OF_PUSHES:
            kind, names = "push", _PUSHES
        elif random.random() < _OF_ALWAYS:
            kind, names = "always", _ENDLESS
        elif modern and random.random() < _OF_MODERN:
            names = _MODERN_ANSWERS
        how = random.choice(names)
        return (kind, how, self._place(how, methods), random.randrange(_NUMBERS))

    def _first_places(self, how: str, methods: list[str]) -> list[int]:
        """Return a place for each method that a kind of answer is for; one for any other kind."""
        wanted = _WANTED.get(how)
        found: dict[str, int] = {}
        for place, method in enumerate(methods[: MAX_PLACE + 1]):
            if wanted is not None and method.endswith(wanted):
                found.setdefault(method, place)
        return list(found.values()) or [self._place(how, methods, first=_AT_FIRST / 3)]

    def _place(self, how: str, methods: list[str], first: float = _AT_FIRST) -> int:
        """Return a place where a step makes sense. The handshake is rare."""
        wanted = _WANTED.get(how)
        places = [
            place
            for place, method in enumerate(methods[: MAX_PLACE + 1])
            if wanted is not None and method.endswith(wanted)
        ]
        first = 0.0 if how in _ASKS else first
        if places and self._random.random() < _WHERE_WANTED:
            return self._random.choice(places)
        last = min(MAX_PLACE, max(0, len(methods) - 1))
        return 0 if self._random.random() < first else self._random.randint(min(1, last), last)


async def probe_client(
    target: ClientTarget, revisions: tuple[str, ...] = ALL, timeout: float = 2.0
) -> ClientOffers:
    """Return what a client does with a correct server.

    Args:
        target: the client.
        revisions: the server's revisions.
        timeout: seconds for the response to a ping, and for what the client does next.

    Raises:
        ConnectFailed: it has no conversation; the message names the cause and the cure.
    """
    offers = ClientOffers()
    stateful = tuple(each for each in revisions if dialect_of(each).stateful)
    modern = tuple(each for each in revisions if not dialect_of(each).stateful)
    candidates = [tuple(revisions), stateful, modern, *((each,) for each in stateful)]
    seen: set[tuple[str, ...]] = set()
    reason = "it has sent no message"
    for candidate in candidates:
        if not candidate or candidate in seen:
            continue
        seen.add(candidate)
        session, has_hung = await _control(target, candidate, offers, timeout)
        if not offers.servers and session.server.called:  # now with the tools that it calls
            offers.called = list(session.server.called)
            session, has_hung = await _control(target, candidate, offers, timeout)
        server = session.server
        if not session.messages:
            reason = f"it has sent no message{session.describe()}"
            if candidate == tuple(revisions):
                break  # it would not talk to one with fewer revisions either
        elif not server.revision:
            reason = f"it speaks no revision of the server{session.describe()}"
            offers.refused.append(candidate)
        elif server.methods == ["initialize"] and offers.servers:
            offers.refused.append(candidate)
        else:
            offers.servers[candidate] = list(server.methods)
            offers.ends = offers.ends and not has_hung
            if server.revision not in offers.revisions:
                offers.revisions.append(server.revision)
            info = server.client_info
            name = f"{info.get('name', '?')} {info.get('version', '')}".strip()
            offers.name = offers.name or escape_text(name[:100])
    offers.revisions.sort(reverse=True)
    if not offers.servers:
        cure = f"Is that an MCP client? {_CURES[target.way]}"
        raise ConnectFailed(f"no conversation with {target.name}: {with_cure(reason, cure)}")
    return offers


_CURES: Final = {
    "pipes": "A client that starts its server needs {server} in its command, and one that connects"
    " to a URL needs {url}",
    "relay": "The words in place of {server} are a command that speaks MCP on stdin and stdout",
    "http": "The word in place of {url} is the URL of a server that speaks Streamable HTTP",
}


async def _control(
    target: ClientTarget, revisions: tuple[str, ...], offers: ClientOffers, timeout: float
) -> tuple[ClientSession, bool]:
    """Play a correct server. Return the session, and True if the client didn't end after it."""
    session = await target.open()
    case: Any = [("serve", list(revisions), [SCHEMA_TOOL, *offers.called])]
    outcome = await ClientPlayer(timeout).play(case, session)
    return session, any(each.row == HANG for each in outcome.faults)
