"""Rules for headers that repeat arguments of a tool, and for versions in headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._sides import SERVER

from ._eras import is_revision
from ._features import objects
from ._http import decode_header, mirrored_name
from ._registry import RuleFailure, rule
from ._values import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_core.trace.judge._message import SeenMessage
    from mcp_core.trace.judge.conversation._conversation import ConversationState
    from mcp_core.trace.judge.conversation._http import SeenExchange

    from ._registry import Outcome

_ANNOTATION: Final = "x-mcp-header"
_PREFIX: Final = "mcp-param-"
_VERSION: Final = "mcp-protocol-version"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PRIMITIVES: Final = ("string", "integer", "boolean")
# Keywords whose value is data, and those whose value maps names to schemas.
_DATA: Final = frozenset({"const", "enum", "default", "examples"})
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_MAX_DEPTH: Final = 32
_MAX_KEPT: Final = 100
_MISMATCH: Final = -32020


class _Annotation(NamedTuple):
    """A property that a header repeats: the path of names to it, and the header's name."""

    path: tuple[str, ...]
    header: str


def _annotated(
    schema: Any, path: tuple[str, ...] | None, depth: int = 0
) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Yield each annotated schema with its path, None if `properties` alone don't lead to it."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return
    if _ANNOTATION in schema:
        yield path, schema
    for key, value in schema.items():
        if key in _DATA:
            continue
        if key in _MAPS and isinstance(value, dict):
            for name, each in value.items():
                below = (*path, name) if path is not None and key == "properties" else None
                yield from _annotated(each, below, depth + 1)
        elif isinstance(value, list):
            for each in value:
                yield from _annotated(each, None, depth + 1)
        else:
            yield from _annotated(value, None, depth + 1)


def _read(schema: Any) -> tuple[list[_Annotation], str]:
    """Return the annotations of a tool's schema, and the first error in them, or an empty text."""
    found: list[_Annotation] = []
    names: set[str] = set()
    for path, node in _annotated(schema, ()):
        name, kind = node[_ANNOTATION], node.get("type")
        if not isinstance(name, str) or _TOKEN.fullmatch(name) is None:
            return [], f"the header {show(name)} is no token"
        if name.lower() in names:
            return [], f"the header {show(name)} is that of two properties"
        if not path:
            return [], f"the header {show(name)} is on what no chain of properties leads to"
        if isinstance(kind, str) and kind not in _PRIMITIVES:
            return [], f"the header {show(name)} is on a property of the type {show(kind)}"
        names.add(name.lower())
        found.append(_Annotation(path, name))
    return found, ""


def _annotations(
    exchange: SeenExchange, state: ConversationState
) -> tuple[list[_Annotation], str] | None:
    """Return the annotations of the tool that an exchange calls, or None if the tool is unknown."""
    request = exchange.request
    if request is None or request.method != "tools/call" or request.redacted:
        return None
    schema = lookup(state.lists.tool(request.params.get("name")), "inputSchema")
    if not isinstance(schema, dict):
        return None
    known = state.lists.annotations.get(id(schema))
    if known is None or known[0] is not schema:
        if len(state.lists.annotations) >= _MAX_KEPT:
            state.lists.annotations.clear()
        known = state.lists.annotations[id(schema)] = (schema, _read(schema))
    found: tuple[list[_Annotation], str] = known[1]
    return found


