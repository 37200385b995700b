"""Updates for subscriptions to what doesn't exist."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_trio.oracle.fuzz._session import META, SentRequest
from mcp_trio.oracle.fuzz.play._unknown import unasked_updates

NEW = "2026-07-28"
NO_URI = "mcp-trio-fuzz://none"


def listens(*uris: str) -> SentRequest:
    params = {"notifications": {"resourceSubscriptions": list(uris)}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    return SentRequest(message, is_plain=True, is_bounded=False)


def update(uri: Any, id: Any = 1) -> dict[str, Any]:
    return {"uri": uri, "_meta": {META + "subscriptionId": id}}


@pytest.mark.parametrize(
    ("uris", "params", "is_fault"),
    [
        ([NO_URI], update("note:///one"), True),
        ([NO_URI], update(NO_URI), False),
        ([NO_URI], update(NO_URI + "/part"), False),
        ([NO_URI], update("note:///one", 2), False),
        ([NO_URI], update("note:///one", [1]), False),
        ([NO_URI], update(7), False),
        ([NO_URI], {"uri": "note:///one"}, False),
        (["note:///all"], update("note:///one"), False),
        ([NO_URI, "note:///all"], update("note:///one"), False),
    ],
)
def test_update_of_another_resource_is_a_fault_only_if_the_own_one_does_not_exist(
    uris: list[str], params: dict[str, Any], is_fault: bool
) -> None:
    fault = unasked_updates([params], [listens(*uris)], NEW)
    assert (fault is not None) is is_fault
    if fault is not None:
        assert (fault.row, fault.is_certain) == ("SUB-2", True)
