"""Messages in the words of the official Python SDK."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.logs import _python
from mcp_core.trace.logs._python import read_python_message

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("root=JSONRPCRequest(method='ping', params=None, jsonrpc='2.0', id=1)", PING),
        ("jsonrpc='2.0' id=1 method='ping' params=None", PING),
        ("JSONRPCRequest(jsonrpc='2.0', id=1, method='ping')", PING),
        (
            "SessionMessage(message=A(jsonrpc='2.0', id=1, method='ping'), metadata=X(a=<object>))",
            PING,
        ),
        (
            "SessionMessage(message=A(jsonrpc='2.0', id=1, method=', metadata='), metadata=None)",
            {**PING, "method": ", metadata="},
        ),
        ("SessionMessage(message=JSONRPCRequest(jsonrpc='2.0', id=1)", None),
        ("  JSONRPCRequest(jsonrpc='2.0', id=1, method='ping')\n", PING),
        ("{'jsonrpc': '2.0', 'id': 1, 'method': 'ping', 'other': 1}", PING),
        ("{'method': 'ping', 'id': 1}", None),
        ("root={'method': 'ping'}", None),
        ("root=[] jsonrpc='2.0'", {"jsonrpc": "2.0"}),
        ("root={'jsonrpc': '2.0'} jsonrpc='1.0'", {"jsonrpc": "2.0"}),
        ("'jsonrpc'", None),
        ("jsonrpc='2.0", None),
        ("jsonrpc='2.0\\", None),
        ("jsonrpc=5 +", None),
        ("", None),
        ("(" * 5_000, None),
        # Parts are split at spaces, and not within brackets and quotes.
        ("jsonrpc='2.0' params={'a b=1': [1, (2, 3)], 'c': {}} id=2",
         {"jsonrpc": "2.0", "id": 2, "params": {"a b=1": [1, [2, 3]], "c": {}}}),
        ("jsonrpc='a id=3' id=2", {"jsonrpc": "a id=3", "id": 2}),
        ("jsonrpc='a\\' id=3' id=2", {"jsonrpc": "a' id=3", "id": 2}),
        ("jsonrpc='a\\\\' id=2", {"jsonrpc": "a\\", "id": 2}),
        ('jsonrpc="it\'s id=3" id=2', {"jsonrpc": "it's id=3", "id": 2}),
        ("jsonrpc=A(b=[1, 2]) id=2", {"jsonrpc": {"b": [1, 2]}, "id": 2}),
        ("jsonrpc='2.0' id=-2", {"jsonrpc": "2.0", "id": -2}),
        # Only literals, and calls with names.
        ("jsonrpc='2.0' params={'a': -1.5, 'b': True, 'c': None}",
         {"jsonrpc": "2.0", "params": {"a": -1.5, "b": True, "c": None}}),
        ("jsonrpc='2.0' params=-True", {"jsonrpc": "2.0", "params": -1}),
        ("jsonrpc='2.0' params={1: 2}", None),
        ("jsonrpc='2.0' params={**{}}", None),
        ("jsonrpc='2.0' params=b'a'", None),
        ("jsonrpc='2.0' params=+1", None),
        ("jsonrpc='2.0' params=-'a'", None),
        ("jsonrpc='2.0' params=A(1)", None),
        ("jsonrpc='2.0' params=a.B()", None),
        ("jsonrpc='2.0' params=a", None),
        ("jsonrpc='2.0' params=A(**{'a': 1}, b=2)", {"jsonrpc": "2.0", "params": {"b": 2}}),
        # None stands for what isn't there.
        ("jsonrpc='2.0' result=None error=E(code=-1, message='m', data=None) id=None",
         {"jsonrpc": "2.0", "error": {"code": -1, "message": "m"}}),
        ("jsonrpc='2.0' result={'data': None} error='e'",
         {"jsonrpc": "2.0", "result": {"data": None}, "error": "e"}),
    ],
)  # fmt: skip
def test_message_is_read_of_the_words_of_the_python_sdk(text: str, expected: Any) -> None:
    assert read_python_message(text) == expected


@pytest.mark.parametrize(("limit", "is_read"), [(13, True), (12, False)])
def test_long_text_is_not_read(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, is_read: bool
) -> None:
    monkeypatch.setattr(_python, "_MAX_SIZE", limit)
    assert (read_python_message("jsonrpc='2.0'") is not None) is is_read
