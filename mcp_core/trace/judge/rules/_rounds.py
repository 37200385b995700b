"""Rules for multi round-trip requests and for subscriptions (2026-07-28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._ids import id_key
from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._message import TASKS_EXTENSION
from mcp_core.trace.judge._sides import CLIENT, SERVER

from ._lifecycle import declares
from ._registry import RuleFailure, rule
from ._values import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace.judge._message import SeenMessage, SeenRequest
    from mcp_core.trace.judge.conversation._conversation import ConversationState

    from ._registry import Outcome

_ROUNDS: Final = ("tools/call", "prompts/get", "resources/read")
_SUBSCRIPTION: Final = META + "subscriptionId"
# What a server may ask for, and the capability that the client declares for it.
_ASKED: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
# Notifications of a subscription, and the member of the filter that asks for them.
_FILTERS: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
    "notifications/tasks": "taskIds",
}


def _is_round(message: SeenMessage) -> bool:
    return bool(lookup(message.result, "resultType") == "input_required")


@rule("MRTR-2", on="result", sender=SERVER)
def input_is_required_where_allowed(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if not _is_round(message) or request is None:
        return None
    return request.method in _ROUNDS or RuleFailure(
        f"an `input_required` result of {request.method}", (request.line,)
    )


@rule("MRTR-3", on="result", sender=SERVER)
def round_has_requests_or_state(message: SeenMessage, state: ConversationState) -> Outcome:
    if not _is_round(message):
        return None
    assert message.result is not None
    return (
        "inputRequests" in message.result
        or "requestState" in message.result
        or ("an `input_required` result has neither inputRequests nor requestState")
    )


@rule("MRTR-5", on="result", sender=SERVER)
def asked_input_is_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    requests = lookup(message.result, "inputRequests")
    declared = state.negotiation.capabilities(CLIENT, message)
    if not isinstance(requests, dict) or not requests or declared is None:
        return None
    for each in requests.values():
        method = lookup(each, "method")
        needed = _ASKED.get(method) if isinstance(method, str) else None
        if needed is None:
            continue
        if not declares(declared, (needed,)):
            return f"{method} is asked, and the client did not declare {needed}"
        params = lookup(each, "params")
        is_url = needed == "elicitation" and lookup(params, "mode") == "url"
        if is_url and not declares(declared, (needed, "url")):
            return "an elicitation of mode url, which the client did not declare"
        has_tools = needed == "sampling" and isinstance(params, dict) and "tools" in params
        if has_tools and not declares(declared, (needed, "tools")):
            return "sampling with tools, which the client did not declare"
    return True


@rule("MRTR-6", on="request", sender=CLIENT, methods=_ROUNDS, needs_history=True)
def retry_has_all_responses(message: SeenMessage, state: ConversationState) -> Outcome:
    first = state.rounds.request_of(message.params)
    asked = lookup(first.result, "inputRequests") if first is not None else None
    if first is None or not isinstance(asked, dict) or not asked:
        return None
    given = message.params.get("inputResponses")
    missing = sorted(asked.keys() - (given.keys() if isinstance(given, dict) else set()))
    return not missing or RuleFailure(
        f"the retry lacks the response to {show(missing[0])}", (first.line, first.answered)
    )


@rule("MRTR-7", on="request", sender=CLIENT, methods=_ROUNDS, needs_history=True)
def retry_repeats_the_request(message: SeenMessage, state: ConversationState) -> Outcome:
    first = state.rounds.request_of(message.params)
    if first is None or not first.has_all_params:
        return None
    if first.method != message.method:
        return RuleFailure(f"the retry of {first.method} is {message.method}", (first.line,))
    before, now = _own_params(first.params), _own_params(message.params)
    changed = next((key for key in {**before, **now} if before.get(key) != now.get(key)), None)
    return changed is None or RuleFailure(
        f"the retry has another `{changed}` than the request", (first.line,)
    )


def _own_params(params: Mapping[str, Any]) -> dict[str, Any]:
    left_out = ("inputResponses", "requestState", "_meta")
    return {key: value for key, value in params.items() if key not in left_out}


@rule("MRTR-8", on="request", sender=CLIENT, methods=_ROUNDS, needs_history=True)
def state_was_given(message: SeenMessage, state: ConversationState) -> Outcome:
    found = message.params.get("requestState")
    if not isinstance(found, str):
        return None
    # A client can have kept the state from a conversation that isn't in the trace.
    return found in state.rounds.given or RuleFailure(
        "the requestState is none that the server has given",
        is_certain=state.rounds.given.is_complete,
    )


@rule("MRTR-13", on="response", sender=SERVER, methods=_ROUNDS, needs_history=True)
def unknown_state_is_rejected(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    found = request.params.get("requestState") if request is not None else None
    if request is None or not isinstance(found, str) or found in state.rounds.given:
        return None
    # The state can come from a conversation before the trace, and some states need no protection.
    return message.result is None or RuleFailure(
        "a requestState that the server has not given is accepted",
        (request.line,),
        is_certain=False,
    )


@rule("MRTR-10", on="request", sender=CLIENT, methods=_ROUNDS, needs_history=True)
def retry_has_a_new_id(message: SeenMessage, state: ConversationState) -> Outcome:
    first = state.rounds.request_of(message.params)
    if first is None or id_key(message.id) is None:
        return None
    return id_key(first.id) != id_key(message.id) or RuleFailure(
        "the retry has the id of the request before", (first.line,)
    )


# -- Subscriptions ---------------------------------------------------------------------------------


def _subscription(message: SeenMessage, state: ConversationState) -> SeenRequest | None:
    key = id_key(message.meta.get(_SUBSCRIPTION))
    request = None
    if key is not None:
        request = state.requests.find(CLIENT, key)
    if request is None or request.method != "subscriptions/listen":
        return None
    return request if request.earlier is None else None  # the notification can be of either


_OF_SUBSCRIPTION: Final = (*_FILTERS, "notifications/subscriptions/acknowledged")


@rule("META-12", on="notification", sender=SERVER, methods=_OF_SUBSCRIPTION)
def notification_names_its_subscription(message: SeenMessage, state: ConversationState) -> Outcome:
    if _SUBSCRIPTION not in message.meta:
        return f'`_meta["{_SUBSCRIPTION}"]` is missing'
    found = message.meta[_SUBSCRIPTION]
    key = id_key(found)
    if key is None:
        return f"the subscription id is {show(found)}"
    if _subscription(message, state) is not None:
        return True
    if (
        state.gap
        or not state.requests.used[CLIENT].is_complete
        or key in state.requests.used[CLIENT]
    ):
        return None
    if state.unreadable[CLIENT]:
        return None  # the peer's parser may read what the judge's couldn't
    return f"the subscription id {show(found)} is of no request subscriptions/listen"


@rule("SUB-2", on="notification", sender=SERVER, methods=tuple(_FILTERS), needs_history=True)
def notification_was_requested(message: SeenMessage, state: ConversationState) -> Outcome:
    request = _subscription(message, state)
    if request is None or not request.has_all_params:
        return None
    asked = lookup(request.params, "notifications", _FILTERS[message.method])
    if message.method == "notifications/tasks":
        task = message.params.get("taskId")
        if isinstance(asked, list) and task in asked:
            return True
        return RuleFailure(f"a change of the task {show(task)} was not requested", (request.line,))
    if message.method == "notifications/resources/updated":
        if isinstance(asked, list) and asked:
            return True  # the update can be for a part of a resource
    elif asked is True:
        return True
    return RuleFailure(f"{message.method} was not requested", (request.line,))


@rule("SUB-3", on="notification", sender=SERVER, methods=_OF_SUBSCRIPTION, needs_history=True)
def acknowledgement_is_first(message: SeenMessage, state: ConversationState) -> Outcome:
    request = _subscription(message, state)
    if request is None or request.answered:
        return None
    if message.method != "notifications/subscriptions/acknowledged":
        return bool(request.acknowledged) or RuleFailure(
            f"{message.method} comes before the acknowledgement", (request.line,)
        )
    if request.acknowledged:
        return RuleFailure(
            "the subscription is acknowledged again", (request.line, request.acknowledged)
        )
    return _is_subset(message, request)


def _is_subset(message: SeenMessage, request: SeenRequest) -> Outcome:
    asked = lookup(request.params, "notifications")
    given = message.params.get("notifications")
    if not isinstance(asked, dict) or not isinstance(given, dict):
        return None
    for key, value in given.items():
        wanted = asked.get(key)
        if isinstance(value, list):
            known = wanted if isinstance(wanted, list) else []
            more = [each for each in value if each not in known]
            if more:
                return RuleFailure(
                    f"`{key}` is acknowledged for more than requested", (request.line,)
                )
        elif value is True and wanted is not True:
            return RuleFailure(f"`{key}` is acknowledged and was not requested", (request.line,))
    return True


@rule("CXL-7", on="notification", sender=SERVER, methods=tuple(_FILTERS), needs_history=True)
def cancelled_subscription_is_silent(message: SeenMessage, state: ConversationState) -> Outcome:
    request = _subscription(message, state)
    if request is None or not request.cancelled or request.answered:
        return None
    if state.requests.has_read[SERVER] <= request.cancelled:
        return True
    return RuleFailure(
        f"{message.method} of a subscription whose cancellation was read before",
        (request.line, request.cancelled),
    )


@rule("SUB-4", on="result", sender=SERVER, methods=("subscriptions/listen",))
def closing_result_names_its_subscription(
    message: SeenMessage, state: ConversationState
) -> Outcome:
    assert message.request is not None
    found = message.meta.get(_SUBSCRIPTION)
    same = id_key(found) is not None and id_key(found) == id_key(message.request.id)
    return same or RuleFailure(f"the subscription id is {show(found)}", (message.request.line,))


@rule(
    "SUB-10",
    on="notification",
    sender=SERVER,
    methods=("notifications/progress", "notifications/message"),
)
def no_reports_on_subscriptions(message: SeenMessage, state: ConversationState) -> Outcome:
    if _SUBSCRIPTION in message.meta:
        return f"{message.method} has a subscription id"
    return True


@rule("TX-19", on="response", sender=SERVER, methods=("tasks/get", "tasks/update", "tasks/cancel"))
def tasks_are_for_those_who_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    declared = state.negotiation.capabilities(CLIENT, message)
    if declared is None:
        return None
    extensions = declared.get("extensions")
    if isinstance(extensions, dict) and TASKS_EXTENSION in extensions:
        return None
    if message.result is None:
        return True if message.code in (-32021, -32601) else None
    return "the request did not declare the tasks extension and has a result"
