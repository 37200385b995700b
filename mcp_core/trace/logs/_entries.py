"""Messages in the values and lines of another program's file.

1. A line of a log is text, in which a message stands as JSON, or as the Python SDK writes it. The
   words before it may say who sent it.
2. An object of a list is a message, or an entry with a message in one of its members.
3. A line that begins a message and doesn't end it is half a line: the message is lost.
"""

from __future__ import annotations

import ast
import json
import re
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ._python import read_python_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._sides import Side

__all__ = ["HALF", "LoggedMessage", "read_line_entry", "read_value_entry"]

_DECODER: Final = json.JSONDecoder()
_COLOURS: Final = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?")
# What loggers put in brackets beside a server's name.
_BRACKETS: Final = re.compile(r"\[([^\[\]\x00-\x1f]{1,80})\]")
_NO_NAME: Final = re.compile(
    r"(?i)trace|debug|info|notice|warn(ing)?|error|critical|fatal|client|server|\d[\d:.,TZ+/ -]*"
    r"|.*(->|=>|→|←|<-).*"
)
# How the Python SDK introduces a message, and who has sent it.
_PYTHON: Final[tuple[tuple[str, Side], ...]] = (
    ("Sending client message: ", "client"),
    ("Received server message: ", "server"),
    ("SSE message: ", "server"),
    ("Sending message via SSE: ", "server"),
)
_PYTHON_BYTES: Final = "Received JSON: b"  # of a client
# How the Python SDK and its libraries introduce the same messages again.
_REPEATED: Final = (
    "Validated client message: ",
    "Sending session message to writer: ",
    "chunk: b",
)
_ARROW: Final = r"\s*(?:->|=>|→|to)\s*"
_FROM_CLIENT: Final = re.compile(
    rf"(?i)\bfrom[ _]?(the )?client\b|\b(client|editor|host|local){_ARROW}(the )?(server|remote)\b"
    r"|\bclient (request|message|notification|sent)|^\W*client\W*$"
)
_FROM_SERVER: Final = re.compile(
    rf"(?i)\bfrom[ _]?(the )?server\b|\b(server|remote){_ARROW}(the )?(client|editor|host|local)\b"
    r"|\bserver (response|message|notification|sent)|^\W*server\W*$"
)
_WORDS: Final = 200  # characters before a message that may say who sent it
_SIDES: Final = ("from", "origin", "sender", "side", "direction", "source")
_MESSAGES: Final = ("raw", "message", "payload", "data", "body", "msg", "jsonrpc_message", "rpc")
_TIMES: Final = ("t", "timestamp", "time", "ts", "at", "@timestamp")
_MAX_TRIES: Final = 8  # braces of a line at which a message may begin


class LoggedMessage(NamedTuple):
    """One message, or a batch, with what its file says about it.

    Attributes:
        text: it, as JSON; as it was sent if the file has that.
        message: the decoded message.
        side: who sent it, None if the file doesn't say.
        time: seconds since 1970, or by another clock; None if the file doesn't say.
        name: the server's name, if the file has several.
        answer: its response, if the entry has both, and the response's time.
        is_logged: it stands in the text of a log, where two loggers may write one message.
    """

    text: str
    message: dict[str, Any] | list[Any]
    side: Side | None = None
    time: float | None = None
    name: str = ""
    answer: tuple[dict[str, Any], float | None] | None = None
    is_logged: bool = False


# A message that was cut.
HALF: Final = "a message begins on this line and does not end on it"


def read_value_entry(value: Any, text: str) -> LoggedMessage | None:
    """Return the entry of a decoded object, or None if it has no message.

    Args:
        value: the object, or an array that may be a batch.
        text: its JSON.
    """
    if _is_message(value):
        return LoggedMessage(text, value)
    if not isinstance(value, dict):
        return None
    for name in _MESSAGES:
        inner: Any = value.get(name)
        inner_text = ""
        if isinstance(inner, str):
            inner_text, inner = inner, _decoded(inner)
        if not _is_message(inner):
            continue
        time = next((_seconds(value[each]) for each in _TIMES if each in value), None)
        answer = None
        if _is_message(value.get("response")):  # an export of the Inspector
            late = _number(value.get("duration")) or 0.0  # milliseconds
            answer = value["response"], None if time is None else time + late / 1000
        return LoggedMessage(
            inner_text or _dumped(inner), inner, _side_in(value), time, _name_in(value), answer
        )
    return None