def _expected(value: Any) -> str | None:
    """Return an argument as text for its header, or None if the argument cannot be in one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else None


def _is_equal(found: str, wanted: str, value: Any) -> bool:
    decoded = decode_header(found)
    if decoded == wanted:
        return True
    if isinstance(value, bool) or not isinstance(value, int) or decoded is None:
        return False
    try:
        return float(decoded) == value
    except (ValueError, OverflowError):
        return False


def _faults(exchange: SeenExchange, state: ConversationState) -> Iterator[tuple[str, str]]:
    """Yield a kind of fault and a text for each header that repeats an argument of a call.

    The kind is "missing", "other" or "more", or "right" for a correct header.
    """
    found = _annotations(exchange, state)
    request = exchange.request
    if found is None or request is None or found[1]:
        return
    for path, name in found[0]:
        value = lookup(request.params.get("arguments"), *path)
        sent = exchange.headers.get(_PREFIX + name.lower())
        wanted = _expected(value)
        what = f"`Mcp-Param-{name}`"
        if value is None:
            yield ("right", "") if sent is None else ("more", f"{what} is sent without an argument")
        elif wanted is None:
            continue  # the argument violates the schema
        elif sent is None:
            yield "missing", f"{what} is missing, the argument is {show(value)}"
        elif not _is_equal(sent, wanted, value):
            yield "other", f"{what} is {show(sent)}, the argument {show(value)}"
        else:
            yield "right", ""


@rule("HDR-7", on="http_request", needs_history=True, args=("missing",))
@rule("HDR-8", on="http_request", needs_history=True, args=("other",))
@rule("HDR-9", on="http_request", needs_history=True, args=("more",))
def arguments_are_repeated(exchange: SeenExchange, state: ConversationState, kind: str) -> Outcome:
    outcome: Outcome = None
    for found, text in _faults(exchange, state):
        if found == kind:
            return text
        if found == "right":
            outcome = True
    return outcome


@rule("HDR-13", on="http_request", needs_history=True)
def invalid_tool_is_not_called(exchange: SeenExchange, state: ConversationState) -> Outcome:
    found = _annotations(exchange, state)
    if found is None or (not found[0] and not found[1]):
        return None
    return not found[1] or f"a tool is called whose definition is invalid: {found[1]}"


@rule("HDR-12", on="result", sender=SERVER, methods=("tools/list",))
def annotations_are_valid(message: SeenMessage, state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for tool in objects(lookup(message.result, "tools")):
        found, error = _read(tool.get("inputSchema"))
        if error:
            return f"the tool {show(tool.get('name'))}: {error}"
        if found:
            outcome = True
    return outcome


@rule("HDR-10", on="http_response", needs_history=True, args=("missing",))
@rule("HDR-11", on="http_response", needs_history=True, args=("other",))
def wrong_parameter_is_rejected(
    exchange: SeenExchange, state: ConversationState, kind: str
) -> Outcome:
    found = [text for each, text in _faults(exchange, state) if each == kind]
    if not found or exchange.is_redirect:
        return None
    if exchange.status >= 400:
        # Another check can come first.
        response = exchange.response
        return True if response is not None and response.code == _MISMATCH else None
    return f"a call is served, and {found[0]}"


@rule("HDR-6", on="http_response", needs_history=True)
def encoded_name_is_decoded(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request, wanted = exchange.request, mirrored_name(exchange)
    found = exchange.headers.get("mcp-name", "")
    if request is None or wanted is None or not found.startswith("=?base64?"):
        return None
    if decode_header(found) != wanted or exchange.headers.get("mcp-method") != request.method:
        return None
    if exchange.headers.get(_VERSION) != request.meta.get(META + "protocolVersion"):
        return None
    if request.method == "tools/call":
        known = _annotations(exchange, state)
        if known is None or any(each != "right" for each, _ in _faults(exchange, state)):
            return None
    response = exchange.response
    code = response.code if response is not None else None
    return code != _MISMATCH or f"`Mcp-Name` is right and encoded, and the error is {_MISMATCH}"


@rule("TX-21", on="http_request")
def task_is_named(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    if request is None or request.method not in ("tasks/get", "tasks/update", "tasks/cancel"):
        return None
    # Only the header's presence counts: one of the two ids can be a pseudonym in the trace.
    return "mcp-name" in exchange.headers or f"{request.method} has no `Mcp-Name`"


# -- Versions --------------------------------------------------------------------------------------


@rule("SHL-29", on="http_response")
def unknown_version_is_rejected(exchange: SeenExchange, state: ConversationState) -> Outcome:
    found = exchange.headers.get(_VERSION)
    if found is None or not exchange.messages or is_revision(found) is not False:
        return None
    if exchange.status == 400:
        return True
    if exchange.status >= 300:
        return None
    return f"a request is served, and its `MCP-Protocol-Version` is {show(found)}"


@rule("SHM-4", on="http_response", any_revision=True)
def unsupported_version_is_an_error(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    wanted = request.meta.get(META + "protocolVersion") if request is not None else None
    if not isinstance(wanted, str) or exchange.headers.get(_VERSION) != wanted:
        return None
    supported = lookup(state.negotiation.discovered, "supportedVersions")
    is_unknown = is_revision(wanted) is False
    if not is_unknown and (not isinstance(supported, list) or wanted in supported):
        return None
    if exchange.status < 300:
        return f"a request of the version {show(wanted)} is served"
    code = exchange.response.code if exchange.response is not None else None
    if exchange.status != 400 or code is None:
        return None  # another check can come first
    return code == -32022 or RuleFailure(
        f"the error for the version {show(wanted)} has the code {show(code)}", is_certain=False
    )
