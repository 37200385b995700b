"""Known habits of SDKs: what servers do because of the SDK they were built with.

1. A habit is a row of `HABITS`: data, with a predicate on the message that was sent.
2. It pardons a fault only where the server shows it: see `_watch`. Crashes, hangs, and what a
   valid call of a tool brings are never pardoned: no predicate holds for such a call.
"""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_trio.oracle.fuzz._call_guard import UNKNOWN_PROMPT, UNKNOWN_URI
from mcp_trio.oracle.fuzz._case import batch_members
from mcp_trio.oracle.fuzz._fault import UNANSWERED, UNANSWERED_MALFORMED
from mcp_trio.oracle.fuzz._interoperable_json import find_defect
from mcp_trio.oracle.fuzz._revisions import META

from ._sdk_marks import PYTHON_1, PYTHON_2, TYPESCRIPT, ZOD_CURSOR, zod_issues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcp_core.trace import TraceLine
    from mcp_trio.oracle.fuzz._case import Step
    from mcp_trio.oracle.fuzz.draw._choices import OffersLike

__all__ = [
    "HABITS",
    "Habit",
    "ListedNames",
    "MessageExchange",
    "decoded",
    "read_exchange",
    "sent_by",
]

_TYPESCRIPT_SEEN: Final = "sdk 1.0.1 to 1.32.2, and server 2.3.1"
_PYTHON_1_SEEN: Final = "mcp 1.20.0 to 1.30.0, also below FastMCP 3.4.11"
_PYTHON_2_SEEN: Final = "mcp 2.3.0, also below FastMCP 4.1.2"
_TYPESCRIPT_ISSUES: Final = "https://github.com/modelcontextprotocol/typescript-sdk/issues/"
_FASTMCP_ISSUES: Final = "https://github.com/PrefectHQ/fastmcp/issues/"
_PYTHON_ISSUE: Final = "https://github.com/modelcontextprotocol/python-sdk/pull/1872"
_PYTHON_LOGGER: Final = "mcp.server.exception_handler"
_LOG: Final = "notifications/message"
# Regular expressions, in which `{}` is the prompt's name or the URI, also in quotes. FastMCP has
# words of its own before the text of the SDK.
_UNKNOWN_PROMPT: Final = "Unknown prompt: {}"
_MISSING_ARGUMENTS: Final = (
    r"(?:Error rendering prompt {}: )?Missing required arguments: (?P<names>\{'.*'\})"
)
_UNKNOWN_RESOURCE: Final = "Unknown resource: {}"


class ListedNames(NamedTuple):
    """The names that a server lists. The author's code runs for them, and writes the errors.

    Attributes:
        prompts: the names of the prompts, each with its required arguments.
        uris: the URIs of the resources.
        has_templates: it lists templates, so that other URIs can be of one.
    """

    prompts: Mapping[str, frozenset[str]] = {}
    uris: frozenset[str] = frozenset()
    has_templates: bool = False

    @classmethod
    def of(cls, offers: OffersLike) -> ListedNames:
        """Return what the server of these offers lists."""
        return cls(
            {
                each["name"]: frozenset(_required(each.get("arguments")))
                for each in offers.prompts
                if isinstance(each.get("name"), str)
            },
            frozenset(each["uri"] for each in offers.resources if isinstance(each.get("uri"), str)),
            bool(offers.templates),
        )


def _required(arguments: Any) -> list[str]:
    return [
        each["name"]
        for each in (arguments if isinstance(arguments, list) else ())
        if isinstance(each, dict) and each.get("required") is True
        if isinstance(each.get("name"), str)
    ]


class MessageExchange(NamedTuple):
    """A message to the server, and what the server has sent before it answered the next request.

    Attributes:
        sent: the message as JSON, a list for a batch; None for bytes that aren't JSON.
        received: the server's messages as JSON, in order.
        is_early: the message was sent before `initialize`.
        is_split: the message has a carriage return, which ends a line for some readers.
        listed: what the server lists.
    """

    sent: Any
    received: Sequence[Any] = ()
    is_early: bool = False
    is_split: bool = False
    listed: ListedNames = ListedNames()


class SeenIn(NamedTuple):
    """Where a habit was seen.

    Attributes:
        versions: the versions of the SDK, as a text.
        link: the issue about it at the SDK, "" if none is known.
    """

    versions: str
    link: str = ""


