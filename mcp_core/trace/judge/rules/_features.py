"""Rules for tools, resources, prompts, sampling, elicitation and roots."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any, Final

from mcp_core._secret_patterns import is_secret_field
from mcp_core.protocol.schema._json_schema import InvalidSchema, SchemaTooComplex, UntrustedSchema
from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._sides import CLIENT, SERVER
from mcp_core.trace.judge.conversation._lists import LISTS, repeated_names

from ._lifecycle import declares
from ._registry import RuleFailure, rule
from ._values import show, show_violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_core.trace.judge._message import SeenMessage
    from mcp_core.trace.judge._sides import Side
    from mcp_core.trace.judge.conversation._conversation import ConversationState

    from ._registry import Outcome

_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MAX_COMPILED: Final = 100
_MAX_REMEMBERED: Final = 16_384  # characters; a longer schema isn't cached
_NOTIFIED: Final = 1.0  # seconds within which a notification follows a change
_KNOWN_SCHEMES: Final = ("http", "https", "file", "git")
_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
)
_USER_INFO: Final = re.compile(r"[^:/?#]+://[^/?#]*@")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value that should be an array of objects."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


# -- Tools -----------------------------------------------------------------------------------------


@rule("TOOL-6", on="result", sender=SERVER, methods=("tools/list",))
def input_schemas_are_objects(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    found = False
    for tool in objects(message.result.get("tools")):
        found = True
        if not isinstance(tool.get("inputSchema"), dict):
            return f"the inputSchema of {show(tool.get('name'))} is {show(tool.get('inputSchema'))}"
    return True if found else None


@rule("TOOL-19", on="result", sender=SERVER, methods=("tools/list",))
def tool_names_are_plain(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    names = [
        tool["name"]
        for tool in objects(message.result.get("tools"))
        if isinstance(tool.get("name"), str)
    ]
    if not names:
        return None
    wrong = next((name for name in names if _TOOL_NAME.fullmatch(name) is None), None)
    if wrong is not None:
        return f"a tool has the name {show(wrong)}"
    twice = repeated_names(message.result["tools"], "name")
    return f"two tools have the name {show(min(twice))}" if twice else True


# Lists whose entries have unique names. Two equal entries can be one entry that is listed twice.
_UNIQUE: Final = ("resources/list", "prompts/list")


@rule("RES-15", on="result", sender=SERVER, methods=("resources/list", "resources/templates/list"))
@rule("PRM-8", on="result", sender=SERVER, methods=("prompts/list",))
def entries_have_names_of_their_own(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.request is not None
    assert message.result is not None
    member, key = LISTS[message.request.method]
    entries = message.result.get(member)
    if not isinstance(entries, list) or not entries:
        return None
    twice = repeated_names(entries, key)
    if not twice:
        return True
    name = min(twice, key=lambda each: (not twice[each], each))
    # The specification says nothing about templates.
    return RuleFailure(
        f"the page has two entries with the {key} {show(name)}",
        is_certain=message.request.method in _UNIQUE and twice[name],
    )


@rule("TOOL-19", on="result", sender=SERVER, methods=("tools/list",), needs_history=True)
@rule(
    "RES-15",
    on="result",
    sender=SERVER,
    methods=("resources/list", "resources/templates/list"),
    needs_history=True,
)
@rule("PRM-8", on="result", sender=SERVER, methods=("prompts/list",), needs_history=True)
def pages_share_no_name(message: SeenMessage, state: ConversationState) -> Outcome:
    request, found = message.request, state.lists.completed_list(message)
    assert request is not None
    if found is None or not found.names or request.params.get("cursor") is None:
        return None
    method = request.method
    if state.lists.changed.get(method, 0) > found.asked:
        return None
    if not found.repeated:
        return True
    before = state.lists.complete.get(method)
    earlier: Mapping[str, bool] = before.repeated if before is not None else {}
    # An entry that moves while the list is read can be on two pages, but not each time.
    again = sorted(
        name
        for name, differs in found.repeated.items()
        if name in earlier and (method == "tools/list" or (method in _UNIQUE and differs))
    )
    name = (again or sorted(found.repeated))[0]
    return RuleFailure(
        f"the pages of {method} have two entries with the {LISTS[method][1]} {show(name)}",
        (before.line,) if again and before is not None else (),
        is_certain=bool(again) and state.lists.is_only_view(state.http.view),
    )


@rule("TOOL-10", on="result", sender=SERVER, methods=("tools/call",), needs_history=True)
def structured_content_fits_schema(message: SeenMessage, state: ConversationState) -> Outcome:
    result, request = message.result, message.request
    assert result is not None
    assert request is not None
    tool = state.lists.tool_of(request)
    if tool is None or result.get("isError") or not is_complete(message):
        return None
    schema = tool.get("outputSchema")
    if not isinstance(schema, dict) or request.cancelled:
        return None
    if "structuredContent" not in result:
        return RuleFailure(
            f"the result of {show(tool['name'])} has no structuredContent", (request.line,)
        )
    try:
        violation = compile_schema(schema, state).find_error(result["structuredContent"])
    except InvalidSchema:
        return None
    return (
        True
        if violation is None
        else RuleFailure(
            f"the structuredContent of {show(tool['name'])} does not match its schema: "
            + show_violation(violation),
            (request.line,),
        )
    )


def compile_schema(schema: dict[str, Any], state: ConversationState) -> UntrustedSchema:
    """Return the compiled schema of a tool in the last list.

    Raises:
        InvalidSchema: the schema cannot be used.
    """
    known = state.lists.compiled.get(id(schema))
    if known is None or known[0] is not schema:
        if len(state.lists.compiled) >= _MAX_COMPILED:
            state.lists.compiled.clear()
        known = state.lists.compiled[id(schema)] = (schema, _compile(schema))
    return known[1]


def _compile(schema: dict[str, Any]) -> UntrustedSchema:
    """Return the compiled schema, from a cache that all conversations share.

    Raises:
        InvalidSchema: the schema cannot be used.
    """
    text = json.dumps(schema)
    compiled = _compile_remembered(text) if len(text) <= _MAX_REMEMBERED else _compile_text(text)
    if isinstance(compiled, UntrustedSchema):
        return compiled
    raise type(compiled)(*compiled.args)  # a copy: an exception keeps its frames alive


def _compile_text(text: str) -> UntrustedSchema | InvalidSchema:
    try:
        return UntrustedSchema(json.loads(text))
    except InvalidSchema as exc:
        return type(exc)(*exc.args)


# Compiling takes milliseconds, and all conversations with a server list the same tools. Judges in
# two threads may share a schema and its count of steps: at worst both miss an error.
_compile_remembered = functools.lru_cache(maxsize=256)(_compile_text)


def is_complete(message: SeenMessage) -> bool:
    """Return True for the call's own result, not for a task or a request for input."""
    assert message.result is not None
    request = message.request
    if message.facts.requested_tasks and request is not None and "task" in request.params:
        return False
    return bool(message.result.get("resultType", "complete") == "complete")


