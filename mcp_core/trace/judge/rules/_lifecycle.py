"""Rules for the life cycle, versions, capabilities and ping."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._methods import KNOWN_METHODS, find_method
from mcp_core.trace.judge._sides import CLIENT, SERVER, other_side

from ._registry import RuleFailure, rule
from ._values import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace.judge._message import SeenMessage
    from mcp_core.trace.judge._sides import Side
    from mcp_core.trace.judge.conversation._conversation import ConversationState

    from ._registry import Outcome

# Wire names of the capabilities that have another name in the core.
_WIRE_NAMES: Final = {"list_changed": "listChanged", "create_message": "createMessage"}
_LISTS: Final = ("tools", "prompts", "resources", "resourceTemplates", "contents")


def declares(capabilities: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Return True if a capability is declared: if it is present, and neither false nor null."""
    value: Any = capabilities
    for key in path:
        name = _WIRE_NAMES.get(key, key)
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return value is not False and value is not None


def _name(path: tuple[str, ...]) -> str:
    return ".".join(_WIRE_NAMES.get(key, key) for key in path)


@rule("LIFE-1", on="request", sender=CLIENT, needs_history=True, in_doubt=True)
def initialize_is_first(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.method == "initialize":
        return True if state.first_line == message.line else None
    if (
        message.method == "ping"
        or state.negotiation.initialize is not None
        or state.negotiation.is_modern
    ):
        return None
    if META + "protocolVersion" in message.meta:
        return None
    return RuleFailure(
        f"{message.method or 'a request'} comes before initialize and does not have the `_meta` "
        "of a request without a handshake",
        is_certain=state.is_from_start,
    )


@rule("LIFE-7", on="close", needs_history=True)
def initialized_was_sent(state: ConversationState) -> Outcome:
    if not state.negotiation.handshake_answered or state.negotiation.initialize is None:
        return None
    if state.negotiation.initialized:
        return True
    if not state.work_requests:
        return None  # the client may have left
    return RuleFailure(
        "the client went on after initialize without notifications/initialized",
        (state.negotiation.handshake_answered,),
        side=CLIENT,
    )


@rule("LIFE-8", on="request", sender=CLIENT, needs_history=True)
def client_waits_for_handshake(message: SeenMessage, state: ConversationState) -> Outcome:
    if state.negotiation.initialize is None or message.method in ("ping", "initialize"):
        return None
    if not state.is_ordered:
        return None  # the response's end can be recorded after the next request
    if state.negotiation.handshake_answered:
        return True
    return RuleFailure(
        f"{message.method or 'a request'} comes before the response to initialize",
        (state.negotiation.initialize.line,),
    )


@rule("LIFE-9", on="request", sender=SERVER, needs_history=True)
def server_waits_for_initialized(message: SeenMessage, state: ConversationState) -> Outcome:
    if state.negotiation.initialize is None or not state.is_ordered:
        return None
    if message.method == "ping":
        return None
    if state.negotiation.initialized:
        return True
    if state.requests.open[CLIENT] and any(
        request.method != "initialize" for request in state.requests.open[CLIENT].values()
    ):
        return None  # part of a client's request, which shows that the client is ready
    return f"{message.method or 'a request'} comes before notifications/initialized"


@rule("LIFE-13", "LIFE-14", "LIFE-15", on="notification", needs_history=True)
def notification_exists_in_revision(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome = method_exists_in_revision(message, state)
    if outcome is not True or message.row is None or not message.row.needs:
        return outcome
    declared = state.negotiation.capabilities(message.sender, message)
    if message.method == "notifications/message" or declared is None:
        return None if declared is None else True  # LOG-1
    return declares(declared, message.row.needs) or (
        f"{message.method} needs the capability {_name(message.row.needs)}, which the "
        f"{message.sender} did not declare"
    )


@rule("LIFE-13", "LIFE-14", "LIFE-15", on="request", needs_history=True)
def method_exists_in_revision(message: SeenMessage, state: ConversationState) -> Outcome:
    revision = message.revision
    if not revision or message.method not in KNOWN_METHODS or message.method == "initialize":
        return None
    if find_method(revision, message.method, message.sender) is not None:
        return True
    if find_method(revision, message.method, other_side(message.sender)) is not None:
        return f"a {message.sender} does not send {message.method}"
    return f"the negotiated revision has no {message.method}"


# In the first two revisions this is a SHOULD, with rows of its own.
@rule("LIFE-13", "LIFE-15", "CAP-3", on="request", needs_history=True)
def needed_capability_is_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    row = message.row
    if row is None or not row.needs or row.result is None:
        return None  # a notification with an id: RPC-13
    receiver: Side = other_side(message.sender)
    declared = state.negotiation.capabilities(receiver, message)
    if declared is None:
        return None
    return declares(declared, row.needs) or (
        f"{message.method} needs the capability {_name(row.needs)}, which the {receiver} did not "
        "declare"
    )


@rule("CAP-4", on="error", sender=SERVER)
def missing_capability_is_named(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.code != -32021:
        return None
    found = lookup(message.error, "data", "requiredCapabilities")
    return isinstance(found, dict) or (
        f"`data.requiredCapabilities` of the error -32021 is {show(found)}"
    )


@rule(
    "TOOL-1",
    on="result",
    sender=SERVER,
    methods=("tools/list", "tools/call"),
    needs_history=True,
    args=("tools",),
)
@rule(
    "RES-1",
    on="result",
    sender=SERVER,
    methods=("resources/list", "resources/read", "resources/templates/list"),
    needs_history=True,
    args=("resources",),
)
@rule(
    "PRM-1",
    on="result",
    sender=SERVER,
    methods=("prompts/list", "prompts/get"),
    needs_history=True,
    args=("prompts",),
)
@rule(
    "COMP-1",
    on="result",
    sender=SERVER,
    methods=("completion/complete",),
    needs_history=True,
    args=("completions",),
)
def feature_of_server_is_declared(
    message: SeenMessage, state: ConversationState, capability: str
) -> Outcome:
    declared = state.negotiation.capabilities(SERVER, message)
    if declared is None:
        return None
    assert message.request is not None
    assert message.result is not None
    # A framework can answer for a feature that the server doesn't have, with an empty result.
    is_nothing = message.result.get("isError") is True or any(
        message.result.get(key) == [] for key in _LISTS
    )
    completion = message.result.get("completion")
    is_nothing = is_nothing or lookup(completion, "values") == []
    return declares(declared, (capability,)) or RuleFailure(
        f"{message.request.method} has a result although the server did not declare {capability}",
        (message.request.line,),
        is_certain=not is_nothing,
    )


@rule(
    "LOG-1",
    on="notification",
    sender=SERVER,
    methods=("notifications/message",),
    needs_history=True,
)
def logging_is_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    declared = state.negotiation.capabilities(SERVER, message)
    if declared is None:
        return None
    return declares(declared, ("logging",)) or (
        "a log message although the server did not declare logging"
    )


@rule(
    "SAMP-1",
    on="result",
    sender=CLIENT,
    methods=("sampling/createMessage",),
    needs_history=True,
    args=("sampling",),
)
@rule(
    "ELIC-1",
    on="result",
    sender=CLIENT,
    methods=("elicitation/create",),
    needs_history=True,
    args=("elicitation",),
)
@rule(
    "ROOT-1",
    on="result",
    sender=CLIENT,
    methods=("roots/list",),
    needs_history=True,
    args=("roots",),
)
def feature_of_client_is_declared(
    message: SeenMessage, state: ConversationState, capability: str
) -> Outcome:
    declared = state.negotiation.capabilities(CLIENT, message)
    if declared is None or message.request is None or message.result is None:
        return None
    is_refused = message.result.get("action") in ("decline", "cancel")
    return declares(declared, (capability,)) or RuleFailure(
        f"{message.request.method} has a result although the client did not declare {capability}",
        (message.request.line,),
        is_certain=not is_refused and message.result.get("roots") != [],
    )


# -- Versions of the stateless era -----------------------------------------------------------------


@rule("VER-1", on="error", sender=SERVER)
def unsupported_version_names_versions(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.code != -32022:
        return None
    supported = lookup(message.error, "data", "supported")
    requested = lookup(message.error, "data", "requested")
    if not isinstance(supported, list) or not all(isinstance(each, str) for each in supported):
        return f"`data.supported` of the error -32022 is {show(supported)}"
    if not isinstance(requested, str):
        return f"`data.requested` of the error -32022 is {show(requested)}"
    sent = message.request.meta.get(META + "protocolVersion") if message.request else None
    if names_two_versions(sent, state):
        return None
    if isinstance(sent, str) and sent != requested:
        return f"`data.requested` is {show(requested)}, and the request named {show(sent)}"
    return True


def names_two_versions(named: Any, state: ConversationState) -> bool:
    """Return True if the exchange's header names another version than `named`, the body's."""
    if state.http.exchange is None:
        return False
    header = state.http.exchange.headers.get("mcp-protocol-version")
    return header is not None and header != named


@rule("VER-3", on="response", sender=SERVER, methods=("server/discover",), needs_history=True)
def discover_is_implemented(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.result is not None:
        return True
    if message.code != -32601 or not state.negotiation.has_served_modern:
        return None
    return "server/discover is unknown to a server that serves its revision"


_EXTENSION_ID: Final = re.compile(
    r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*/"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)


@rule("VER-12", on="request", sender=CLIENT)
def extension_ids_of_client_have_prefix(message: SeenMessage, state: ConversationState) -> Outcome:
    return _extension_ids(lookup(message.meta.get(META + "clientCapabilities"), "extensions"))


@rule("VER-12", on="result", sender=SERVER, methods=("server/discover",))
def extension_ids_of_server_have_prefix(message: SeenMessage, state: ConversationState) -> Outcome:
    return _extension_ids(lookup(message.result, "capabilities", "extensions"))


def _extension_ids(extensions: Any) -> Outcome:
    if not isinstance(extensions, dict) or not extensions:
        return None
    wrong = next((key for key in extensions if _EXTENSION_ID.fullmatch(key) is None), None)
    return True if wrong is None else f"the extension {show(wrong)} has no valid id"


@rule("LOG-6", on="response", sender=SERVER, methods=("logging/setLevel",))
@rule(
    "RES-6", on="response", sender=SERVER, methods=("resources/subscribe", "resources/unsubscribe")
)
@rule("TX-22", on="response", sender=SERVER, methods=("tasks/result", "tasks/list"))
def removed_method_is_not_found(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.request is not None
    if message.result is None:
        return True if message.code == -32601 else None
    return RuleFailure(
        f"{message.request.method} has a result, but the revision does not have it",
        (message.request.line,),
    )


@rule("PING-5", on="response", sender=SERVER, methods=("ping",))
def ping_is_removed(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.request is None or META + "protocolVersion" not in message.request.meta:
        return None  # a ping of an earlier revision is legal at any time
    return removed_method_is_not_found(message, state)


@rule("PING-1", on="result", methods=("ping",))
def result_of_ping_is_empty(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    more = [key for key in message.result if key not in ("_meta", "resultType")]
    return not more or f"the result of ping has the member {show(more[0])}"


@rule("PING-2", on="response", methods=("ping",))
def ping_is_answered(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.request is None or message.request.sender != other_side(message.sender):
        return None
    if message.result is not None:
        return True
    if not message.request.is_well_formed:
        return None
    # Another code can come from one of the receiver's limits.
    return RuleFailure(
        f"ping has an error with the code {show(message.code)}",
        (message.request.line,),
        is_certain=message.code == -32601,
    )