class Habit(NamedTuple):
    """A habit of one or several SDKs.

    Attributes:
        name: names it in reports.
        sentence: what the server does.
        sdks: the SDKs, each with the versions in which it was seen.
        row: the requirement that a fault by this habit breaks.
        holds: True for an exchange whose message has the reaction; it looks at `sent`, `is_early`
            and `listed` only.
        reacts: True for an exchange with exactly this reaction.
        probe: the step that makes a server show it. A step `open` takes the place of the usual one.
        is_silence: the reaction is that there is no response.
        mark: the mark of an SDK that is the same as the habit, "" if none is.
        lasts: the message changes how the process answers all later requests. Then `received` has
            the response to the next `server/discover`, and `row` is no row of the faults.
        is_of_framework: it is one of FastMCP, or of the SDK's class of that kind. With the SDK's
            low-level server the author's code does the same.
    """

    name: str
    sentence: str
    sdks: Mapping[str, SeenIn]
    row: str
    holds: Callable[[MessageExchange], bool]
    reacts: Callable[[MessageExchange], bool]
    probe: Step
    is_silence: bool = False
    mark: str = ""
    lasts: bool = False
    is_of_framework: bool = False


# -- Predicates on the message ---------------------------------------------------------------------


def _is_request(message: Any) -> bool:
    """Return True for an object with the members of a request, also if it has others."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    id = message.get("id")
    is_id = isinstance(id, str | int) and not isinstance(id, bool)
    return is_id and isinstance(message.get("method"), str)


def _has_defect(*kinds: str) -> Callable[[MessageExchange], bool]:
    """Return the predicate of requests that have one of these defects, and no other."""

    def holds(exchange: MessageExchange) -> bool:
        return _is_request(exchange.sent) and find_defect(exchange.sent)[0] in kinds

    return holds


def _is_batch(exchange: MessageExchange) -> bool:
    """Return True for a batch with a request, and without a call of a tool."""
    sent = exchange.sent
    if not isinstance(sent, list):
        return False
    methods = [each.get("method") for each in sent if isinstance(each, dict)]
    return any(map(_is_request, sent)) and "tools/call" not in methods


def _is_unreadable(exchange: MessageExchange) -> bool:
    """Return True for what the Python SDK 1.x can't assign: no JSON-RPC message, or a response."""
    sent = exchange.sent
    if exchange.is_split or not isinstance(sent, dict) or sent.get("jsonrpc") != "2.0":
        return True
    if not isinstance(sent.get("method"), str):
        return True
    return not isinstance(sent.get("params"), dict | None)


def _has_object_params(exchange: MessageExchange) -> bool:
    """Return True for a request with params of the right type, but no valid call of a tool."""
    sent = exchange.sent
    if not _is_request(sent) or find_defect(sent)[0]:
        return False
    params = sent.get("params", {})
    is_call = sent["method"] == "tools/call" and isinstance(params.get("name"), str)
    return not (is_call and isinstance(params.get("arguments", {}), dict))


def _named(message: Any, method: str, name: str) -> str | None:
    """Return what a valid request of a method names in a param, None for other messages."""
    if not _is_request(message) or find_defect(message)[0] or message["method"] != method:
        return None
    found = message.get("params", {}).get(name)
    return found if isinstance(found, str) else None


def _missing_arguments(exchange: MessageExchange, name: str) -> frozenset[str]:
    """Return the required arguments of a listed prompt that a request doesn't give."""
    given = exchange.sent["params"].get("arguments", {})
    required = exchange.listed.prompts.get(name, frozenset())
    return required.difference(given if isinstance(given, dict) else required)


def _gets_no_prompt(exchange: MessageExchange) -> bool:
    """Return True for a prompt that isn't listed, or whose required arguments aren't given."""
    name = _named(exchange.sent, "prompts/get", "name")
    if name is None:
        return False
    return name not in exchange.listed.prompts or bool(_missing_arguments(exchange, name))


def _reads_no_resource(exchange: MessageExchange) -> bool:
    """Return True for a resource that isn't listed, and can't be of a template."""
    uri = _named(exchange.sent, "resources/read", "uri")
    listed = exchange.listed
    return uri is not None and uri not in listed.uris and not listed.has_templates


def _names_no_revision(exchange: MessageExchange) -> bool:
    """Return True for a request or notification without the `_meta` that names its revision."""
    sent = exchange.sent
    if not isinstance(sent, dict) or sent.get("jsonrpc") != "2.0":
        return False
    params = sent.get("params", {})
    if not isinstance(sent.get("method"), str) or not isinstance(params, dict):
        return False
    meta = params.get("_meta", {})
    return isinstance(meta, dict) and META + "protocolVersion" not in meta