def read_line_entry(line: str) -> LoggedMessage | str | None:
    """Return the entry of a log's line, `HALF` if a message is cut, or None without a message."""
    if "\x1b" in line:
        line = _COLOURS.sub("", line)
    line = line.strip()
    if line[:1] == "{":
        value = _decoded(line)
        if value is not None:
            return read_value_entry(value, line)
    if any(words in line for words in _REPEATED):
        return None
    return _python_entry(line) or _embedded_entry(line)


def _python_entry(line: str) -> LoggedMessage | str | None:
    for words, side in _PYTHON:
        if words in line:
            before, _, text = line.partition(words)
            message = read_python_message(text)
            if message is None:
                return HALF
            return _logged(LoggedMessage(_dumped(message), message, side), before)
    if _PYTHON_BYTES in line:
        before, _, text = line.partition(_PYTHON_BYTES)
        try:
            data = ast.literal_eval("b" + text)
            text = data.decode()
        except (SyntaxError, ValueError, MemoryError, AttributeError):
            return HALF
        read: Any = _decoded(text)
        return _logged(LoggedMessage(text, read, "client"), before) if _is_message(read) else HALF
    return None


def _embedded_entry(line: str) -> LoggedMessage | str | None:
    """Return the entry of a message within a line."""
    is_half = False
    for brace in islice(re.finditer("{", line), _MAX_TRIES):
        place = brace.start()
        is_batch = line[place - 1 : place] == "["
        try:
            value, end = _DECODER.raw_decode(line, place - is_batch)
        except (ValueError, RecursionError):
            is_half = is_half or '"jsonrpc"' in line[place:]
            continue
        entry = read_value_entry(value, line[place - is_batch : end])
        if entry is not None:
            words = line[max(0, place - _WORDS) : place]
            return _logged(entry._replace(side=entry.side or _side_before(words)), line[:place])
    return HALF if is_half else None


def _logged(entry: LoggedMessage, before: str) -> LoggedMessage:
    """Return an entry with what the text before its message says."""
    before = before[:_WORDS]
    time = entry.time if entry.time is not None else _time_in(before)
    return entry._replace(time=time, name=entry.name or _name_before(before), is_logged=True)


def _is_message(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, dict) and _is_message(each) for each in value)
    if not isinstance(value, dict):
        return False
    if "jsonrpc" in value:
        return "method" in value or "id" in value or "result" in value or "error" in value
    return isinstance(value.get("method"), str) and "params" in value and "id" in value


def _decoded(text: str) -> Any:
    """Return the value of JSON, or None if the text isn't JSON."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _side_in(value: Mapping[str, Any]) -> Side | None:
    words = [value[each] for each in _SIDES if isinstance(value.get(each), str)]
    return next((side for each in words if (side := _side_before(each[:_WORDS]))), None)


def _side_before(words: str) -> Side | None:
    """Return the side that words name as a message's sender, or None."""
    words = words.replace("_", " ")
    is_client, is_server = _FROM_CLIENT.search(words), _FROM_SERVER.search(words)
    if bool(is_client) == bool(is_server):
        return None
    return "client" if is_client else "server"


def _name_in(value: Mapping[str, Any]) -> str:
    for key in ("server", "serverName", "server_name", "conversation", "session", "sessionId"):
        if isinstance(value.get(key), str | int):
            return str(value[key])[:_WORDS]
    return ""


def _name_before(words: str) -> str:
    """Return the server's name that a logger has put in brackets, or ""."""
    names = _BRACKETS.findall(words)
    return next((each for each in names if not _NO_NAME.fullmatch(each.strip())), "")


def _time_in(words: str) -> float | None:
    found = _TIME.search(words)
    return None if found is None else _seconds(found[0].replace(",", "."))


def _seconds(value: Any) -> float | None:
    """Return a time in seconds: of a number in seconds or milliseconds, or of ISO 8601."""
    number = _number(value)
    if number is not None:
        return number / 1000 if abs(number) > 1e11 else number
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        return None


def _number(value: Any) -> float | None:
    """Return a number that can be a time, None for infinity, for one too large, and for others."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e15 else None
