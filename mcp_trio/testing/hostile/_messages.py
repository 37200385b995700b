"""Hostile messages: single payloads, for any transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ._attack import Attack

__all__ = ["MESSAGES", "MESSAGE_ATTACKS", "hostile_message"]

_REJECT: Final = "Reject the message with an error, and serve the next one."
_SIZE: Final = 200_000

_HEAD: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'


def _request(params: bytes) -> bytes:
    return _HEAD + params + b"}"


def _letters(number: int) -> bytes:
    """Return a number in binary, with `a` and `A` as its digits."""
    return f"{number:b}".translate({48: "a", 49: "A"}).encode()


# The name, what the message is, and how it is made. Each makes sense as a line and as a body.
_ROWS: Final[tuple[tuple[str, str, Callable[[], bytes]], ...]] = (
    ("not-json", "Text that is not JSON.", lambda: b"{hello"),
    ("empty-object", "An object without any member.", lambda: b"{}"),
    ("scalar", "A number in place of an object.", lambda: b"1"),
    ("deep-array", "Arrays nested 100,000 deep.", lambda: b"[" * (_SIZE // 2)),
    (
        "deep-params",
        "A request whose params are objects nested 30,000 deep.",
        lambda: _request(b'{"a":' * 30_000 + b"1" + b"}" * 30_000),
    ),
    (
        "huge-number",
        "A request whose id has 100,000 digits.",
        lambda: b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"method":"ping"}',
    ),
    (
        "huge-exponent",
        "A request whose id is 1e999999999.",
        lambda: b'{"jsonrpc":"2.0","id":1e999999999,"method":"ping"}',
    ),
    ("nan", "A request with NaN in it.", lambda: _request(b'{"name":"a","arguments":{"a":NaN}}')),
    ("invalid-utf8", "A request that is not UTF-8.", lambda: _request(b'{"name":"\xff\xfe"}')),
    ("utf-16", "A request in UTF-16.", lambda: _request(b'{"name":"a"}').decode().encode("utf-16")),
    ("nul", "A request with a NUL byte in a string.", lambda: _request(b'{"name":"a\0b"}')),
    ("bom", "A request behind a byte order mark.", lambda: b"\xef\xbb\xbf" + _request(b"{}")),
    (
        "lone-surrogate",
        "A request whose name is half of a surrogate pair.",
        lambda: _request(rb'{"name":"\ud800"}'),
    ),
    (
        "many-members",
        "A request whose params have 20,000 members.",
        lambda: _request(b"{" + b",".join(b'"k%d":1' % n for n in range(20_000)) + b"}"),
    ),
    (
        "duplicate-members",
        "A request that has two methods and two ids.",
        lambda: b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/list"}',
    ),
    (
        "batch-bomb",
        "A batch of 5,000 pings.",
        lambda: b"[" + b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * 5_000) + b"]",
    ),
    (
        "id-object",
        "A request whose id is an object.",
        lambda: b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    ),
    (
        "method-number",
        "A request whose method is a number.",
        lambda: b'{"jsonrpc":"2.0","id":1,"method":1}',
    ),
    ("params-array", "A request whose params are an array.", lambda: _request(b"[1,2]")),
    (
        "response-to-nothing",
        "A response to a request that was never sent.",
        lambda: b'{"jsonrpc":"2.0","id":"never","result":{}}',
    ),
    (
        "result-and-error",
        "A response with a result and an error.",
        lambda: b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
    ),
    (
        "hash-flood",
        "A request whose params have 5,000 members that differ by case and length only.",
        lambda: _request(b"{" + b",".join(b'"%b":1' % _letters(n) for n in range(5_000)) + b"}"),
    ),
)
MESSAGES: Final[dict[str, Callable[[], bytes]]] = {name: make for name, _, make in _ROWS}
# Payloads that `hostile_message` returns.
MESSAGE_ATTACKS: Final = tuple(Attack(name, does, _REJECT) for name, does, _ in _ROWS)


def hostile_message(attack: Attack | str) -> bytes:
    """Return the payload of one of `MESSAGE_ATTACKS`, without a line break.

    Send it as a line, as the body of a POST, or as an event's data.

    Args:
        attack: the attack, or its name.

    Raises:
        ValueError: there is no such attack.
    """
    name = str(attack)
    if name not in MESSAGES:
        raise ValueError(f"no such message: {name!r}; there are {', '.join(MESSAGES)}")
    return MESSAGES[name]()