def _is_early_list(exchange: MessageExchange) -> bool:
    sent = exchange.sent
    return exchange.is_early and _is_request(sent) and sent["method"].endswith("/list")


# -- Reactions -------------------------------------------------------------------------------------


def _is_python_log(message: Any) -> bool:
    """Return True for the log message by which the Python SDK 1.x reports what it can't read."""
    params = message.get("params") if _is_log(message) else None
    return (
        isinstance(params, dict)
        and params.get("logger") == _PYTHON_LOGGER
        and params.get("data") == "Internal Server Error"
    )


def _is_log(message: Any) -> bool:
    return isinstance(message, dict) and message.get("method") == _LOG


def _responses(exchange: MessageExchange) -> list[Any]:
    """Return what the server has sent, without log messages: it can log at any time."""
    return [each for each in exchange.received if not _is_log(each)]


def _is_silent(exchange: MessageExchange) -> bool:
    return not _responses(exchange)


def _is_only_logged(exchange: MessageExchange) -> bool:
    return bool(exchange.received) and all(map(_is_python_log, exchange.received))


def _has_zod_issues(exchange: MessageExchange) -> bool:
    """Return True if the one response is an error with zod's problems of the params."""
    found = _responses(exchange)
    if len(found) != 1 or not isinstance(found[0], dict):
        return False
    response = found[0]
    error = response.get("error")
    if response.get("id") != exchange.sent.get("id") or not isinstance(error, dict):
        return False
    issues = zod_issues(error.get("message"))
    # The author's own schemas are of arguments, whose paths don't begin with the params.
    return bool(issues) and all(each["path"][:1] == ["params"] for each in issues)


def _text_of_code_0(exchange: MessageExchange) -> str | None:
    """Return the text of the one response, if it is an error with code 0 and without data."""
    found = _responses(exchange)
    error = found[0].get("error") if len(found) == 1 and isinstance(found[0], dict) else None
    if not isinstance(error, dict) or error.keys() != {"code", "message"} or error["code"] != 0:
        return None
    return error["message"] if isinstance(error["message"], str) else None


def _match(sentence: str, value: str, text: str) -> re.Match[str] | None:
    """Return the match of a regular expression, in which `{}` is a value, also in quotes."""
    values = "|".join(re.escape(each) for each in (value, repr(value)))
    return re.fullmatch(sentence.replace("{}", f"(?:{values})"), text)


def _has_code_of_no_prompt(exchange: MessageExchange) -> bool:
    """Return True for code 0 and the text that the SDK itself has written about a prompt."""
    text, name = _text_of_code_0(exchange), str(exchange.sent["params"]["name"])
    if text is None:
        return False
    if name not in exchange.listed.prompts:
        return _match(_UNKNOWN_PROMPT, name, text) is not None
    found = _match(_MISSING_ARGUMENTS, name, text)
    if found is None:
        return False
    try:
        names = ast.literal_eval(found["names"])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return bool(names == _missing_arguments(exchange, name))


def _has_code_of_no_resource(exchange: MessageExchange) -> bool:
    """Return True for code 0 and the text that the SDK itself has written about a resource."""
    text = _text_of_code_0(exchange)
    return text is not None and (
        _match(_UNKNOWN_RESOURCE, str(exchange.sent["params"]["uri"]), text) is not None
    )


def _knows_no_method(exchange: MessageExchange) -> bool:
    return [_code_of(each) for each in exchange.received] == [-32601]


def _code_of(message: Any) -> Any:
    error = message.get("error") if isinstance(message, dict) else None
    return error.get("code") if isinstance(error, dict) else None


def _has_early_result(exchange: MessageExchange) -> bool:
    found = [each for each in _responses(exchange) if isinstance(each, dict)]
    return len(found) == 1 and found[0].get("id") == exchange.sent["id"] and "result" in found[0]


# -- The table -------------------------------------------------------------------------------------


_TYPESCRIPT_DROPS: Final = {TYPESCRIPT: SeenIn(_TYPESCRIPT_SEEN, _TYPESCRIPT_ISSUES + "2247")}
_PYTHON_DROPS: Final = {
    PYTHON_1: SeenIn(_PYTHON_1_SEEN, _FASTMCP_ISSUES + "1161"),
    PYTHON_2: SeenIn(_PYTHON_2_SEEN, _FASTMCP_ISSUES + "1161"),
}


