"""What is found in a body at first sight, and that nothing in it is judged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from fuzz.messages import VERSIONS, messages
from fuzz.mutations import damaged, malformed
from fuzz.values import encoded
from mcp_core import Limits
from mcp_core.http._glance import Glance, look_into

LIMITS = Limits(id=8, method=40, batch=3)
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {}}


def cancel(params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


CANCEL = "notifications/cancelled"
BODIES: list[tuple[Any, Glance]] = [
    (PING, Glance([1], method="ping")),
    ({**PING, "id": "a"}, Glance(["a"], method="ping")),
    (NOTE, Glance(method="notifications/initialized")),
    (ANSWER, Glance(is_response=True)),
    ({"jsonrpc": "2.0", "id": 1, "error": {}}, Glance(is_response=True)),
    (cancel({"requestId": 5}), Glance(cancelled=[5], method=CANCEL)),
    (cancel({"requestId": "5", "reason": "no"}), Glance(cancelled=["5"], method=CANCEL)),
    (cancel({}), Glance(method=CANCEL)),
    # Not as it has to be: nothing is cancelled.
    (cancel({"requestId": True}), Glance(method=CANCEL)),
    (cancel({"requestId": 1.0}), Glance(method=CANCEL)),
    (cancel({"requestId": None}), Glance(method=CANCEL)),
    (cancel({"requestId": [1]}), Glance(method=CANCEL)),
    (cancel({"requestId": 1, "reason": 5}), Glance(method=CANCEL)),
    (cancel([1]), Glance(method=CANCEL)),
    ({"jsonrpc": "2.0", "method": CANCEL}, Glance(method=CANCEL)),
    ({**cancel({"requestId": 5}), "id": 6}, Glance([6], method=CANCEL)),
    # What is wrong, and is answered under its id if it has one.
    ({**PING, "jsonrpc": "1.0"}, Glance([1])),
    ({"jsonrpc": "2.0", "id": 1}, Glance([1])),
    ({**PING, "method": "m" * 41}, Glance([1])),
    ({**PING, "method": "m" * 40}, Glance([1], method="m" * 40)),
    ({**PING, "id": "i" * 9}, Glance()),
    ({**PING, "id": "i" * 8}, Glance(["i" * 8], method="ping")),
    ({**PING, "id": None}, Glance()),
    ({**PING, "id": True}, Glance()),
    ({**ANSWER, "error": {}}, Glance()),
    (5, Glance()),
    (b"", Glance()),
    (b"{", Glance()),
    (b"\xff", Glance()),
    ([PING], Glance()),
]
BATCHES: list[tuple[Any, Glance]] = [
    ([PING], Glance([1], method="ping", batch=True)),
    ([PING, NOTE, {**PING, "id": "1"}], Glance([1, "1"], batch=True)),
    ([PING, PING], Glance([1, 1], batch=True, repeats=True)),
    ([ANSWER, 5], Glance(batch=True, is_response=True)),
    ([cancel({"requestId": 1}), PING], Glance([1], [1], batch=True)),
    ([PING] * 3, Glance([1, 1, 1], batch=True, repeats=True)),
    # Refused as a whole, and so answered by one error.
    ([PING] * 4, Glance()),
    ([], Glance()),
    (b"[", Glance()),
    (b"[\xff]", Glance()),
    (PING, Glance([1], method="ping")),
]


@pytest.mark.parametrize(("body", "glance"), BODIES)
def test_what_is_in_a_body(body: Any, glance: Glance) -> None:
    assert look_into(body if isinstance(body, bytes) else json.encode(body), LIMITS) == glance


@pytest.mark.parametrize(("body", "glance"), BATCHES)
def test_what_is_in_a_batch(body: Any, glance: Glance) -> None:
    data = body if isinstance(body, bytes) else json.encode(body)
    assert look_into(data, LIMITS, batches=True) == glance


@given(
    st.one_of(
        st.binary(max_size=30),
        malformed(messages(VERSIONS[1])),
        damaged(messages(VERSIONS[3]).map(encoded)),
    ),
    st.booleans(),
)
def test_it_never_complains(body: bytes, batches: bool) -> None:
    glance = look_into(body, LIMITS, batches=batches)
    assert all(type(id) in (int, str) for id in (*glance.ids, *glance.cancelled))
