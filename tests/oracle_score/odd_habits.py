"""Habits that are odd and right: the specification allows them, and our servers lack them.

A judge that knows our programs by heart accuses them. A right program gets some of the habits,
which a seed chooses. A client's stand before what it sends, as a server's do.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mcp_core import DIALECTS
from tests.oracle_score.operators import MutantPlace, Operator
from tests.oracle_score.wrapper import MessageOperator, changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.oracle_score.wrapper import Wrapper

__all__ = ["CLIENT_HABITS", "SERVER_HABITS", "OddHabit", "RightPlace", "odd_place"]

Json = dict[str, Any]
EMPTY_PAGE: Final = "odd-empty"  # the cursor after a page without entries
LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
ODD_TEXT: Final = "\x00\x1b[31m\u202e\ufeff\U0001f375 e\u0301 \\u0000 </script>\r\n" * 3
ODD_VALUE: Final = {"": None, "__proto__": [[], {}, 1e-300, 2**53 - 1, ODD_TEXT], "odd": True}
MEMBER: Final = "com.example/odd"
ODD_IDS: Final = ("", "\U0001f375", 2**53 - 1, -1, 0, "1", "null", "i" * 200)


class OddHabit(MessageOperator):
    """A habit of one process.

    Args:
        place, wrapper, kept: as of each operator.
        counts: how often each habit was shown, by its name.
    """

    part: ClassVar[int] = 1  # of so many messages one is odd

    def __init__(self, place: str, wrapper: Wrapper, kept: Json, counts: Counter[str]) -> None:
        super().__init__(place, wrapper, kept)
        self.random = Random(place)
        self._counts = counts

    def is_odd(self) -> bool:
        """Return True if the next message is odd."""
        return self.random.randrange(self.part) == 0

    def note(self) -> None:
        """Note that the habit was shown."""
        self._counts[type(self).__name__] += 1

    @property
    def has_handshakes(self) -> bool:
        """True if the conversation's revision is known and has a handshake."""
        version = self.wrapper.version
        return version in DIALECTS and DIALECTS[version].stateful


class Escapes(OddHabit):
    """Writes JSON with escapes, spaces, and members in another order."""

    def to_client(self, message: Json) -> Iterator[Json | bytes]:
        if not self.is_odd():
            yield message
            return
        self.note()
        text = json.dumps(_reversed(message), separators=(" ,\t", " : "))
        for name in ("jsonrpc", "method", "result"):
            text = text.replace(f'"{name}" :', f'"\\u{ord(name[0]):04x}{name[1:]}" :')
        yield b" " + text.encode() + b"\t\n"


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(each) for key, each in reversed(value.items())}
    return [_reversed(each) for each in value] if isinstance(value, list) else value


class Extras(OddHabit):
    """Adds members that no revision has, where members may be added."""

    def to_client(self, message: Json) -> Iterator[Json]:
        method = self.method_of(message)
        if isinstance(message.get("result"), dict) and method not in ("", "ping"):
            self.note()
            result = _with_meta(message["result"])
            for name in LISTS.values():
                if isinstance(result.get(name), list):
                    result[name] = [_with_meta(each) for each in result[name]]
            yield {**message, "result": {**result, MEMBER: ODD_VALUE}}
        elif isinstance(message.get("error"), dict) and "data" not in message["error"]:
            self.note()
            yield {**message, "error": {**message["error"], "data": ODD_VALUE}}
        elif isinstance(message.get("params"), dict):
            self.note()
            yield {**message, "params": _with_meta(message["params"])}
        else:
            yield message


