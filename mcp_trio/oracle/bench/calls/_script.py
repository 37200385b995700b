"""Scripts of a load: TOML files with calls, their weights and think times.

::

    think = 0.1                        # seconds after each response, unless a call has its own
    era = "2025-11-25"                 # the revision to speak

    [[call]]
    tool = "echo"
    arguments = { text = "hello" }
    weight = 4                         # drawn four times as often as a call of weight 1

    [[call]]
    read = "tea://menu"

If no call has a weight, each caller makes them in the file's order, again and again.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mcp_core import ALL, DIALECTS, McpTrioError
from mcp_core.drivers import shorten_text
from mcp_trio.oracle.bench._requests import Mix, PreparedCall

from ._calls import LISTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_trio.oracle.bench._requests import Work, Worker

__all__ = ["MAX_SCRIPT_BYTES", "InvalidScript", "Script", "parse_script"]

MAX_SCRIPT_BYTES: Final = 1024 * 1024
_MAX_CALLS: Final = 1_000
_MAX_THINK: Final = 3600.0  # seconds
_MAX_WEIGHT: Final = 1e6
_MAX_DEPTH: Final = 100
_MAX_NAME: Final = 80  # characters of a name in a report or an error
_INTEGERS: Final = range(-(2**63), 2**64)
_HEADER: Final = re.compile(r"[ \t]*\[\[[ \t]*(?:call|\"call\"|'call')[ \t]*\]\]")
_SCRIPT_KEYS: Final = ("call", "think", "era")
_COMMON_KEYS: Final = ("weight", "think")
# A call has one of these keys; each has further ones.
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "tool": ("arguments", "notified"),
    "prompt": ("arguments",),
    "read": (),
    "list": (),
    "ping": (),
    "method": ("params", "notified"),
}
_CURE: Final = 'begin each call by the line [[call]], then tool = "echo"'


class InvalidScript(McpTrioError):
    """A file isn't the script of a load. The text names the place, the cause and the cure."""


@dataclass(frozen=True)
class Script:
    """The calls of a script.

    Attributes:
        calls: the calls; the method of a ping is "".
        is_drawn: whether calls are drawn by weight, and not made in their order.
        era: the revision to speak, or None.
        source: the script's text.
    """

    calls: tuple[PreparedCall, ...]
    is_drawn: bool
    era: str | None
    source: str = field(repr=False)
    vary: ClassVar[bool] = False

    @property
    def text(self) -> str:
        """The calls, for a report, such as "3 calls, drawn by weight"."""
        plural = "s" if len(self.calls) > 1 else ""
        return (
            f"{len(self.calls)} call{plural}, {'drawn by weight' if self.is_drawn else 'in order'}"
        )

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that are called."""
        names = [
            call.params["name"]
            for call in self.calls
            if call.method == "tools/call" and call.params
        ]
        return tuple(dict.fromkeys(names))

    @property
    def waits_for_notifications(self) -> bool:
        """Whether a call ends with a notification. Only a client can make it."""
        return any(call.notified for call in self.calls)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, from which `calls_of` makes it again."""
        return {"script": self.source}

    def work(self, revision: str) -> Work:
        """Return the calls for a target that speaks `revision`."""
        ping = DIALECTS[revision].ping
        calls = [
            call if call.method else call._replace(method=ping, name=ping) for call in self.calls
        ]
        return Mix(calls) if self.is_drawn else _InOrder(calls)


class _InOrder:
    """Calls that each caller makes in their order, again and again."""

    reads_answers = False

    def __init__(self, calls: Sequence[PreparedCall]) -> None:
        self._calls = calls

    def __repr__(self) -> str:
        return f"<{len(self._calls)} calls in order>"

    def worker(self, number: int, seed: int) -> Worker:
        """Return the worker of a caller. All make the same calls."""
        return _OrderedWorker(self._calls)


class _OrderedWorker:
    """Draws the calls in their order."""

    def __init__(self, calls: Sequence[PreparedCall]) -> None:
        self._calls = calls
        self._place = -1

    def next_call(self, answer: Mapping[str, Any] | None) -> PreparedCall:
        """Return the next call."""
        self._place = (self._place + 1) % len(self._calls)
        return self._calls[self._place]


