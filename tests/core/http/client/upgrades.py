"""All that a WebSocket client makes of each response to its upgrade, in `upgrades.txt`.

    python -m tests.core.http.client.upgrades

writes the file again. Each text is a client with its options: its request, and what follows each
response: the next request of a redirect, or the error. Lines that are the first client's too are
left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mcp_core._errors import Fault
from mcp_core.http import Head, RequestHead, WebSocketUpgrade
from mcp_core.http.wire._websocket_upgrade import accept_headers
from tests.kept import read_kept, write_kept

__all__ = ["CLIENTS", "follow_upgrades", "kept_upgrades"]

_FILE: Final = Path(__file__).with_name("upgrades.txt")
_KEY: Final = b"the sample nonce"
_STATUSES: Final = (
    *(100, 200, 201, 204, 299, 300, 301, 302, 303, 304, 307, 308, 309, 399),
    *(400, 401, 403, 404, 405, 406, 407, 426, 429, 500, 503),
)
_PLACES: Final = {
    "nowhere": None,
    "beside": b"/other?a=b",
    "by its scheme": b"wss://server.example/other",
    "by another scheme": b"ws://server.example/other",
    "to HTTP": b"https://server.example/other",
    "elsewhere": b"wss://other.example/other",
    "to itself": b"/mcp",
    "below": b"/mcp/below",
}
_CHALLENGES: Final = (b"Bearer", b'Bearer error="invalid_token", scope="a b"')

CLIENTS: Final[dict[str, dict[str, Any]]] = {
    "usual": {"url": "wss://server.example/mcp"},
    "plain": {"url": "ws://127.0.0.1:8080/mcp?a=b"},
    "with a token": {
        "url": "wss://server.example/mcp",
        "headers": {"Authorization": "Bearer token-4711"},
    },
    "with a header": {"url": "wss://server.example/mcp", "headers": {"X-A": "b"}},
    "with two subprotocols": {"url": "WSS://Server.example/mcp", "subprotocols": ["b", "mcp"]},
    "without subprotocols": {"url": "wss://server.example/mcp", "subprotocols": []},
    "with a token, unencrypted": {
        "url": "ws://server.example/mcp",
        "headers": {"Authorization": "Bearer token-4711"},
        "allow_cleartext": True,
    },
}


def _show_head(head: RequestHead) -> str:
    shown = "; ".join(f"{name.decode()}: {value.decode()}" for name, value in head.headers)
    return f"{head.method.decode()} {head.target.decode()} [{shown}]"


def _follow_upgrade(upgrade: WebSocketUpgrade, head: Head, body: bytes = b"") -> str:
    following = upgrade.follow(head, _KEY)
    if following is not None:
        return f"{following!r} {_show_head(following.head)}"
    error = upgrade.find_error(head, body)
    if error is None:
        return "a WebSocket"
    more = {
        name: value
        for name in ("data", "scopes", "challenge")
        if (value := getattr(error, name, None))
    }
    if getattr(error, "fault", None) is Fault.BUSY:
        more["fault"] = "busy"
    return f"{type(error).__name__}: {error} {more or ''}".rstrip()


def follow_upgrades(name: str) -> str:
    """Return what a client makes of all responses, if the first client makes something else."""
    lines = _follow_all(name)
    if name != "usual":
        usual = set(_follow_all("usual"))
        lines = [line for line in lines if line not in usual]
    return "\n".join(lines)


def _follow_all(name: str) -> list[str]:
    options = {"headers": {}} | CLIENTS[name]
    upgrade = WebSocketUpgrade(options.pop("url"), options.pop("headers"), _KEY, **options)
    lines = [f"{upgrade!r} {_show_head(upgrade.head)}"]
    text = [(b"content-type", b"text/plain"), (b"retry-after", b"7")]
    lines += [
        f"{status}: {_follow_upgrade(upgrade, Head(status, text), b'because')}"
        for status in _STATUSES
    ]
    for label, place in _PLACES.items():
        location = [] if place is None else [(b"location", place)]
        lines += [
            f"{status} {label}: {_follow_upgrade(upgrade, Head(status, location))}"
            for status in (200, 307)
        ]
    lines += [
        f"{status} {challenge.decode()}: "
        f"{_follow_upgrade(upgrade, Head(status, [(b'www-authenticate', challenge)]))}"
        for status in (401, 403, 404)
        for challenge in _CHALLENGES
    ]
    # The third redirect is the last one that is followed.
    current: WebSocketUpgrade | None = upgrade
    number = 0
    while current is not None:
        number += 1
        head = Head(308, [(b"location", b"/%d" % number)])
        lines.append(f"redirect {number}: {_follow_upgrade(current, head)}")
        current = current.follow(head, _KEY)
    accepted = accept_headers(upgrade.head, options.get("subprotocols", ["mcp"]))
    lines.append(f"101: {_follow_upgrade(upgrade, Head(101, accepted))}")
    for index, field in enumerate(accepted):
        fewer = [*accepted[:index], *accepted[index + 1 :]]
        absent = field[0].decode()
        lines.append(f"101 without {absent}: {_follow_upgrade(upgrade, Head(101, fewer))}")
        other = [*fewer, (field[0], b"other")]
        lines.append(f"101 with another {absent}: {_follow_upgrade(upgrade, Head(101, other))}")
        twice = [*accepted, field]
        lines.append(f"101 with {absent} twice: {_follow_upgrade(upgrade, Head(101, twice))}")
    extended = Head(101, [*accepted, (b"sec-websocket-extensions", b"permessage-deflate")])
    lines.append(f"101 with an extension: {_follow_upgrade(upgrade, extended)}")
    return lines


def kept_upgrades() -> dict[str, str]:
    """Return the kept text of each client."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: follow_upgrades(name) for name in CLIENTS})
