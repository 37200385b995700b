# Invariant: for any input and any calls meanwhile, next_event and the receiving methods raise
# nothing, and the sending methods raise only LocalProtocolError, having sent nothing (TypeError and
# ValueError for values that JSON cannot express). Every request with a usable id gets exactly one
# response, unless it is cancelled or the connection ends; no other message gets one. Every id is in
# exactly one state. Reported sizes and counts are correct. The split of the bytes does not matter.
# After `close` nothing is pending, and until then a ping or a discovery is always answered.
"""One `Connection`, in either role and any set of revisions, with arbitrary input and calls.

A case is a script of steps. `fuzz.connection_script` plays it and checks the connection against a
model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.connection_model import ACKNOWLEDGED, CANCELLED
from fuzz.connection_script import CUSTOM, OPTIONS, Case, ConnectionScript, Step
from fuzz.targets import Target, committed_cases
from mcp_core import Role
from mcp_core.protocol.subscriptions._server import LISTS
from mcp_trio.oracle.strategies._messages import VERSIONS, messages, meta_of, methods, objects
from mcp_trio.oracle.strategies._mutations import damaged, malformed, reordered
from mcp_trio.oracle.strategies._values import encoded, scripts, weighted

# The script is repeated with its bytes in about this many chunks.
CHUNKS: Final = 200


def check(case: Case) -> Iterable[str]:
    script = ConnectionScript(case)
    script.run()
    repeated = ConnectionScript(
        case, chunk=1 + script.received_bytes // CHUNKS + script.received_bytes % 7
    )
    repeated.run()
    assert repeated.transcript == script.transcript, _first_difference(
        script.transcript, repeated.transcript
    )
    return script.outcomes


def _first_difference(one: list[Any], other: list[Any]) -> str:
    """Describe the first difference of two transcripts."""
    for left, right in zip(one, other, strict=False):
        if left != right:
            return f"in chunks: {right!r} instead of {left!r}"
    return "in chunks the transcript has another length"


# -- Cases -----------------------------------------------------------------------------------------


def _peer_step(version: str, role: Role, recorded: SearchStrategy[bytes]) -> SearchStrategy[Step]:
    """A step of the peer."""
    valid = messages(version, role)
    whole = valid.map(encoded)
    line = weighted(
        (3, whole),
        (5, _frequent(version, role)),
        (2, malformed(valid)),
        (1, damaged(whole)),
        (1, recorded),
        (
            1,
            st.lists(whole, min_size=1, max_size=3).map(
                lambda members: b"[" + b",".join(members) + b"]"
            ),
        ),
    )
    ended = line.map(lambda data: data + b"\n")
    several = st.lists(ended, max_size=4).map(b"".join)
    long = st.tuples(st.just("receive_long"), st.integers(-2, 3))
    return weighted(
        (20, weighted((8, ended), (2, several), (1, line)).map(lambda data: ("receive", data))),
        (1, long),
    )


def _frequent(version: str, role: Role) -> SearchStrategy[bytes]:
    """The messages on which most of the state depends, with ids that repeat."""

    @st.composite
    def build(draw: DrawFn) -> bytes:
        id = draw(_IDS)
        match draw(st.integers(0, 5)):
            case 0 | 1:
                meta = meta_of(version)
                if draw(st.booleans()):
                    meta["progressToken"] = id
                name = "tools/call" if role is Role.SERVER else "sampling/createMessage"
                params: dict[str, Any] = {
                    "name": "t",
                    "messages": [],
                    "maxTokens": 1,
                    "_meta": meta,
                }
                return encoded({"jsonrpc": "2.0", "id": id, "method": name, "params": params})
            case 2 | 3:
                named = {"requestId": id, "reason": "no"}
                return encoded(
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": named}
                )
            case 4:
                value = {
                    "progressToken": draw(st.integers(1, 6)),
                    "progress": draw(st.integers(-1, 5)),
                }
                return encoded(
                    {"jsonrpc": "2.0", "method": "notifications/progress", "params": value}
                )
            case _:
                number = draw(st.integers(1, 6))
                result = {"resultType": "complete", "content": []}
                return encoded({"jsonrpc": "2.0", "id": number, "result": result})

    return build()


def _own_step(version: str, role: Role) -> SearchStrategy[Step]:
    """A step of our own side."""
    request_rows = methods(version, role.other, requests=True)
    notification_rows = [
        row
        for row in methods(version, role.other, requests=False)
        if row.name not in _SENT_INTERNALLY
    ]
    place, related = st.integers(0, 3), st.sampled_from((None, None, 0, 1, 2))
    requests = st.sampled_from(
        [
            (CUSTOM, st.just({"a": 1})),
            *((row.name, objects(version, row.params)) for row in request_rows),
        ]
    )
    notifications = st.sampled_from(
        [(row.name, objects(version, row.params)) for row in notification_rows]
    )

    @st.composite
    def request(draw: DrawFn) -> Step:
        name, params = draw(requests)
        return "request", name, draw(params), draw(related), draw(st.booleans())

    @st.composite
    def notify(draw: DrawFn) -> Step:
        name, params = draw(notifications)
        return "notify", name, draw(params), draw(related)

    answers = st.sampled_from(
        ("minimal", "minimal", "full", "raw", "error", "dict", "unencodable", "with_meta")
    )
    replies = st.sampled_from(
        ("minimal", "minimal", "full", "error", "input", "progress1", "progress2")
    )
    return weighted(
        (4, st.tuples(st.just("respond"), place, answers)),
        (4, request()),
        (4, st.tuples(st.just("receive_response"), place, replies)),
        *([(1, notify())] if notification_rows else []),
        (1, st.tuples(st.just("progress"), place, st.integers(-1, 3))),
        (1, st.tuples(st.just("cancel"), place)),
        (1, st.tuples(st.just("change"), st.sampled_from((*LISTS, "text")))),
        (2, st.tuples(st.just("wait"), st.sampled_from((0.0, 1.0, 6.0, 100.0)))),
        (1, st.tuples(st.just("respond_id"), _IDS)),
        (1, st.tuples(st.just("log"), st.sampled_from(("debug", "info", "error")), related)),
        (3, st.sampled_from(_STEPS_WITHOUT_ARGUMENTS).map(lambda name: (name,))),
    )


# Notifications that a connection sends as part of another step.
_SENT_INTERNALLY: Final = frozenset({CANCELLED, ACKNOWLEDGED})
_STEPS_WITHOUT_ARGUMENTS: Final = (
    "stop_reading",
    "stop_reading",
    "resume_reading",
    "resume_reading",
    "shutdown",
    "shutdown",
    "open",
    "receive_eof",
    "close",
)


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    # Every recorded single message is worth sending in a conversation.
    lines = list(committed_cases(_MESSAGES).values()) or [b"{}"]
    recorded = st.sampled_from(lines)
    steps_in = {
        (version, role): weighted(
            (1, _peer_step(version, role, recorded)), (1, _own_step(version, role))
        )
        for version in VERSIONS
        for role in Role
    }
    scripts_in = {versions: scripts(step) for versions, step in steps_in.items()}

    some_options = st.sampled_from(((), (), *((option,) for option in OPTIONS), OPTIONS[1:]))

    @st.composite
    def made(draw: DrawFn) -> Case:
        role = draw(st.sampled_from((Role.SERVER, Role.SERVER, Role.CLIENT)))
        version = draw(st.sampled_from(VERSIONS))
        versions = draw(
            st.sampled_from((VERSIONS, (version,), (version,), VERSIONS[:4], VERSIONS[2:]))
        )
        start = (
            draw(st.sampled_from((version, version, version, ""))) if version in versions else ""
        )
        limits = draw(st.sampled_from(_LIMITS))
        script = scripts_in[version, role]
        steps = draw(script if draw(st.integers(0, 3)) else reordered(script))
        return role.value, versions, start, limits, draw(some_options), steps

    @st.composite
    def replayed(draw: DrawFn) -> Case:
        role, versions, start, limits, options, steps = draw(st.sampled_from(seeds))
        version = start or versions[-1]
        place = draw(st.integers(0, len(steps)))
        extra = draw(st.lists(steps_in[version, Role(role)], max_size=3))
        skipped = draw(st.integers(0, 2))
        return (
            role,
            versions,
            start,
            limits,
            options,
            [*steps[:place], *extra, *steps[place + skipped :]],
        )

    return weighted((3, made()), (1, replayed())) if seeds else made()


# In flight, waiting, queued: low limits that a script can reach.
_LIMITS: Final = ((1, 1, 1_000), (2, 1, 1_000), (1, 2, 200), (3, 3, 10_000), (1, 0, 1_000))

# Fewer than in other messages, so that requests, cancellations and responses meet.
_IDS: Final = st.sampled_from((1, "1", 2, "2", 3))

# Only its recorded messages are used.
_MESSAGES: Final = Target("jsonrpc", lambda seeds: st.nothing(), lambda case: (), raw=True)

TARGET: Final = Target("connection", cases, check)