def _silence(
    name: str, cause: str, kind: str, probe: Step, sdks: Mapping[str, SeenIn] = _TYPESCRIPT_DROPS
) -> Habit:
    return Habit(
        name=name,
        sentence=f"a request gets no response if {cause}",
        sdks=sdks,
        row=UNANSWERED_MALFORMED,
        holds=_has_defect(kind),
        reacts=_is_silent,
        probe=probe,
        is_silence=True,
    )


HABITS: Final = (
    _silence(
        "drops-params",
        "its params are neither an object nor null",
        "params",
        ("request", "tools/list", [], "int"),
        {**_TYPESCRIPT_DROPS, **_PYTHON_DROPS},
    ),
    _silence(
        "drops-null-params",
        "its params are null",
        "null params",
        ("request", "tools/list", None, "int"),
    ),
    _silence(
        "drops-members",
        "it has another member than jsonrpc, id, method and params",
        "member",
        ("mutate", '{"jsonrpc":"2.0","id":900001,"method":"tools/list","other":1}'),
    ),
    _silence(
        "drops-meta",
        "its _meta isn't an object, or the progress token in it isn't a string or an integer",
        "meta",
        ("mutate", '{"jsonrpc":"2.0","id":900001,"method":"tools/list","params":{"_meta":5}}'),
    ),
    Habit(
        name="drops-batches",
        sentence="the requests of a batch get no responses, although the revision has batches",
        sdks={
            TYPESCRIPT: SeenIn("sdk 1.32.2, and server 2.4.0"),
            PYTHON_1: SeenIn("mcp 1.20.0 to 1.30.0"),
            PYTHON_2: SeenIn("mcp 2.3.0"),
        },
        row=UNANSWERED,
        holds=_is_batch,
        reacts=_is_silent,
        probe=("batch", [["ping", {}, "int"]]),
        is_silence=True,
    ),
    Habit(
        name="logs-undeclared",
        sentence="what isn't a request or a notification is logged to the client, although the"
        " server hasn't declared logging",
        sdks={PYTHON_1: SeenIn(_PYTHON_1_SEEN)},
        row="LOG-1",
        holds=_is_unreadable,
        reacts=_is_only_logged,
        probe=("request", "tools/list", [], "int"),
    ),
    Habit(
        name="long-errors",
        sentence="the error for wrong params has all problems of zod as its message",
        sdks={TYPESCRIPT: SeenIn(_TYPESCRIPT_SEEN, _TYPESCRIPT_ISSUES + "2284")},
        row="RPC-12",
        holds=_has_object_params,
        reacts=_has_zod_issues,
        probe=("request", "tools/list", {"cursor": 5}, "int"),
        mark=ZOD_CURSOR,
    ),
    Habit(
        name="serves-early",
        sentence="a list is served before initialize",
        sdks={TYPESCRIPT: SeenIn(_TYPESCRIPT_SEEN)},
        row="LIFE-10",
        holds=_is_early_list,
        reacts=_has_early_result,
        probe=("open", "", "late", "all"),
    ),
    Habit(
        name="prompt-code",
        sentence="the error of an unknown prompt, or of a missing argument, has the code 0",
        sdks={
            PYTHON_1: SeenIn(_PYTHON_1_SEEN, _PYTHON_ISSUE),
            PYTHON_2: SeenIn("mcp 2.3.0", _PYTHON_ISSUE),
        },
        row="PRM-4",
        holds=_gets_no_prompt,
        reacts=_has_code_of_no_prompt,
        probe=("request", "prompts/get", {"name": UNKNOWN_PROMPT}, "int"),
        is_of_framework=True,
    ),
    Habit(
        name="resource-code",
        sentence="the error of an unknown resource has the code 0",
        sdks={PYTHON_1: SeenIn("mcp 1.20.0 to 1.30.0", _PYTHON_ISSUE)},
        row="RES-7",
        holds=_reads_no_resource,
        reacts=_has_code_of_no_resource,
        probe=("request", "resources/read", {"uri": UNKNOWN_URI}, "int"),
        is_of_framework=True,
    ),
    Habit(
        name="keeps-old-revision",
        sentence="a message without `_meta`, such as a notification, makes the process speak an"
        " older revision from then on, unless a request other than server/discover came before it",
        sdks={TYPESCRIPT: SeenIn("server 2.4.0")},
        row="VER-7",
        holds=_names_no_revision,
        reacts=_knows_no_method,
        probe=("notify", "notifications/acme", {}),
        lasts=True,
    ),
)


# -- Messages of cases and traces ------------------------------------------------------------------

_HANDSHAKE: Final = ("initialize", "notifications/initialized", "server/discover")


