"""Rules for choosing a revision, detecting the era, and ending a process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._message import MODERN_ERRORS
from mcp_core.trace.judge._revisions import REVISIONS, is_known, is_later, is_modern, is_stateful
from mcp_core.trace.judge._sides import CLIENT, SERVER

from ._lifecycle import names_two_versions
from ._registry import RuleFailure, rule
from ._values import show

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage
    from mcp_core.trace.judge.conversation._conversation import ConversationState

    from ._registry import Outcome

_BEFORE_THE_FIRST: Final = "2024-10-07"  # a draft that some SDKs still speak
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_REACTION: Final = 1.0  # seconds after which a program has read what it was sent
_PROMPTLY: Final = 10.0  # seconds within which a process exits by itself
_UNSUPPORTED_VERSION: Final = -32022
# Codes that neither a limit nor a failure of the server explains.
_WRONG_CODES: Final = (-32600, -32601, -32602, 0)
_KILLED: Final = (-9, -15)
# Requests that a client may send when the handshake has failed.
_NO_SESSION: Final = ("initialize", "ping", "server/discover")
# -32020 is about HTTP headers, which a pipe doesn't have: a client may fall back (PROBE-10).
_MODERN_ON_PIPES: Final = frozenset(MODERN_ERRORS) - {-32020}


def is_revision(text: Any) -> bool | None:
    """Return True for a revision, None for a later one or a draft, False for anything else."""
    if not isinstance(text, str):
        return False
    if is_known(text):
        return True
    if text == _BEFORE_THE_FIRST:
        return None
    if _DATE.fullmatch(text):
        return None if is_later(text) else False
    return None if "draft" in text.lower() else False


@rule("LIFE-4", on="result", sender=SERVER, methods=("initialize",))
def answered_version_is_supported(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.request is not None
    found = lookup(message.result, "protocolVersion")
    wanted = message.request.params.get("protocolVersion")
    if not isinstance(found, str) or not isinstance(wanted, str):
        return None  # LIFE-1 and LIFE-3
    if found == wanted:
        return True
    lines = (message.request.line,)
    if is_revision(found) is False or is_modern(found):
        what = "has no handshake" if is_modern(found) else "is no revision"
        return RuleFailure(f"the server selects {show(found)}, which {what}", lines)
    if wanted in state.negotiation.server_versions and is_stateful(wanted):
        return RuleFailure(
            f"the server selects {show(found)}, and it supports the requested {show(wanted)}", lines
        )
    return True


@rule("LIFE-5", on="notification", sender=CLIENT, methods=("notifications/initialized",))
@rule("LIFE-5", on="request", sender=CLIENT)
def client_leaves_unknown_version(message: SeenMessage, state: ConversationState) -> Outcome:
    known = state.negotiation
    if not known.handshake_answered:
        return None
    if message.kind == "request" and (known.initialized or message.method in _NO_SESSION):
        return None
    answered = known.answered_version
    if is_revision(answered) is not False and not is_modern(answered):
        return True
    what = "has no handshake" if is_modern(answered) else "is no revision"
    return RuleFailure(
        f"the client goes on with {show(answered)}, which {what}", (known.handshake_answered,)
    )


@rule("VER-1", on="response", sender=SERVER, in_doubt=True, needs_history=True)
def unsupported_version_is_refused(message: SeenMessage, state: ConversationState) -> Outcome:
    request, known = message.request, state.negotiation
    if request is None or not request.names_other_version or known.initialize is not None:
        return None  # in a conversation with a handshake, a server can ignore the `_meta`
    named = request.meta[META + "protocolVersion"]
    if message.code == _UNSUPPORTED_VERSION or names_two_versions(named, state):
        return None  # the other rule of VER-1; or it is about the header
    supported = lookup(known.discovered, "supportedVersions")
    is_refused = isinstance(supported, list) and named not in supported
    if not is_refused and is_revision(named) is not False:
        return None  # the server may speak a version that it didn't list, or that is newer
    if named in known.server_versions or not known.answers_modern(message):
        return None
    if not request.is_well_formed or request.sender != CLIENT:
        return None
    what = f"a request that names the version {show(named)}, which the server does not speak"
    if message.result is not None:
        # A client can look for the versions in a result, too.
        is_certain = request.method != "server/discover"
        return RuleFailure(f"{what}, has a result", (request.line,), is_certain=is_certain)
    # Another check can come first, unless the same request was served under its own version.
    was_served = request.method in state.lists.complete and "cursor" not in request.params
    return RuleFailure(
        f"{what}, has the error {show(message.code)}, not -32022",
        (request.line,),
        is_certain=was_served and message.code in _WRONG_CODES,
    )


@rule("VER-2", on="request", sender=CLIENT, any_revision=True)
def rejected_version_is_not_used_again(message: SeenMessage, state: ConversationState) -> Outcome:
    if not state.negotiation.rejected:
        return None
    named = message.meta.get(META + "protocolVersion")
    if not isinstance(named, str):
        return None
    known = state.negotiation.rejected.get(named)
    if known is None:
        return True
    line, time, supported = known
    # Requests can cross the error on the wire, one from each concurrent caller.
    if named in supported or message.time - time < _REACTION:
        return None
    return RuleFailure(f"the version {show(named)} again, which the server rejected", (line,))


@rule("VER-15", on="error", sender=SERVER, methods=("initialize",), any_revision=True)
def modern_server_names_its_versions(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.error is not None
    if not state.negotiation.has_served_modern or state.negotiation.handshake_answered:
        return None
    found = set(_DATE.findall(f"{message.error.get('message')} {message.error.get('data')}"))
    # The server may serve other clients with a handshake, and reject this one for another reason.
    is_modern_only = bool(state.negotiation.server_versions) and all(
        map(is_modern, state.negotiation.server_versions)
    )
    asked = message.request.params.get("protocolVersion") if message.request else None
    is_known = is_stateful(asked)
    return not found.isdisjoint(REVISIONS) or RuleFailure(
        "the error for initialize names no version", is_certain=is_modern_only and is_known
    )


# -- The detection of the era, over byte streams ---------------------------------------------------


@rule("PROBE-1", on="request", sender=CLIENT, methods=("initialize",), any_revision=True)
def client_of_both_eras_probes(message: SeenMessage, state: ConversationState) -> Outcome:
    if (
        message.exchange
        or not state.negotiation.is_modern
        or state.negotiation.initialize is not None
    ):
        return None
    # The client may know the server's era from an earlier process.
    return state.first_method == "server/discover" or RuleFailure(
        f"a client of both eras begins with {state.first_method}",
        (state.first_line,),
        is_certain=False,
    )


@rule("PROBE-2", on="request", sender=CLIENT, any_revision=True)
def client_falls_back_on_other_errors(message: SeenMessage, state: ConversationState) -> Outcome:
    probe = state.negotiation.probe_error
    if probe is None or message.exchange or probe.code in MODERN_ERRORS:
        return None
    if message.method == "initialize":
        return True
    if not message.is_modern or message.method == "server/discover":
        return None
    # The client may not know the other era.
    return RuleFailure(
        f"{message.method} after the error {show(probe.code)} of server/discover",
        (probe.line,),
        is_certain=False,
    )


@rule("PROBE-3", on="request", sender=CLIENT, any_revision=True)
def client_keeps_to_the_era(message: SeenMessage, state: ConversationState) -> Outcome:
    probe = state.negotiation.probe_error
    if probe is None or message.exchange or probe.code not in _MODERN_ON_PIPES:
        return None
    if message.method != "initialize":
        return True if message.is_modern else None
    supported = lookup(probe.error, "data", "supported")
    if isinstance(supported, list) and any(map(is_stateful, supported)):
        return None  # the server lists a revision with a handshake
    # A late error can cross the handshake on the wire.
    return RuleFailure(
        f"initialize after the error {show(probe.code)} of server/discover",
        (probe.line,),
        is_certain=message.time - probe.time >= _REACTION,
    )


# -- The end of a process --------------------------------------------------------------------------


@rule("LIFE-18", "STDIO-10", on="close")
def client_closes_stdin_first(state: ConversationState) -> Outcome:
    if state.exit is None:
        return None
    if CLIENT in state.end_times:
        return True
    if state.exit[0] not in _KILLED:
        return None  # the process exited by itself
    # The user may have sent the signal.
    return RuleFailure(
        "the server was ended by a signal before its stdin was closed", is_certain=False
    )


@rule("STDIO-11", on="close")
def server_exits_at_end_of_input(state: ConversationState) -> Outcome:
    began = state.end_times.get(CLIENT)
    if state.exit is None or began is None:
        return None
    status, time = state.exit
    if time - began <= _PROMPTLY:
        return True if status not in _KILLED else None
    return RuleFailure(
        f"the server ran on for {time - began:.0f} s after its stdin was closed", side=SERVER
    )