@rule("TOOL-12", on="result", sender=SERVER, methods=("tools/call",))
def structured_content_is_text_too(message: SeenMessage, state: ConversationState) -> Outcome:
    result = message.result
    assert result is not None
    if "structuredContent" not in result or result.get("isError"):
        return None
    blocks = objects(result.get("content"))
    return any(block.get("type") == "text" for block in blocks) or (
        "the result has structuredContent and no text block"
    )


@rule("TOOL-17", on="response", sender=SERVER, methods=("tools/call",), needs_history=True)
def unknown_tool_is_invalid_params(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    assert request is not None
    name = request.params.get("name")
    if state.lists.tools is None or not isinstance(name, str) or name in state.lists.tools:
        return None
    if request.names_other_version:
        return None  # VER-1
    if message.error is not None and message.code != -32602:
        # Another error, such as a missing header or a limit, can come first.
        return RuleFailure(
            f"the error for the unknown tool {show(name)} has the code {show(message.code)}",
            (request.line,),
            # -32601 is about the tool, unless the call asks for a task.
            is_certain=message.code == -32601 and "task" not in request.params,
        )
    if message.result is not None and not message.result.get("isError"):
        return None  # the tool may be newer than the list, or unlisted
    return (
        True
        if message.error is not None
        else RuleFailure(
            f"the unknown tool {show(name)} has a result with isError",
            (request.line,),
            is_certain=False,
        )
    )


@rule("JSCH-3", on="result", sender=SERVER, methods=("tools/list",))
def schemas_are_valid(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    checked = False
    for tool in objects(message.result.get("tools")):
        if tool == (state.lists.tools or {}).get(str(tool.get("name"))):
            continue  # already checked
        for key in ("inputSchema", "outputSchema"):
            schema = tool.get(key)
            if not isinstance(schema, dict):
                continue
            error = _find_schema_error(schema)
            if error:
                return f"the {key} of {show(tool.get('name'))} is no valid schema: {error}"
            checked = checked or error is not None
    return True if checked else None


def _find_schema_error(schema: dict[str, Any]) -> str | None:
    """Return a schema's error, "" if it is valid, or None if that cannot be known."""
    try:
        _compile(schema)
    except SchemaTooComplex:
        return None
    except InvalidSchema as exc:
        # An unsupported dialect, an external reference or an endless one isn't a fault.
        return str(exc) if str(exc).startswith("not a valid JSON Schema") else None
    return ""


@rule("TOOL-5", on="result", sender=SERVER, methods=("tools/list",))
def order_of_tools_stays(message: SeenMessage, state: ConversationState) -> Outcome:
    before, now = state.lists.complete.get("tools/list"), state.lists.completed_list(message)
    if before is None or now is None or set(before.names) != set(now.names):
        return None
    if state.lists.changed.get("tools/list", 0) > before.asked:
        return None  # a tool may have been removed and added again
    return before.names == now.names or RuleFailure(
        "the same tools are listed in another order", (before.line,)
    )


# -- Lists that change -----------------------------------------------------------------------------


@rule("TOOL-23", on="close", needs_history=True, args=(SERVER, "tools", "tools/list"))
@rule("RES-14", on="close", needs_history=True, args=(SERVER, "resources", "resources/list"))
@rule("PRM-5", on="close", needs_history=True, args=(SERVER, "prompts", "prompts/list"))
@rule("ROOT-4", on="close", needs_history=True, args=(CLIENT, "roots", "roots/list"))
def changed_lists_are_notified(
    state: ConversationState, side: Side, capability: str, *methods: str
) -> Outcome:
    """Judge whether the lists of `methods` have changed without a notification."""
    known = state.negotiation
    declared = known.server_capabilities if side == SERVER else known.client_capabilities
    if declared is None or not declares(declared, (capability, "listChanged")):
        return None
    if not state.is_ordered:
        return None
    for method in methods:
        change = state.lists.silent_changes.get(method)
        if change is not None:
            before, now, time = change
            # The notification can come after the list.
            return RuleFailure(
                f"{method} has changed without a notification",
                (before, now),
                is_certain=state.last_time - time >= _NOTIFIED,
                side=side,
            )
    return True if any(method in state.lists.changed for method in methods) else None


# -- Resources and prompts -------------------------------------------------------------------------


@rule(
    "RES-5",
    on="notification",
    sender=SERVER,
    methods=("notifications/resources/updated",),
    needs_history=True,
)
def updates_go_to_subscribers(message: SeenMessage, state: ConversationState) -> Outcome:
    if not state.is_ordered and (state.http.session is None or not state.http.is_in_session):
        return None  # without a session, the server can't tell its clients apart
    if state.ever_subscribed:
        return True  # the update can be for a part of the subscribed resource
    return "an update although the client never subscribed"


@rule("RES-8", on="error", sender=SERVER, methods=("resources/read",))
def missing_resource_is_invalid_params(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.code == -32002:
        return "a missing resource has the code -32002, which the revision replaced by -32602"
    return True if message.code == -32602 else None


@rule("RES-11", on="result", sender=SERVER, methods=("resources/list",))
def custom_schemes_follow_the_grammar(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for resource in objects(lookup(message.result, "resources")):
        uri = resource.get("uri")
        if not isinstance(uri, str) or uri.partition(":")[0].lower() in _KNOWN_SCHEMES:
            continue
        if _URI.fullmatch(uri) is None:
            return f"a resource has the URI {show(uri)}, which RFC 3986 does not allow"
        outcome = True
    return outcome


@rule("CONT-8", on="result", sender=SERVER, methods=("prompts/get",))
def embedded_resources_are_complete(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for entry in objects(lookup(message.result, "messages")):
        resource = lookup(entry, "content", "resource")
        if not isinstance(resource, dict):
            continue
        uri, kind = resource.get("uri"), resource.get("mimeType")
        if not isinstance(uri, str) or _SCHEME.match(uri) is None:
            return f"an embedded resource has the URI {show(uri)}"
        if not isinstance(kind, str):
            return f"the embedded resource {show(uri)} has no mimeType"
        outcome = True
    return outcome


# -- Sampling, elicitation and roots ---------------------------------------------------------------


def sampling_requests(message: SeenMessage) -> Iterator[Mapping[str, Any]]:
    yield from _asked(message, "sampling/createMessage")


def _asked(message: SeenMessage, method: str) -> Iterator[Mapping[str, Any]]:
    """Yield the params of the requests to the client that a server's message contains."""
    if message.kind == "request" and message.method == method:
        yield message.params
    for holder in (message.result, message.params):
        requests = lookup(holder, "inputRequests")
        for each in requests.values() if isinstance(requests, dict) else ():
            params = lookup(each, "params")
            if lookup(each, "method") == method and isinstance(params, dict):
                yield params


@rule(
    "SAMP-5", on="request", sender=SERVER, methods=("sampling/createMessage",), needs_history=True
)
@rule("SAMP-5", on="result", sender=SERVER, needs_history=True)
def tools_of_sampling_are_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for params in sampling_requests(message):
        if "tools" not in params and "toolChoice" not in params:
            continue
        declared = state.negotiation.capabilities(CLIENT, message)
        if declared is None:
            return None
        if not declares(declared, ("sampling", "tools")):
            return "the request has tools, and the client did not declare sampling.tools"
        outcome = True
    return outcome


@rule(
    "SAMP-5",
    on="response",
    sender=CLIENT,
    methods=("sampling/createMessage",),
    needs_history=True,
)
def undeclared_tools_are_refused(message: SeenMessage, state: ConversationState) -> Outcome:
    request, declared = message.request, state.negotiation.capabilities(CLIENT, message)
    if request is None or not request.has_all_params or declared is None:
        return None
    if not declares(declared, ("sampling",)) or declares(declared, ("sampling", "tools")):
        return None  # SAMP-1
    if "tools" not in request.params and "toolChoice" not in request.params:
        return None
    return message.result is None or RuleFailure(
        "sampling with tools, which were not declared, has a result", (request.line,)
    )


@rule(
    "SAMP-6", on="request", sender=SERVER, methods=("sampling/createMessage",), needs_history=True
)
def context_of_sampling_is_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.params.get("includeContext") not in ("thisServer", "allServers"):
        return None
    declared = state.negotiation.capabilities(CLIENT, message)
    if declared is None:
        return None
    return declares(declared, ("sampling", "context")) or (
        "the request includes context, and the client did not declare sampling.context"
    )


def _blocks(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = entry.get("content")
    return list(objects(content if isinstance(content, list) else [content]))


def _sampling_messages(message: SeenMessage) -> Iterator[list[dict[str, Any]]]:
    for params in sampling_requests(message):
        yield list(objects(params.get("messages")))


@rule("SAMP-7", on="request", sender=SERVER, methods=("sampling/createMessage",))
def tool_results_are_alone(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for entries in _sampling_messages(message):
        for entry in entries:
            kinds = {str(block.get("type")) for block in _blocks(entry)}
            if entry.get("role") == "user" and "tool_result" in kinds:
                if kinds != {"tool_result"}:
                    return "a user message has a tool_result and other content"
                outcome = True
    return outcome


@rule("SAMP-8", on="request", sender=SERVER, methods=("sampling/createMessage",))
def tool_uses_are_answered(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for entries in _sampling_messages(message):
        for index, entry in enumerate(entries):
            if entry.get("role") != "assistant":
                continue
            used = sorted(
                str(block.get("id")) for block in _blocks(entry) if block.get("type") == "tool_use"
            )
            if not used:
                continue
            results = sorted(
                str(block.get("toolUseId"))
                for block in _blocks(entries[index + 1] if index + 1 < len(entries) else {})
                if block.get("type") == "tool_result"
            )
            if used != results:
                return "the tool_use blocks of a message do not match the tool_results after it"
            outcome = True
    return outcome


@rule("SAMP-9", on="request", sender=SERVER, methods=("sampling/createMessage",))
def tool_results_name_a_tool_use(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for entries in _sampling_messages(message):
        known: set[str] = set()
        for entry in entries:
            for block in _blocks(entry):
                if block.get("type") == "tool_use":
                    known.add(str(block.get("id")))
                elif block.get("type") == "tool_result":
                    if str(block.get("toolUseId")) not in known:
                        return f"the toolUseId {show(block.get('toolUseId'))} is of no tool_use"
                    outcome = True
    return outcome


@rule("ELIC-3", on="request", sender=SERVER, methods=("elicitation/create",), needs_history=True)
def mode_is_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    declared = state.negotiation.capabilities(CLIENT, message)
    elicitation = lookup(declared, "elicitation")
    if not isinstance(elicitation, dict):
        return None  # CAP-3
    mode = message.params.get("mode", "form")
    # An empty object declares forms.
    modes = [each for each in ("form", "url") if each in elicitation] or ["form"]
    return mode in modes or f"the mode {show(mode)} was not declared"


@rule("ELIC-3", on="response", sender=CLIENT, methods=("elicitation/create",), needs_history=True)
def undeclared_mode_is_refused(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    elicitation = lookup(state.negotiation.capabilities(CLIENT, message), "elicitation")
    if request is None or not request.has_all_params or not isinstance(elicitation, dict):
        return None  # ELIC-1
    mode = request.params.get("mode", "form")
    modes = [each for each in ("form", "url") if each in elicitation] or ["form"]
    if mode in modes:
        return None
    if message.result is None:
        return True if message.code == -32602 else None  # the params may be wrong, too
    return RuleFailure(
        f"an elicitation in the mode {show(mode)}, which was not declared, has a result",
        (request.line,),
        is_certain=message.result.get("action") == "accept",
    )


_PRIMITIVES: Final = ("string", "number", "integer", "boolean", "array")


@rule("ELIC-6", on="request", sender=SERVER, methods=("elicitation/create",))
def form_is_flat(message: SeenMessage, state: ConversationState) -> Outcome:
    properties = lookup(message.params, "requestedSchema", "properties")
    if not isinstance(properties, dict):
        return None
    for name, each in properties.items():
        kind = lookup(each, "type")
        if kind not in _PRIMITIVES or (kind == "array" and message.facts.no_array_fields):
            return f"the field {show(name)} has the type {show(kind)}"
    return True


@rule("ELIC-10", on="result", sender=CLIENT, methods=("elicitation/create",))
def content_fits_form(message: SeenMessage, state: ConversationState) -> Outcome:
    result, request = message.result, message.request
    assert result is not None
    assert request is not None
    schema = request.params.get("requestedSchema")
    return _form_content(schema, result, (request.line,)) if isinstance(schema, dict) else None


def _form_content(
    schema: dict[str, Any], result: Mapping[str, Any], lines: tuple[int, ...]
) -> Outcome:
    """Judge whether the content of an accepted form matches its schema."""
    if result.get("action") != "accept":
        return None
    try:
        violation = _compile(schema).find_error(result.get("content", {}))
    except InvalidSchema:
        return None
    return violation is None or RuleFailure(
        f"the content does not match the form: {show_violation(violation)}", lines
    )


@rule("ELIC-13", on="request", sender=SERVER, methods=("elicitation/create",))
def url_is_valid(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.params.get("mode") != "url":
        return None
    url = message.params.get("url")
    return (isinstance(url, str) and _SCHEME.match(url) is not None) or f"the url is {show(url)}"


@rule("ELIC-16", on="error", sender=SERVER)
def required_elicitations_are_listed(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.code != -32042:
        return None
    found = lookup(message.error, "data", "elicitations")
    if not isinstance(found, list) or not found:
        return f"`data.elicitations` of the error -32042 is {show(found)}"
    for each in found:
        if lookup(each, "mode") != "url" or not isinstance(lookup(each, "elicitationId"), str):
            return "an elicitation of the error -32042 is not of mode url with an elicitationId"
    return True


@rule("ELIC-17", on="error", sender=SERVER)
def removed_error_is_not_used(message: SeenMessage, state: ConversationState) -> Outcome:
    return message.code != -32042 or "the error -32042, which the revision does not have"


@rule("ELIC-17", on="notification", sender=SERVER, methods=("notifications/elicitation/complete",))
def removed_notification_is_not_used(message: SeenMessage, state: ConversationState) -> Outcome:
    return "notifications/elicitation/complete, which the revision does not have"


@rule("ROOT-3", on="result", sender=CLIENT, methods=("roots/list",))
def roots_are_files(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    return _root_uris(message.result)


def _root_uris(result: Mapping[str, Any]) -> Outcome:
    roots = list(objects(result.get("roots")))
    uris = [root["uri"] for root in roots if isinstance(root.get("uri"), str)]
    if not uris:
        return None
    wrong = next((uri for uri in uris if not uri.startswith("file://")), None)
    return True if wrong is None else f"a root has the URI {show(wrong)}"


# -- What a client answers, and what it is asked for -----------------------------------------------


def _tool_choice(params: Any, result: Any) -> Outcome:
    """Judge whether a sampled message follows `toolChoice`."""
    mode = lookup(params, "toolChoice", "mode")
    if mode not in ("required", "none") or not isinstance(result, dict):
        return None
    uses_tools = any(block.get("type") == "tool_use" for block in _blocks(result))
    if mode == "none":
        return not uses_tools or "a tool is used, and the toolChoice is none"
    # The model may have been stopped before it used a tool.
    return uses_tools or RuleFailure(
        "no tool is used, and the toolChoice is required",
        is_certain=result.get("stopReason") != "maxTokens",
    )


@rule("SAMP-10", on="result", sender=CLIENT, methods=("sampling/createMessage",))
def sampled_message_follows_tool_choice(message: SeenMessage, state: ConversationState) -> Outcome:
    return _tool_choice(message.request and message.request.params, message.result)


@rule("SAMP-10", on="request", sender=CLIENT)
def nested_message_follows_tool_choice(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for asked, each in _answered_input(message, state):
        judged = _tool_choice(asked.get("params"), each)
        if judged is not None and judged is not True:
            return judged
        outcome = outcome or judged
    return outcome


def _answered_input(
    message: SeenMessage, state: ConversationState
) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield what was asked, and the client's result, for each input response of a retry."""
    given, first = message.params.get("inputResponses"), state.rounds.request_of(message.params)
    asked = lookup(first.result, "inputRequests") if first is not None else None
    for key, each in given.items() if isinstance(given, dict) else ():
        found = lookup(asked, key)
        if isinstance(found, dict) and isinstance(each, dict):
            yield found, each


@rule("ELIC-10", on="request", sender=CLIENT, needs_history=True)
def nested_content_fits_form(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for asked, each in _answered_input(message, state):
        schema = lookup(asked, "params", "requestedSchema")
        if asked.get("method") != "elicitation/create" or not isinstance(schema, dict):
            continue
        judged = _form_content(schema, each, ())
        if judged is not None and judged is not True:
            return judged
        outcome = outcome or judged
    return outcome


@rule("ROOT-3", on="request", sender=CLIENT, needs_history=True)
def nested_roots_are_files(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for asked, each in _answered_input(message, state):
        judged = _root_uris(each) if asked.get("method") == "roots/list" else None
        if judged is not None and judged is not True:
            return judged
        outcome = outcome or judged
    return outcome


@rule("SAMP-1", on="request", sender=CLIENT, needs_history=True, args=("sampling/createMessage",))
@rule("ELIC-1", on="request", sender=CLIENT, needs_history=True, args=("elicitation/create",))
@rule("ROOT-1", on="request", sender=CLIENT, needs_history=True, args=("roots/list",))
def nested_feature_of_client_is_declared(
    message: SeenMessage, state: ConversationState, method: str
) -> Outcome:
    declared = message.meta.get(META + "clientCapabilities")
    if not message.is_modern or not isinstance(declared, dict):
        return None
    capability, outcome = _CAPABILITIES[method], None
    for asked, each in _answered_input(message, state):
        if asked.get("method") != method:
            continue
        if not declares(declared, (capability,)):
            is_refused = each.get("action") in ("decline", "cancel") or each.get("roots") == []
            return RuleFailure(
                f"{method} has a result although the client did not declare {capability}",
                is_certain=not is_refused,
            )
        outcome = True
    return outcome


_CAPABILITIES: Final = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}


@rule("SAMP-11", on="response", sender=CLIENT, methods=("sampling/createMessage",))
def unbalanced_messages_are_rejected(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if request is None or not request.has_all_params or not _is_unbalanced(request.params):
        return None
    if message.result is None:
        return True if message.code == -32602 else None  # the user may have declined
    return RuleFailure("messages that lack tool_results are sampled", (request.line,))


def _is_unbalanced(params: Mapping[str, Any]) -> bool:
    """Return True if tool_results are mixed with other content, or a tool_use isn't answered."""
    entries = list(objects(params.get("messages")))
    for index, entry in enumerate(entries):
        kinds = {str(block.get("type")) for block in _blocks(entry)}
        if entry.get("role") == "user" and "tool_result" in kinds and len(kinds) > 1:
            return True
        used = {str(each.get("id")) for each in _blocks(entry) if each.get("type") == "tool_use"}
        following = _blocks(entries[index + 1]) if index + 1 < len(entries) else []
        if entry.get("role") == "assistant" and used - {
            str(each.get("toolUseId")) for each in following if each.get("type") == "tool_result"
        }:
            return True
    return False


@rule("ELIC-2", on="request", sender=CLIENT)
def declared_elicitation_has_a_mode(message: SeenMessage, state: ConversationState) -> Outcome:
    found = lookup(message.params, "capabilities", "elicitation")
    if message.method != "initialize":
        found = lookup(message.meta.get(META + "clientCapabilities"), "elicitation")
    if not isinstance(found, dict):
        return None
    # Such a client may still support a mode.
    return (
        not found
        or "form" in found
        or "url" in found
        or RuleFailure("elicitation is declared without form or url", is_certain=False)
    )


@rule("ELIC-12", on="request", sender=SERVER, methods=("elicitation/create",))
@rule("ELIC-12", on="result", sender=SERVER)
def forms_ask_for_no_secrets(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for params in _asked(message, "elicitation/create"):
        properties = lookup(params, "requestedSchema", "properties")
        for name in properties if isinstance(properties, dict) else ():
            if is_secret_field(name):
                # A field's name doesn't say what it is for.
                return RuleFailure(f"a form has the field {show(name)}", is_certain=False)
            outcome = True
    return outcome


@rule("ELIC-19", on="request", sender=SERVER, methods=("elicitation/create",))
@rule("ELIC-19", on="result", sender=SERVER)
def urls_have_no_credentials(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for params in _asked(message, "elicitation/create"):
        url = params.get("url")
        if params.get("mode") != "url" or not isinstance(url, str):
            continue
        found = _USER_INFO.match(url)
        if found is not None:
            # A name alone doesn't have to be the user's.
            has_password = ":" in found.group().partition("://")[2]
            return RuleFailure("the URL of an elicitation has user info", is_certain=has_password)
        outcome = True
    return outcome
