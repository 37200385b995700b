"""The verdicts on each message at each point of a conversation's beginning, in `openings.txt`.

    python -m tests.core.trace.judge.rules.openings

writes the file again. It has what `answers.txt` has, for messages that answer nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.core.trace.judge.conversations import (
    INFO,
    META,
    C,
    S,
    Sent,
    Start,
    ask,
    at,
    error,
    notify,
    raw_client,
    raw_server,
    result,
)
from tests.core.trace.judge.rules.verdicts import verdicts_by_answer
from tests.kept import read_kept, write_kept

__all__ = ["OPENINGS", "kept_openings", "opening_verdicts"]

_FILE: Final = Path(__file__).with_name("openings.txt")


def _openings() -> dict[str, list[Sent]]:
    """Return what is said before, by the revision and a name."""
    found: dict[str, list[Sent]] = {}
    for revision in ("2024-11-05", "2025-03-26", "2025-11-25"):
        asked, answered, initialized = Start(revision).messages()
        refused = S(error("init", -32602))
        found |= {
            f"{revision}: nothing": [],
            f"{revision}: handshake asked": [asked],
            f"{revision}: handshake refused": [asked, refused],
            f"{revision}: handshake answered": [asked, answered],
            f"{revision}: handshake complete": [asked, answered, initialized],
            f"{revision}: a request is open": [
                *(asked, answered, initialized),
                *(C(ask(1, "tools/list")), S(ask(1, "roots/list"))),
            ],
        }
    modern = "2026-07-28"
    listen = C(ask(1, "subscriptions/listen", notifications={"toolsListChanged": True}))
    return found | {
        f"{modern}: nothing": [],
        f"{modern}: a request is open": [C(ask(1, "tools/list"))],
        f"{modern}: a request was answered": [C(ask(1, "ping")), S(error(1, -32601))],
        f"{modern}: subscribed": [listen],
    }


OPENINGS: Final = _openings()


def _messages() -> dict[str, list[Sent]]:
    """Return the messages, by a name."""
    call = {"_meta": {"progressToken": "p"}, "name": "t"}
    cancelled = "notifications/cancelled"
    progress = "notifications/progress"
    subscription = {META + "subscriptionId": 1}
    handshake = ask(
        "init", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO
    )
    ids: tuple[Any, ...] = (1, "1", "init", 9, None)
    said: dict[str, Any] = {
        **{f"{method} {id}": ask(id, method) for id in (1, 2) for method in ("ping", "tools/list")},
        **{f"ping {id!r}": ask(id, "ping") for id in ("1", "2", None, 1.5)},
        **{
            method: ask(2, method)
            for method in ("server/discover", "x/y", "roots/list", "notifications/initialized", "")
        },
        "tools/call": ask(2, "tools/call", **call),
        "initialize": handshake,
        "initialize 1": ask(2, "initialize", protocolVersion="1", capabilities={}, clientInfo=INFO),
        **{
            f"note {method}": notify(method)
            for method in (
                *("notifications/initialized", "notifications/tools/list_changed", "ping", "x"),
                *("notifications/roots/list_changed", "tools/list"),
            )
        },
        **{f"cancelled {id!r}": notify(cancelled, requestId=id) for id in ids},
        **{
            f"progress {token!r}": notify(progress, progressToken=token, progress=1)
            for token in (1, "p", None)
        },
        "changed, subscribed": notify("notifications/tools/list_changed", _meta=subscription),
        "updated": notify("notifications/resources/updated", uri="x:1"),
        **{
            f"log {level}": notify("notifications/message", level=level, data=1)
            for level in ("info", "loud")
        },
        "acknowledged": notify("notifications/subscriptions/acknowledged", _meta=subscription),
        **{f"result {id!r}": result(id, tools=[]) for id in (1, "1", 9, None)},
        **{f"error {id!r}": error(id, -32700) for id in (1, 9, None)},
        "batch": [ask(2, "ping"), ask(3, "ping")],
        "empty batch": [],
        "empty object": {"jsonrpc": "2.0"},
        "no version": {"id": 2, "method": "ping"},
        "params in an array": {"jsonrpc": "2.0", "id": 2, "method": "ping", "params": []},
        "request and result": {"jsonrpc": "2.0", "id": 2, "method": "ping", "result": {}},
    }
    found: dict[str, list[Sent]] = {}
    for name, message in said.items():
        found |= {f"C {name}": [C(message)], f"S {name}": [S(message)]}
    return found | {
        "C ping without members": [raw_client(ask(2, "ping"))],
        "C tools/list without members": [raw_client(ask(2, "tools/list"))],
        "C text": [raw_client("?")],
        "S text": [raw_server("?")],
        "S bytes": [raw_server(b"\xff")],
        "C ping late": [at(60.0, C(ask(2, "ping")))],
        "S ping twice": [S(ask(2, "ping")), S(ask(2, "ping"))],
        "C ping twice": [C(ask(2, "ping")), C(ask(2, "ping"))],
    }


MESSAGES: Final = _messages()


def opening_verdicts(name: str) -> str:
    """Return the verdicts on all messages after an opening, each with the messages that have it."""
    return verdicts_by_answer(None, OPENINGS[name], MESSAGES, name.partition(":")[0])


def kept_openings() -> dict[str, str]:
    """Return the verdicts in the file by the names of the openings."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: opening_verdicts(name) for name in OPENINGS})