def parse_script(data: bytes) -> Script:
    """Parse a script.

    Args:
        data: the file's content, `MAX_SCRIPT_BYTES` at most.

    Raises:
        InvalidScript: it isn't one.
    """
    if len(data) > MAX_SCRIPT_BYTES:
        raise InvalidScript(f"it has more than {MAX_SCRIPT_BYTES // 1024} KiB: leave calls out")
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise InvalidScript(f"byte {exc.start} isn't UTF-8: save the file as UTF-8") from None
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise InvalidScript("its values are nested too deeply: make them flatter") from None
    except tomllib.TOMLDecodeError as exc:
        raise InvalidScript(f"it isn't TOML: {exc}") from None
    except ValueError:  # the limit of `int`
        raise InvalidScript("a number has thousands of digits: write it as a text") from None
    return _ScriptReader(text).read(table)


class _ScriptReader:
    """Reads the tables of a script."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [
            number for number, line in enumerate(text.splitlines(), 1) if _HEADER.match(line)
        ]

    def read(self, table: dict[str, Any]) -> Script:
        place = "the script"
        _check_keys(place, table, _SCRIPT_KEYS)
        think = _number(place, table, "think", 0.0, _MAX_THINK, 0.0)
        era = table.get("era")
        if era is not None and era not in ALL:
            raise InvalidScript(f"{place}: era is {_shown(era)}, and a revision is {_joined(ALL)}")
        calls = table.get("call", [])
        if not isinstance(calls, list) or not all(isinstance(each, dict) for each in calls):
            raise InvalidScript(f"call isn't a list of tables: {_CURE}")
        if not calls:
            raise InvalidScript(f"it has no calls: {_CURE}")
        if len(calls) > _MAX_CALLS:
            raise InvalidScript(f"it has {len(calls)} calls: {_MAX_CALLS} are allowed")
        if len(self._lines) != len(calls):
            self._lines = []  # of an array in one line, or in a text of several lines
        read = tuple(self._call(index, each, think) for index, each in enumerate(calls))
        return Script(read, any("weight" in each for each in calls), era, self._text)

    def _call(self, index: int, table: dict[str, Any], think: float) -> PreparedCall:
        line = f" (line {self._lines[index]})" if self._lines else ""
        place = f"call {index + 1}{line}"
        kinds = [kind for kind in _KINDS if kind in table]
        if not kinds:
            _check_keys(place, table, (*_KINDS, *_COMMON_KEYS, "arguments", "params", "notified"))
            raise InvalidScript(f"{place}: it doesn't say what to call: add {_joined(_KINDS)}")
        if len(kinds) > 1:
            raise InvalidScript(f"{place}: it has {_joined(kinds, ' and ')}: make a call of each")
        (kind,) = kinds
        _check_keys(place, table, (kind, *_KINDS[kind], *_COMMON_KEYS))
        method, params, name = _READERS[kind](place, table)
        return PreparedCall(
            method,
            params,
            shorten_text(name, _MAX_NAME),
            _number(place, table, "weight", 0.0, _MAX_WEIGHT, 1.0, above=True),
            _number(place, table, "think", 0.0, _MAX_THINK, think),
            notified=_string(place, table, "notified") if "notified" in table else "",
        )


# -- The kinds of calls ----------------------------------------------------------------------------

_Request = tuple[str, dict[str, Any] | None, str]  # method, params, name


def _tool(place: str, table: dict[str, Any]) -> _Request:
    name = _string(place, table, "tool")
    arguments = _object(place, table, "arguments")
    return "tools/call", {"name": name, "arguments": arguments}, f"tools/call {name}"


def _prompt(place: str, table: dict[str, Any]) -> _Request:
    name = _string(place, table, "prompt")
    arguments = _object(place, table, "arguments")
    for key, value in arguments.items():
        if not isinstance(value, str):
            raise InvalidScript(
                f"{place}: arguments.{_key(key)} is {_shown(value)}, and a prompt takes strings"
            )
    return "prompts/get", {"name": name, "arguments": arguments}, f"prompts/get {name}"


def _read(place: str, table: dict[str, Any]) -> _Request:
    uri = _string(place, table, "read")
    return "resources/read", {"uri": uri}, f"resources/read {uri}"


def _list(place: str, table: dict[str, Any]) -> _Request:
    name = _string(place, table, "list")
    if name not in LISTS:
        raise InvalidScript(f"{place}: list is {_shown(name)}, and a list is {_joined(LISTS)}")
    return LISTS[name], None, LISTS[name]


def _ping(place: str, table: dict[str, Any]) -> _Request:
    if table["ping"] is not True:
        raise InvalidScript(f"{place}: ping is {_shown(table['ping'])}: write ping = true")
    return "", None, "ping"


def _method(place: str, table: dict[str, Any]) -> _Request:
    method = _string(place, table, "method")
    if method == "initialize" or method.startswith("notifications/"):
        raise InvalidScript(
            f"{place}: {method} isn't a call: the handshake and notifications aren't measured"
        )
    params = _object(place, table, "params") if "params" in table else None
    name = (params or {}).get("name")
    return method, params, f"{method} {name}" if isinstance(name, str) else method


_READERS: Final[Mapping[str, Callable[[str, dict[str, Any]], _Request]]] = {
    "tool": _tool,
    "prompt": _prompt,
    "read": _read,
    "list": _list,
    "ping": _ping,
    "method": _method,
}


# -- Values ----------------------------------------------------------------------------------------


def _check_keys(place: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            from difflib import get_close_matches  # on first use: only for the error

            similar = get_close_matches(key[:_MAX_NAME], known, 1)
            hint = f": did you mean {similar[0]}?" if similar else f": it takes {_joined(known)}"
            raise InvalidScript(f"{place}: {_key(key)} isn't known here{hint}")


def _number(
    place: str,
    table: Mapping[str, Any],
    key: str,
    least: float,
    most: float,
    default: float,
    *,
    above: bool = False,
) -> float:
    value = table.get(key, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and least <= value <= most and not (above and value == least):
        return float(value)
    first = f"above {least:g} and up" if above else f"from {least:g}"
    raise InvalidScript(f"{place}: {key} is {_shown(value)}: write a number {first} to {most:,.0f}")


def _string(place: str, table: Mapping[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str) or not value:
        raise InvalidScript(f'{place}: {key} is {_shown(value)}: write it as a text, {key} = "..."')
    return value


def _object(place: str, table: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise InvalidScript(
            f"{place}: {key} is {_shown(value)}: write a table, {key} = {{ name = value }}"
        )
    for name, problem in _problems(value, key, 0):
        raise InvalidScript(f"{place}: {shorten_text(name, _MAX_NAME)} {problem}")
    return value


def _problems(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the names of values that JSON doesn't have, and what to do about each."""
    if depth > _MAX_DEPTH:
        yield name, f"is nested more than {_MAX_DEPTH} deep: make it flatter"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _problems(each, f"{name}.{_key(key)}", depth + 1)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _problems(each, f"{name}[{index}]", depth + 1)
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield name, f"is {value}, which JSON doesn't have: write a number"
    elif isinstance(value, int):
        if value not in _INTEGERS:
            yield name, "has more than 64 bits: write it as a text"
    elif not isinstance(value, str):
        yield name, f"is {_shown(value)}, which JSON doesn't have: write it as a text, in quotes"


def _key(key: str) -> str:
    """Return a key as TOML writes it, for an error."""
    key = shorten_text(key, _MAX_NAME)
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else repr(key)


def _shown(value: Any) -> str:
    """Return a value for an error, as short text."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value not in _INTEGERS:
        return "a number with more than 64 bits"
    if isinstance(value, str):
        return repr(shorten_text(value, _MAX_NAME))
    return shorten_text(str(value), _MAX_NAME)


def _joined(names: Sequence[str] | Mapping[str, Any], last: str = " or ") -> str:
    *rest, end = names
    return f"{', '.join(rest)}{last}{end}" if rest else end
