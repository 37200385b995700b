"""Rules for errors: their codes, and which error belongs to which fault of a request.

Another check, such as a limit, can come first and decide the code. So a rule is certain only where
no other check explains the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core.protocol.schema._json_schema import InvalidSchema
from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._message import TASKS_EXTENSION
from mcp_core.trace.judge._methods import KNOWN_METHODS
from mcp_core.trace.judge._revisions import is_stateful
from mcp_core.trace.judge._sides import CLIENT, SERVER
from mcp_core.types import LOGGING_LEVELS

from ._features import compile_schema, is_complete, objects
from ._lifecycle import declares, names_two_versions
from ._registry import RuleFailure, rule
from ._utilities import LISTS
from ._values import show, show_violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace.judge._message import SeenMessage, SeenRequest
    from mcp_core.trace.judge.conversation._conversation import ConversationState

    from ._registry import Outcome

_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_NOT_FOUND: Final = -32601
_INVALID_PARAMS: Final = -32602
_INTERNAL: Final = -32603
_STANDARD: Final = (_PARSE_ERROR, _INVALID_REQUEST, _NOT_FOUND, _INVALID_PARAMS, _INTERNAL)
_HEADERS: Final = -32020
_CAPABILITY: Final = -32021
_VERSION: Final = -32022
_REMOVED: Final = (-32002, -32042)
# Codes that neither a limit nor a failure of the server explains. An exception without a code
# becomes 0.
_WRONG: Final = (_INVALID_REQUEST, _NOT_FOUND, 0)
_SHORT: Final = 500  # characters of a message that is below every limit
_MAX_LINES: Final = 3  # lines; one concise sentence has fewer


def _code(message: SeenMessage) -> int | None:
    code = message.code
    return code if isinstance(code, int) and not isinstance(code, bool) else None


@rule("RPC-12", on="error")
def error_text_is_a_sentence(message: SeenMessage, state: ConversationState) -> Outcome:
    text = lookup(message.error, "message")
    if not isinstance(text, str):
        return None  # RPC-11
    lines = sum(bool(line.strip()) for line in text.splitlines())
    return lines < _MAX_LINES or f"the message of the error has {lines} lines"


@rule("RPC-20", on="error")
def batch_is_received(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.request is not None and message.request.in_batch:
        return True
    sent = state.batches[CLIENT if message.sender == SERVER else SERVER]
    if message.id is not None or message.in_batch or not sent:
        return None
    if message.code not in (_PARSE_ERROR, _INVALID_REQUEST) or not state.is_ordered:
        return None
    return RuleFailure("a batch is rejected", (sent,))


@rule("RPC-20", on="result")
def batch_is_served(message: SeenMessage, state: ConversationState) -> Outcome:
    return True if message.request is not None and message.request.in_batch else None


@rule("ERR-1", on="error")
def parse_error_is_of_what_has_no_id(message: SeenMessage, state: ConversationState) -> Outcome:
    code = _code(message)
    if code not in _STANDARD or message.request is None:
        return None
    if code != _PARSE_ERROR or not message.request.is_well_formed:
        return True
    # A receiver may have read only the beginning of a message over its limit.
    return RuleFailure(
        "a request whose id was read has the code of a parse error",
        (message.request.line,),
        is_certain=message.request.size <= _SHORT,
    )


@rule("ERR-5", on="error", sender=SERVER)
def removed_codes_are_not_used(message: SeenMessage, state: ConversationState) -> Outcome:
    code = _code(message)
    if code not in _REMOVED:
        return True
    method = message.request.method if message.request is not None else ""
    if code == _REMOVED[1] or method == "resources/read":
        return None  # ELIC-17 and RES-8
    return f"the error has the code {code}, which the revision does not have"


@rule("ERR-7", on="error")
def reserved_codes_are_defined(message: SeenMessage, state: ConversationState) -> Outcome:
    code, request = _code(message), message.request
    if code is None or not -32099 <= code <= _HEADERS or code in _REMOVED:
        return None
    if code not in (_HEADERS, _CAPABILITY, _VERSION):
        return f"the error has the code {code}, which is reserved"
    if code == _HEADERS and not message.exchange and request is not None:
        return RuleFailure(
            "the error -32020 of a request that had no HTTP headers", (request.line,)
        )
    if request is None:
        return None
    if code == _VERSION:
        supported = lookup(message.error, "data", "supported")
        named = request.meta.get(META + "protocolVersion")
        if names_two_versions(named, state) or is_stateful(named):
            return None  # such a revision is supported after a handshake only
        if isinstance(supported, list) and named in supported:
            return RuleFailure(
                f"the error -32022 names {show(named)}, that of the request, as supported",
                (request.line,),
            )
    if code == _CAPABILITY:
        needed = lookup(message.error, "data", "requiredCapabilities")
        declared = request.meta.get(META + "clientCapabilities")
        if isinstance(needed, dict) and needed and _has_all(declared, needed):
            return RuleFailure(
                "the error -32021 requires capabilities that the request declares",
                (request.line,),
            )
    return True


def _has_all(declared: Any, needed: Mapping[str, Any]) -> bool:
    """Return True if every capability in `needed` is declared."""
    if not isinstance(declared, dict):
        return False
    return all(
        key in declared
        and (not isinstance(value, dict) or not value or _has_all(declared[key], value))
        for key, value in needed.items()
    )


@rule("ERR-8", on="error")
def legacy_codes_are_not_used(message: SeenMessage, state: ConversationState) -> Outcome:
    code = _code(message)
    if code is None or code in _REMOVED:
        return None
    # The implementation may be older than the rule.
    return not -32019 <= code <= -32000 or RuleFailure(
        f"the error has the code {code}, and its range is closed", is_certain=False
    )


@rule("ERR-9", on="error")
def own_codes_are_outside(message: SeenMessage, state: ConversationState) -> Outcome:
    code = _code(message)
    if code is None or code in _STANDARD or -32099 <= code <= -32000:
        return None
    return not -32768 <= code < -32099 or (
        f"the error has the code {code}, which JSON-RPC reserves"
    )


@rule("TX-5", on="error", sender=SERVER, methods=("tools/call",))
def needed_tasks_are_named(message: SeenMessage, state: ConversationState) -> Outcome:
    extensions = lookup(message.error, "data", "requiredCapabilities", "extensions")
    if message.code != _CAPABILITY or not isinstance(extensions, dict):
        return None
    wrong = next((key for key in extensions if not isinstance(extensions[key], dict)), None)
    return wrong is None or f"the required extension {show(wrong)} is no object"


@rule("CAP-6", on="error", sender=SERVER, needs_history=True)
def undeclared_method_is_not_found(message: SeenMessage, state: ConversationState) -> Outcome:
    row, request = message.row, message.request
    if row is None or not row.needs or (request is not None and request.names_other_version):
        return None
    declared = state.negotiation.capabilities(SERVER, message)
    if declared is None or declares(declared, row.needs):
        return None
    return message.code == _NOT_FOUND or RuleFailure(
        f"{row.name} is not declared, and its error has the code {show(message.code)}",
        is_certain=False,
    )


@rule("ROOT-5", on="error", sender=CLIENT, methods=("roots/list",), needs_history=True)
def undeclared_roots_are_not_found(message: SeenMessage, state: ConversationState) -> Outcome:
    declared = state.negotiation.client_capabilities
    if message.request is None or declared is None or declares(declared, ("roots",)):
        return None
    if message.code == _INTERNAL or not message.request.is_well_formed:
        return None
    return message.code == _NOT_FOUND or RuleFailure(
        f"the client has no roots, and its error has the code {show(message.code)}",
        (message.request.line,),
        is_certain=message.code in (_INVALID_REQUEST, _INVALID_PARAMS, 0),
    )


@rule("ERR-1", on="result", needs_history=True)
def unknown_method_is_not_found(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if request is None or not request.method or request.method in KNOWN_METHODS:
        return None
    if not request.is_well_formed or request.names_other_version or message.error is not None:
        return None
    for side in (CLIENT, SERVER):
        declared = state.negotiation.capabilities(side, message)
        if declared is None or set(lookup(declared, "extensions") or ()) - {TASKS_EXTENSION}:
            return None  # an extension can define the method
        if lookup(declared, "experimental"):
            return None
    # The two sides may have agreed on it otherwise.
    return RuleFailure(
        f"the method {show(request.method)} has a result, and no revision has that method",
        (request.line,),
        is_certain=False,
    )


# -- What isn't found -----------------------------------------------------------------------------


def _unknown(
    message: SeenMessage, state: ConversationState, what: str, codes: tuple[int, ...]
) -> Outcome:
    """Judge the error for something that doesn't exist. The first of `codes` is the right one."""
    assert message.request is not None
    if not message.request.is_well_formed:
        return None  # the error can be about the message itself
    if message.request.names_other_version:
        return None  # VER-1
    has_revision = META + "protocolVersion" in message.request.meta
    if not has_revision and not state.negotiation.handshake_answered:
        return None  # or about the missing handshake
    if message.code == codes[0]:
        return True
    return RuleFailure(
        f"the error for {what} has the code {show(message.code)}, not {codes[0]}",
        (message.request.line,),
        is_certain=message.code in _WRONG,
    )


