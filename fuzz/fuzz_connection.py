# Invariant: whatever arrives, and whatever we say meanwhile, next_event and the methods for what arrives raise nothing,
# and those for what we say raise only LocalProtocolError, having sent nothing (TypeError and ValueError for what JSON
# cannot say). Every request with a usable id gets exactly one answer, unless it was cancelled or the end came; no message
# of another kind gets one; every id is in exactly one state; what is told of sizes and counts is true; it matters not how
# the bytes were split; after `close` nothing is pending, and before it a ping or a discovery is answered, come what may.
"""One `Connection`, in either role and any set of revisions, between a peer that says anything and a user of any mood.

A case is a script of steps; `fuzz.talk` plays it and keeps the books that the connection is checked against.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcp_core import Role
from mcp_core._subscriptions import LISTS

from .books import ACKNOWLEDGED, CANCELLED
from .messages import VERSIONS, messages, meta_of, methods, objects
from .mutations import damaged, reordered, twisted
from .talk import CUSTOM, MANNERS, Case, Step, Talk
from .targets import Target, committed
from .values import encoded, scripts, weighted

# In about so many pieces everything is said again.
PIECES: Final = 200


def check(case: Case) -> Iterable[str]:
    talk = Talk(case)
    talk.play()
    again = Talk(case, chunk=1 + talk.heard // PIECES + talk.heard % 7)
    again.play()
    assert again.transcript == talk.transcript, _first_difference(talk.transcript, again.transcript)
    return talk.outcomes


def _first_difference(one: list[Any], other: list[Any]) -> str:
    for left, right in zip(one, other, strict=False):
        if left != right:
            return f"in pieces something else happens: {right!r} instead of {left!r}"
    return "in pieces it ends at another place"


# -- Cases -------------------------------------------------------------------------------------------------------------


def _heard(version: str, role: Role, recorded: SearchStrategy[bytes]) -> SearchStrategy[Step]:
    """Something that the peer says."""
    valid = messages(version, role)
    whole = valid.map(encoded)
    line = weighted(
        (3, whole),
        (5, _frequent(version, role)),
        (2, twisted(valid)),
        (1, damaged(whole)),
        (1, recorded),
        (1, st.lists(whole, min_size=1, max_size=3).map(lambda members: b"[" + b",".join(members) + b"]")),
    )
    ended = line.map(lambda data: data + b"\n")
    several = st.lists(ended, max_size=4).map(b"".join)
    long = st.tuples(st.just("long"), st.integers(-2, 3))
    return weighted(
        (20, weighted((8, ended), (2, several), (1, line)).map(lambda data: ("hear", data))), (1, long)
    )


def _frequent(version: str, role: Role) -> SearchStrategy[bytes]:
    """The few messages that most of the machinery hangs on, with ids that meet again."""

    @st.composite
    def build(draw: DrawFn) -> bytes:
        id = draw(_KEYS)
        match draw(st.integers(0, 5)):
            case 0 | 1:
                meta = meta_of(version)
                if draw(st.booleans()):
                    meta["progressToken"] = id
                name = "tools/call" if role is Role.SERVER else "sampling/createMessage"
                params: dict[str, Any] = {"name": "t", "messages": [], "maxTokens": 1, "_meta": meta}
                return encoded({"jsonrpc": "2.0", "id": id, "method": name, "params": params})
            case 2 | 3:
                named = {"requestId": id, "reason": "no"}
                return encoded({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": named})
            case 4:
                value = {"progressToken": draw(st.integers(1, 6)), "progress": draw(st.integers(-1, 5))}
                return encoded({"jsonrpc": "2.0", "method": "notifications/progress", "params": value})
            case _:
                number = draw(st.integers(1, 6))
                result = {"resultType": "complete", "content": []}
                return encoded({"jsonrpc": "2.0", "id": number, "result": result})

    return build()


def _said(version: str, role: Role) -> SearchStrategy[Step]:
    """Something that our own side does."""
    asked = methods(version, role.other, requests=True)
    told = [row for row in methods(version, role.other, requests=False) if row.name not in _BY_ITSELF]
    place, for_whom = st.integers(0, 3), st.sampled_from((None, None, 0, 1, 2))
    asks = st.sampled_from(
        [(CUSTOM, st.just({"a": 1})), *((row.name, objects(version, row.params)) for row in asked)]
    )
    tells = st.sampled_from([(row.name, objects(version, row.params)) for row in told])

    @st.composite
    def ask(draw: DrawFn) -> Step:
        name, params = draw(asks)
        return "ask", name, draw(params), draw(for_whom), draw(st.booleans())

    @st.composite
    def tell(draw: DrawFn) -> Step:
        name, params = draw(tells)
        return "tell", name, draw(params), draw(for_whom)

    answers = st.sampled_from(("least", "least", "most", "raw", "error", "dict", "unsayable", "own meta"))
    replies = st.sampled_from(("least", "least", "most", "error", "input", "progress1", "progress2"))
    return weighted(
        (4, st.tuples(st.just("answer"), place, answers)),
        (4, ask()),
        (4, st.tuples(st.just("reply"), place, replies)),
        *([(1, tell())] if told else []),
        (1, st.tuples(st.just("progress"), place, st.integers(-1, 3))),
        (1, st.tuples(st.just("cancel"), place)),
        (1, st.tuples(st.just("change"), st.sampled_from((*LISTS, "text")))),
        (2, st.tuples(st.just("wait"), st.sampled_from((0.0, 1.0, 6.0, 100.0)))),
        (1, st.tuples(st.just("answer id"), _KEYS)),
        (1, st.tuples(st.just("log"), st.sampled_from(("debug", "info", "error")), for_whom)),
        (3, st.sampled_from(_BARE).map(lambda name: (name,))),
    )


# What a connection says in the course of something else, which has a step of its own.
_BY_ITSELF: Final = frozenset({CANCELLED, ACKNOWLEDGED})
_BARE: Final = ("deaf", "deaf", "listen", "listen", "wind down", "wind down", "open", "end", "close")


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    # Whatever was ever wrong with a message by itself is worth saying in a conversation.
    lines = list(committed(_MESSAGES).values()) or [b"{}"]
    recorded = st.sampled_from(lines)
    steps_in = {
        (version, role): weighted((1, _heard(version, role, recorded)), (1, _said(version, role)))
        for version in VERSIONS
        for role in Role
    }
    scripts_in = {spoken: scripts(step) for spoken, step in steps_in.items()}

    manners = st.sampled_from(((), (), *((manner,) for manner in MANNERS), MANNERS[1:]))

    @st.composite
    def made(draw: DrawFn) -> Case:
        role = draw(st.sampled_from((Role.SERVER, Role.SERVER, Role.CLIENT)))
        version = draw(st.sampled_from(VERSIONS))
        spoken = draw(st.sampled_from((VERSIONS, (version,), (version,), VERSIONS[:4], VERSIONS[2:])))
        start = draw(st.sampled_from((version, version, version, ""))) if version in spoken else ""
        limits = draw(st.sampled_from(_LIMITS))
        script = scripts_in[version, role]
        steps = draw(script if draw(st.integers(0, 3)) else reordered(script))
        return role.value, spoken, start, limits, draw(manners), steps

    @st.composite
    def replayed(draw: DrawFn) -> Case:
        role, spoken, start, limits, how, steps = draw(st.sampled_from(seeds))
        version = start or spoken[-1]
        place = draw(st.integers(0, len(steps)))
        extra = draw(st.lists(steps_in[version, Role(role)], max_size=3))
        skipped = draw(st.integers(0, 2))
        return role, spoken, start, limits, how, [*steps[:place], *extra, *steps[place + skipped :]]

    return weighted((3, made()), (1, replayed())) if seeds else made()


# In flight, waiting, queued: so little of each that a script comes to the end of it.
_LIMITS: Final = ((1, 1, 1_000), (2, 1, 1_000), (1, 2, 200), (3, 3, 10_000), (1, 0, 1_000))

# Fewer than in other messages, so that requests, cancellations and answers meet.
_KEYS: Final = st.sampled_from((1, "1", 2, "2", 3))

# Where the recorded messages are; the target itself is not loaded.
_MESSAGES: Final = Target("jsonrpc", lambda seeds: st.nothing(), lambda case: (), raw=True)

TARGET: Final = Target("connection", cases, check)
