"""Handshake, discovery, progress, logs and subscriptions as JSON."""

from __future__ import annotations

import msgspec
import pytest

from mcp_core import types as t
from tests.core.types.json_assertions import assert_json, decode_error

WHO = t.Implementation("a", "1")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            t.InitializeParams(
                protocol_version="v", capabilities=t.ClientCapabilities(), client_info=WHO
            ),
            '{"protocolVersion":"v","capabilities":{},"clientInfo":{"name":"a","version":"1"}}',
        ),
        (
            t.InitializeResult(
                protocol_version="v",
                capabilities=t.ServerCapabilities(),
                server_info=WHO,
                instructions="i",
            ),
            '{"protocolVersion":"v","capabilities":{},"serverInfo":{"name":"a","version":"1"},"instructions":"i"}',
        ),
        (t.DiscoverParams(), "{}"),
        (
            t.DiscoverResult(
                supported_versions=["v"],
                capabilities=t.ServerCapabilities(),
                ttl_ms=0,
                cache_scope="private",
            ),
            '{"ttlMs":0,"cacheScope":"private","supportedVersions":["v"],"capabilities":{}}',
        ),
        (t.PingParams(), "{}"),
        (t.SetLevelParams(level="alert"), '{"level":"alert"}'),
        (t.InitializedParams(), "{}"),
        (t.ListChangedParams(meta={"k": 1}), '{"_meta":{"k":1}}'),
        (t.CancelledParams(request_id=0, reason="r"), '{"requestId":0,"reason":"r"}'),
        (t.CancelledParams(request_id="0"), '{"requestId":"0"}'),
        (t.CancelledParams(), "{}"),
        (t.ProgressParams(progress_token="p", progress=1), '{"progressToken":"p","progress":1}'),
        (
            t.ProgressParams(progress_token=0, progress=0.5, total=2, message="m"),
            '{"progressToken":0,"progress":0.5,"total":2,"message":"m"}',
        ),
        (
            t.LoggingMessageParams(level="info", data=None, logger="l"),
            '{"level":"info","data":null,"logger":"l"}',
        ),
        (
            t.LoggingMessageParams(level="info", data=[{"a": 1}]),
            '{"level":"info","data":[{"a":1}]}',
        ),
        (
            t.ListenParams(
                notifications=t.SubscriptionFilter(
                    tools_list_changed=True,
                    prompts_list_changed=True,
                    resources_list_changed=False,
                    resource_subscriptions=["x:y"],
                    task_ids=["t"],
                )
            ),
            (
                '{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":false,'
                '"resourceSubscriptions":["x:y"],"taskIds":["t"]}}'
            ),
        ),
        (t.AcknowledgedParams(notifications=t.SubscriptionFilter()), '{"notifications":{}}'),
        (
            t.ListenResult(meta={t.META_SUBSCRIPTION_ID: 3}),
            '{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}',
        ),
        (t.UnsupportedVersionData(["v"], "w"), '{"supported":["v"],"requested":"w"}'),
        (
            t.MissingCapabilityData(t.ClientCapabilities(sampling=t.SamplingCapability())),
            '{"requiredCapabilities":{"sampling":{}}}',
        ),
    ],
)
def test_lifecycle_types_round_trip(value: msgspec.Struct, text: str) -> None:
    assert_json(value, text)


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ('{"requestId":true}', t.CancelledParams),
        ('{"requestId":1.0}', t.CancelledParams),
        ('{"progressToken":"p","progress":"1"}', t.ProgressParams),
        ('{"level":"warn","data":1}', t.LoggingMessageParams),
        ('{"level":"info"}', t.LoggingMessageParams),
        ('{"level":"INFO"}', t.SetLevelParams),
        ('{"protocolVersion":"v","capabilities":{}}', t.InitializeParams),
        ("{}", t.ListenParams),
    ],
)
def test_lifecycle_types_invalid_rejected(text: str, type: type[msgspec.Struct]) -> None:
    assert decode_error(text, type)