@rule("PAGE-6", on="error", methods=tuple(LISTS), needs_history=True)
def unknown_cursor_is_invalid_params(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    cursor = request.params.get("cursor") if request is not None else None
    if request is None or not isinstance(cursor, str):
        return None
    if state.lists.is_given_cursor(request.method, cursor):
        return None
    if request.method not in state.lists.complete and request.method not in state.lists.cursors:
        return None  # the error can be about the list itself
    return _unknown(message, state, f"the unknown cursor {show(cursor)}", (_INVALID_PARAMS,))


@rule("PRM-4", on="error", sender=SERVER, methods=("prompts/get",), needs_history=True)
def unknown_prompt_is_invalid_params(message: SeenMessage, state: ConversationState) -> Outcome:
    known, request = state.lists.complete.get("prompts/list"), message.request
    name = request.params.get("name") if request is not None else None
    if known is None or not isinstance(name, str):
        return None
    if name not in known.names:
        return _unknown(message, state, f"the unknown prompt {show(name)}", (_INVALID_PARAMS,))
    missing = _missing_arguments(request, state)
    if not missing:
        return None
    return _unknown(
        message, state, f"the missing argument {show(min(missing))}", (_INVALID_PARAMS,)
    )


@rule("LOG-5", on="error", sender=SERVER, methods=("logging/setLevel",), needs_history=True)
def unknown_level_is_invalid_params(message: SeenMessage, state: ConversationState) -> Outcome:
    level = message.request.params.get("level") if message.request is not None else None
    if not isinstance(level, str) or level in LOGGING_LEVELS:
        return None
    declared = state.negotiation.capabilities(SERVER, message)
    if declared is None or not declares(declared, ("logging",)):
        return None  # the error is about the method
    return _unknown(message, state, f"the unknown level {show(level)}", (_INVALID_PARAMS,))


@rule("PRM-4", on="result", sender=SERVER, methods=("prompts/get",), needs_history=True)
def prompt_needs_its_arguments(message: SeenMessage, state: ConversationState) -> Outcome:
    request, missing = message.request, _missing_arguments(message.request, state)
    if request is None or not missing or not is_complete(message):
        return None
    known = state.lists.complete["prompts/list"]
    return RuleFailure(
        f"a prompt is given without its required argument {show(min(missing))}",
        (request.line,),
        is_certain=state.lists.changed.get("prompts/list", 0) <= known.asked,
    )


def _missing_arguments(request: SeenRequest | None, state: ConversationState) -> frozenset[str]:
    """Return the required arguments of a listed prompt that a request doesn't give."""
    known = state.lists.complete.get("prompts/list")
    if known is None or request is None or not request.has_all_params:
        return frozenset()
    name, given = request.params.get("name"), request.params.get("arguments", {})
    required = known.required.get(name, frozenset()) if isinstance(name, str) else frozenset()
    return required.difference(given if isinstance(given, dict) else ())


@rule("COMP-4", on="error", sender=SERVER, methods=("completion/complete",), needs_history=True)
def unknown_reference_is_invalid_params(message: SeenMessage, state: ConversationState) -> Outcome:
    known, request = state.lists.complete.get("prompts/list"), message.request
    name = lookup(request.params, "ref", "name") if request is not None else None
    if known is None or not isinstance(name, str) or name in known.names:
        return None
    if message.code == _NOT_FOUND:
        return None  # the server completes nothing
    return _unknown(message, state, f"the unknown prompt {show(name)}", (_INVALID_PARAMS,))


def _is_unknown_resource(request: SeenRequest | None, state: ConversationState) -> bool:
    known = state.lists.complete.get("resources/list")
    templates = state.lists.complete.get("resources/templates/list")
    if request is None or known is None or templates is None or templates.names:
        return False
    uri = request.params.get("uri")
    return isinstance(uri, str) and uri not in known.names


@rule("RES-7", on="error", sender=SERVER, methods=("resources/read",), needs_history=True)
def unknown_resource_has_its_code(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.code == _REMOVED[0]:
        return True
    if not _is_unknown_resource(message.request, state):
        return None
    return _unknown(message, state, "an unknown resource", (_REMOVED[0],))


@rule("RES-9", on="response", sender=SERVER, methods=("resources/read",), needs_history=True)
def unknown_resource_is_not_empty(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if not _is_unknown_resource(request, state) or request is None:
        return None
    if message.result is None or lookup(message.result, "contents") != []:
        return True
    # The resource may exist without being listed.
    return RuleFailure(
        "the contents of an unknown resource are empty", (request.line,), is_certain=False
    )


# -- Tools -----------------------------------------------------------------------------------------


@rule("TOOL-3", on="response", sender=SERVER, methods=("tools/list",), needs_history=True)
def declared_tools_are_listed(message: SeenMessage, state: ConversationState) -> Outcome:
    declared = state.negotiation.capabilities(SERVER, message)
    if declared is None or not declares(declared, ("tools",)):
        return None
    if message.result is not None:
        return True
    if message.code != _NOT_FOUND:
        return None
    return "the server declares tools, and does not know tools/list"


class _Violation(NamedTuple):
    """How the arguments of a call violate their tool's schema.

    Attributes:
        text: where and how.
        is_beyond_doubt: a required argument is missing, and has no default. Servers convert what
            is there: `5` to `[5]`, `{}` to a string, and an unknown word to a known one.
    """

    text: str
    is_beyond_doubt: bool


def _violation(message: SeenMessage, state: ConversationState) -> _Violation | None:
    """Return how the arguments of a call violate their tool's schema, or None."""
    request = message.request
    if request is None or not request.has_all_params:
        return None
    tool = state.lists.tool_of(request)
    arguments = request.params.get("arguments", {})
    schema = lookup(tool, "inputSchema")
    if not isinstance(schema, dict) or not isinstance(arguments, dict):
        return None
    try:
        found = compile_schema(schema, state).find_error(arguments)
    except InvalidSchema:
        return None
    if found is None:
        return None
    required, properties = schema.get("required"), schema.get("properties")
    is_missing = any(
        isinstance(each, str)
        and each not in arguments
        and isinstance(lookup(properties, each), dict)
        and "default" not in lookup(properties, each)
        for each in (required if isinstance(required, list) else ())
    )
    return _Violation(show_violation(found), is_beyond_doubt=is_missing)


@rule("TOOL-16", on="response", sender=SERVER, methods=("tools/call",), needs_history=True)
def wrong_arguments_are_an_error_of_the_tool(
    message: SeenMessage, state: ConversationState
) -> Outcome:
    is_result = message.result is not None
    if is_result and not lookup(message.result, "isError"):
        return None  # TOOL-24
    if not is_result and message.code != _INVALID_PARAMS:
        return None
    found = _violation(message, state)
    if found is None or message.request is None:
        return None
    return is_result or RuleFailure(
        f"an error of the protocol, and not of the tool, for its arguments: {found.text}",
        (message.request.line,),
    )


@rule("TOOL-24", on="result", sender=SERVER, methods=("tools/call",), needs_history=True)
def wrong_arguments_are_rejected(message: SeenMessage, state: ConversationState) -> Outcome:
    if not is_complete(message):
        return None
    found = _violation(message, state)
    if found is None or message.request is None:
        return None
    return bool(lookup(message.result, "isError")) or RuleFailure(
        f"a call is served, and its arguments violate the schema: {found.text}",
        (message.request.line,),
        is_certain=found.is_beyond_doubt,
    )


@rule("TOOL-15", on="response", sender=SERVER, methods=("tools/call",), needs_history=True)
def failure_of_a_tool_is_in_its_result(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.result is not None:
        return True if lookup(message.result, "isError") is True else None
    request, code = message.request, _code(message)
    if request is None or code is None or state.lists.tool_of(request) is None:
        return None
    if code != _INTERNAL and -32768 <= code <= -32000:
        return None
    # The server may have failed before it reached the tool.
    return RuleFailure(
        f"the call of a known tool has an error with the code {code}",
        (request.line,),
        is_certain=False,
    )


@rule("TOOL-26", on="result", sender=SERVER, methods=("tools/call",), needs_history=True)
def embedded_resources_are_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    blocks = objects(lookup(message.result, "content"))
    if not any(block.get("type") == "resource" for block in blocks):
        return None
    declared = state.negotiation.capabilities(SERVER, message)
    if declared is None:
        return None
    return declares(declared, ("resources",)) or (
        "a tool returns an embedded resource, and the server did not declare resources"
    )


# -- Values that a request has declared or answered ------------------------------------------------


@rule("ELIC-23", on="response", sender=SERVER, needs_history=True)
def refused_input_is_handled(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    given = request.params.get("inputResponses") if request is not None else None
    if request is None or not isinstance(given, dict):
        return None
    actions = [lookup(each, "action") for each in given.values()]
    if "decline" not in actions and "cancel" not in actions:
        return None
    # The failure can have another cause.
    return message.code != _INTERNAL or RuleFailure(
        "an internal error follows input that the user has refused",
        (request.line,),
        is_certain=False,
    )


@rule("MRTR-15", on="error", sender=SERVER, needs_history=True)
def missing_input_is_asked_again(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    first = state.rounds.request_of(request.params) if request is not None else None
    asked = lookup(first.result, "inputRequests") if first is not None else None
    if request is None or not isinstance(asked, dict) or not request.is_modern:
        return None
    given = request.params.get("inputResponses")
    if asked.keys() <= (given.keys() if isinstance(given, dict) else set()):
        return None
    return RuleFailure(
        f"the error {show(message.code)} in place of a new question for the missing input",
        (request.line,),
        is_certain=False,  # the state can have expired
    )


@rule("MRTR-15", on="result", sender=SERVER, needs_history=True)
def round_follows_round(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if request is None or "inputResponses" not in request.params:
        return None
    return True if lookup(message.result, "resultType") == "input_required" else None