def sent_by(step: Step) -> MessageExchange | None:
    """Return the message of a step that sends one, as an exchange without a reaction."""
    if step[0] == "open":
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        return MessageExchange(message, is_early=True) if "late" in step[2:3] else None
    if len(step) < 2:
        return None
    if step[0] in ("request", "notify"):
        params = step[2] if len(step) > 2 else "absent"
        found: dict[str, Any] = {"jsonrpc": "2.0", "method": step[1]}
        if step[0] == "request":
            found["id"] = 1
        if params != "absent":
            found["params"] = params
        return MessageExchange(found)
    if step[0] == "call":
        params = {"name": step[1], "arguments": step[2] if len(step) > 2 else {}}
        return MessageExchange(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        )
    if step[0] == "batch":
        return MessageExchange([_batched(*each) for each in batch_members(step)])
    if step[0] == "reply":
        members = step[2] if len(step) > 2 and isinstance(step[2], dict) else {}
        return MessageExchange({**members, "jsonrpc": "2.0", "id": step[1]})
    if step[0] == "respond":
        return MessageExchange({"jsonrpc": "2.0", "id": 1, "result": {}})
    if step[0] == "deep":
        return MessageExchange(None)  # few readers take it for a message
    if step[0] in ("mutate", "damage"):
        return MessageExchange(decoded(step[1]), is_split=_is_split(step[1]))
    return None


def _batched(method: Any, params: Any, id: Any) -> dict[str, Any]:
    """Return a member of a batch as it is sent."""
    found = {"jsonrpc": "2.0", "method": method}
    return found if id is None else {**found, "id": 1, "params": params}


def read_exchange(lines: Iterable[TraceLine]) -> MessageExchange | None:
    """Return the one exchange of a conversation, or None if there isn't exactly one.

    The messages of a handshake don't count. The last request must have a result: it shows that the
    server has read what came before, and goes on.
    """
    sent: list[Any] = []
    first: str | bytes = b""  # what was sent first
    asked: list[Any] = []  # the ids of the server's own requests
    place = 0  # of the exchange's message, among all lines
    received: list[tuple[int, Any]] = []
    missing = list(_HANDSHAKE)
    initialized_at = 0  # the place of `initialize`
    for number, line in enumerate(lines, 1):
        raw = line.raw if line.raw is not None else line.data
        if line.sender is None or raw is None:
            continue
        message = decoded(raw)
        if line.sender == "server":
            if not _is_unasked(message):
                received.append((number, message))
            elif "id" in message:
                asked.append(message["id"])
        elif _is_response_to(message, asked):
            continue
        elif _is_handshake(message, missing):
            missing.remove(message["method"])
            if message["method"] == "initialize":
                initialized_at = number
        else:
            first = first if sent else raw
            sent.append(message)
            place = place or number
    if len(sent) != 2 or not isinstance(sent[1], dict):
        return None
    last = sent[1].get("id")
    answers = [each for _, each in received if isinstance(each, dict) and each.get("id") == last]
    if len(answers) != 1 or "result" not in answers[0]:
        return None
    others = [
        each
        for number, each in received
        if number > place and each is not answers[0] and not _is_initialized(each)
    ]
    return MessageExchange(sent[0], others, place < initialized_at, _is_split(first))


def _is_split(data: str | bytes) -> bool:
    """Return True for a message with a carriage return that isn't at its end."""
    text = data.decode(errors="replace") if isinstance(data, bytes) else str(data)
    return "\r" in text.strip()


def _is_unasked(message: Any) -> bool:
    """Return True for a request or a notification of the server that says nothing of a message."""
    return isinstance(message, dict) and "method" in message and not _is_log(message)


def _is_response_to(message: Any, asked: Sequence[Any]) -> bool:
    is_response = isinstance(message, dict) and "method" not in message and "id" in message
    return is_response and message["id"] in asked


def _is_handshake(message: Any, missing: list[str]) -> bool:
    if not isinstance(message, dict) or message.get("method") not in missing:
        return False
    return isinstance(message.get("params", {}), dict)


def _is_initialized(message: Any) -> bool:
    """Return True for the result of `initialize`."""
    result = message.get("result") if isinstance(message, dict) else None
    return isinstance(result, dict) and "protocolVersion" in result


def decoded(text: str | bytes) -> Any:
    """Return a text as JSON, None if it isn't JSON."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, TypeError, RecursionError):
        return None


def _refuse(name: str) -> Any:
    raise ValueError(name)