def _with_meta(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {**value, "_meta": {**value.get("_meta", {}), MEMBER: ODD_VALUE}}


class Introduces(OddHabit):
    """Says more about itself than it needs to."""

    def to_client(self, message: Json) -> Iterator[Json]:
        found = message
        for method, place in (
            ("initialize", "serverInfo"),
            ("server/discover", "_meta/io.modelcontextprotocol~1serverInfo"),
        ):
            if self.result_of(message, method) is None:
                continue
            self.note()
            found = changed(found, "result/instructions", ODD_TEXT)
            found = changed(found, "result/capabilities/experimental", {"odd": ODD_VALUE})
            for name in ("title", "description", "websiteUrl"):
                found = changed(found, f"result/{place}/{name}", f"https://example.com/{name}")
        yield found


class Describes(OddHabit):
    """Has odd texts in descriptions and in the results of tools."""

    def to_client(self, message: Json) -> Iterator[Json]:
        result, method = message.get("result"), self.method_of(message)
        if not isinstance(result, dict):
            yield message
        elif method in LISTS and isinstance(result.get(LISTS[method]), list):
            self.note()
            entries = [{**each, "description": ODD_TEXT} for each in result[LISTS[method]]]
            yield {**message, "result": {**result, LISTS[method]: entries}}
        elif method == "tools/call" and isinstance(result.get("content"), list):
            self.note()
            block = {"type": "text", "text": ODD_TEXT, "annotations": {"priority": 0}}
            yield {**message, "result": {**result, "content": [*result["content"], block]}}
        else:
            yield message


class EmptyPages(OddHabit):
    """Begins each list with a page without entries."""

    def to_server(self, message: Json) -> Iterator[Json]:
        if message.get("method") in LISTS and _cursor(message) == EMPTY_PAGE:
            yield changed(message, "params/cursor")
        else:
            yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        method, result = self.method_of(message), message.get("result")
        request = self.request_of(message)
        if method in LISTS and isinstance(result, dict) and _cursor(request) is None:
            self.note()
            result = {**result, LISTS[method]: [], "nextCursor": EMPTY_PAGE}
            yield {**message, "result": result}
        else:
            yield message


def _cursor(message: Json) -> Any:
    params = message.get("params")
    return params.get("cursor") if isinstance(params, dict) else None


class OddIds(OddHabit):
    """Gives its requests ids that few programs use."""

    def __init__(self, place: str, wrapper: Wrapper, kept: Json, counts: Counter[str]) -> None:
        super().__init__(place, wrapper, kept, counts)
        self._odd: dict[tuple[type, Any], Any] = {}
        self._own: dict[tuple[type, Any], Any] = {}
        self._free = list(ODD_IDS)

    def to_client(self, message: Json) -> Iterator[Json]:
        id = message.get("id")
        if "method" in message and isinstance(id, int | str):
            self.note()
            odd = self._free.pop() if self._free else f"odd-{len(self._own)}"
            self._odd[type(id), id], self._own[type(odd), odd] = odd, id
            yield {**message, "id": odd}
        elif message.get("method") == "notifications/cancelled":
            own = message.get("params", {}).get("requestId")
            yield changed(message, "params/requestId", self._odd.get((type(own), own), own))
        else:
            yield message

    def to_server(self, message: Json) -> Iterator[Json]:
        id = message.get("id")
        if "method" in message or not isinstance(id, int | str):
            yield message
        else:
            # A response to an id that was never used must not meet one of the program's own.
            yield {**message, "id": self._own.get((type(id), id), f"unknown {id}"[:300])}


class Late(OddHabit):
    """Takes its time for responses, so that later ones overtake them."""

    part = 2
    slow: ClassVar = frozenset(
        {*LISTS, "prompts/get", "resources/read", "completion/complete", "roots/list"}
    )

    def __init__(self, place: str, wrapper: Wrapper, kept: Json, counts: Counter[str]) -> None:
        super().__init__(place, wrapper, kept, counts)
        self._cancelled: set[tuple[type, Any]] = set()

    def to_server(self, message: Json) -> Iterator[Json]:
        params = message.get("params")
        if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            id = params.get("requestId")
            if isinstance(id, int | str):
                self._cancelled.add((type(id), id))
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        if self.method_of(message) in self.slow and self.is_odd():
            self.note()
            key = type(message["id"]), message["id"]
            self.wrapper.flush_later(
                self.random.uniform(0.01, 0.6),
                lambda: () if key in self._cancelled else (message,),
            )
        else:
            yield message


class Talks(OddHabit):
    """Pings its client, logs, and announces changes, whenever a server may."""

    part = 3

    def __init__(self, place: str, wrapper: Wrapper, kept: Json, counts: Counter[str]) -> None:
        super().__init__(place, wrapper, kept, counts)
        self._may: list[str] = []
        self._is_open = False
        self._pings = 0

    def to_server(self, message: Json) -> Iterator[Json]:
        if str(message.get("id")).startswith("odd ping ") and "method" not in message:
            return  # the response to one of these pings
        yield message
        if message.get("method") == "notifications/initialized":
            self._is_open = self.has_handshakes
        if not self._is_open or not self.is_odd():
            return
        self.note()
        match self.random.choice(["ping", *self._may]):
            case "ping":
                self._pings += 1
                self.wrapper.say(
                    {"jsonrpc": "2.0", "id": f"odd ping {self._pings}", "method": "ping"}
                )
            case "logging":
                params = {"level": "emergency", "data": ODD_VALUE, "logger": ""}
                self.wrapper.say(
                    {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
                )
            case name:
                method = f"notifications/{name}/list_changed"
                self.wrapper.say({"jsonrpc": "2.0", "method": method})

    def to_client(self, message: Json) -> Iterator[Json]:
        result = self.result_of(message, "initialize")
        declared = {} if result is None else result.get("capabilities", {})
        if declared:
            self._may = ["logging"] if "logging" in declared else []
            self._may += [
                name
                for name in ("tools", "prompts", "resources")
                if declared.get(name, {}).get("listChanged")
            ]
        yield message


class Progresses(OddHabit):
    """Reports progress in tiny steps, and not how much there is."""

    def to_client(self, message: Json) -> Iterator[Json]:
        if message.get("method") == "notifications/progress":
            self.note()
            value = message["params"]["progress"]
            yield changed(changed(message, "params/progress", value * 1e-9), "params/total")
        else:
            yield message


class Caches(OddHabit):
    """Gives each response another time to live, where responses have one."""

    def to_client(self, message: Json) -> Iterator[Json]:
        result = message.get("result")
        if isinstance(result, dict) and "ttlMs" in result:
            self.note()
            ttl = self.random.choice([0, 1, 2**31])
            yield {**message, "result": {**result, "ttlMs": ttl}}
        else:
            yield message


# Each changes what the earlier ones have left. `Escapes` makes bytes, so it is the last one.
SERVER_HABITS: Final = (
    Extras,
    Introduces,
    Describes,
    EmptyPages,
    OddIds,
    Talks,
    Progresses,
    Caches,
    Late,
    Escapes,
)
CLIENT_HABITS: Final = (Extras, OddIds, Late, Escapes)


class Mixture(MessageOperator):
    """The habits of one process.

    Args:
        place, wrapper, kept: as of each operator. The place is the seed.
        habits: the process has some of these, or the only one.
        counts: how often each was shown, by its name.
    """

    def __init__(
        self,
        place: str,
        wrapper: Wrapper,
        kept: Json,
        *,
        habits: tuple[type[OddHabit], ...],
        counts: Counter[str],
    ) -> None:
        super().__init__(place, wrapper, kept)
        # Each process has the same ones, or a play on a fresh one would confirm nothing.
        random = Random(place)
        chosen = [each for each in habits if len(habits) == 1 or random.randrange(2)]
        self._habits = [each(place, wrapper, kept, counts) for each in chosen]

    def to_server(self, message: Json) -> Iterator[Json | bytes]:
        """Yield what the program gets for a message."""
        yield from _through(message, [each.to_server for each in reversed(self._habits)])

    def to_client(self, message: Json) -> Iterator[Json | bytes]:
        """Yield what the program's peer gets for a message."""
        yield from _through(message, [each.to_client for each in self._habits])


def _through(
    message: Json, parts: Iterable[Callable[[Json], Iterable[Json | bytes]]]
) -> list[Json | bytes]:
    found: list[Json | bytes] = [message]
    for part in parts:
        found = [
            other for each in found for other in (part(each) if isinstance(each, dict) else (each,))
        ]
    return found


class RightPlace(MutantPlace):
    """A program with habits that are right: each finding in it is a false one."""

    def is_found_by(self, row: str) -> bool:
        """Return True: each finding ends the campaign, and is reported."""
        return True


def odd_place(
    seed: str, server: str, habits: tuple[type[OddHabit], ...], counts: Counter[str]
) -> RightPlace:
    """Return the place at which a program gets some of the habits, or the only one.

    Args:
        seed: chooses the habits, and the messages.
        server: the program's name.
        habits: the habits.
        counts: gets how often each was shown, by its name.
    """

    def make(place: str, wrapper: Wrapper, kept: Json) -> Mixture:
        return Mixture(place, wrapper, kept, habits=habits, counts=counts)

    operator = Operator(name="odd", sentence="It has odd habits.", make=make)
    return RightPlace(operator=operator, name=seed, key=seed, row="", talk=(), server=server)  # type: ignore[arg-type]
