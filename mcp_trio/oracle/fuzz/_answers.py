"""A client's answers to a server: results of the server's requests, and altered values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["altered_state", "client_result", "input_responses", "name_of", "result_of_input"]

_SHOWN: Final = 80  # characters of a name


def client_result(method: str, params: Any) -> dict[str, Any] | None:
    """Return a client's result for a server's request, None if it answers with an error."""
    match method:
        case "ping":
            return {}
        case "roots/list":
            return {"roots": [{"uri": "file:///project", "name": "project"}]}
        case "sampling/createMessage":
            return {
                "role": "assistant",
                "content": {"type": "text", "text": "yes"},
                "model": "none",
                "stopReason": "endTurn",
            }
        case "elicitation/create":
            schema = params.get("requestedSchema") if isinstance(params, dict) else None
            if not isinstance(schema, dict):
                return {"action": "decline"}
            return {"action": "accept", "content": _filled(schema)}
        case _:
            return None


def result_of_input(request: Any) -> dict[str, Any]:
    """Return the input response to one of a result's `inputRequests`."""
    if not isinstance(request, dict):
        return {}
    return client_result(str(request.get("method")), request.get("params")) or {}


def input_responses(asked: Mapping[str, Any], how: str) -> dict[str, Any]:
    """Return the input responses to a result's `inputRequests`.

    How: right, declined (what a user can refuse), wrong (of another type), or unknown (right, and
    one more that was not asked for).
    """
    if how == "wrong":
        return dict.fromkeys(asked, 7)
    found = {key: result_of_input(each) for key, each in asked.items()}
    if how == "declined":
        found = {
            key: {"action": "decline"} if "action" in each else each for key, each in found.items()
        }
    elif how == "unknown":
        found["mcp-trio-fuzz-none"] = {"action": "cancel"}
    return found


def _filled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each required member of a form."""
    properties, required = schema.get("properties"), schema.get("required")
    found: dict[str, Any] = {}
    for name in required if isinstance(required, list) else ():
        each = properties.get(name) if isinstance(properties, dict) else None
        each = each if isinstance(each, dict) else {}
        options = each.get("enum")
        if isinstance(options, list) and options:
            found[str(name)] = options[0]
        else:
            values = {"boolean": True, "integer": 1, "number": 1.5, "array": []}
            found[str(name)] = values.get(str(each.get("type")), "text")
    return found


def altered_state(state: str) -> str:
    """Return a `requestState` with another character in the middle."""
    if not state:
        return "x"
    place = len(state) // 2
    return state[:place] + ("A" if state[place] != "A" else "B") + state[place + 1 :]


def name_of(message: Mapping[str, Any]) -> str:
    """Return the name or URI in a request's params, shortened, or ""."""
    params = message.get("params")
    if not isinstance(params, dict):
        return ""
    return str(params.get("name", params.get("uri", "")))[:_SHOWN]
