"""The URIs of a request, in the spelling that the server has declared."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import types as t
from mcp_core.protocol.revisions._declared_uris import with_declared_uris

ARGUMENT = t.CompletionArgument(name="a", value="")


class UpperCase:
    """A server that has declared everything in capitals."""

    def declared_uri(self, uri: str) -> str:
        return uri.upper()

    def declared_template(self, text: str) -> str:
        return f"{text.upper()}{{T}}" if text.islower() else text


def listen(*uris: str) -> t.ListenParams:
    wanted = t.SubscriptionFilter(tools_list_changed=True, resource_subscriptions=list(uris))
    return t.ListenParams(notifications=wanted)


def complete(uri: str) -> t.CompleteParams:
    return t.CompleteParams(ref=t.ResourceTemplateReference(uri=uri), argument=ARGUMENT)


PROMPT = t.CompleteParams(ref=t.PromptReference(name="p"), argument=ARGUMENT)
NOTHING = t.ListenParams(notifications=t.SubscriptionFilter())


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("resources/read", t.ReadResourceParams(uri="a:b"), t.ReadResourceParams(uri="A:B")),
        ("resources/subscribe", t.SubscribeParams(uri="a:b"), t.SubscribeParams(uri="A:B")),
        ("completion/complete", complete("a:b"), complete("A:B{T}")),
        ("subscriptions/listen", listen("a:b", "C:D"), listen("A:B", "C:D")),
    ],
)
def test_uri_is_replaced_by_the_declared_one(method: str, params: Any, expected: Any) -> None:
    assert with_declared_uris(method, params, UpperCase(), 2) == expected


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", t.ReadResourceParams(uri="A:B")),
        ("completion/complete", complete("A:B")),
        ("completion/complete", PROMPT),
        ("subscriptions/listen", listen("A:B")),
        ("subscriptions/listen", listen("a:b", "c:d", "e:f")),  # more than are allowed
        ("subscriptions/listen", NOTHING),
        ("tools/call", t.CallToolParams(name="a:b")),
        ("resources/unsubscribe", t.UnsubscribeParams(uri="a:b")),
    ],
)
def test_other_params_stay_the_same_object(method: str, params: Any) -> None:
    assert with_declared_uris(method, params, UpperCase(), 2) is params


def test_one_uri_is_allowed_by_default() -> None:
    assert with_declared_uris("subscriptions/listen", listen("a"), UpperCase()) == listen("A")
    two = listen("a", "b")
    assert with_declared_uris("subscriptions/listen", two, UpperCase()) is two
