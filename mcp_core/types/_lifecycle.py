"""Types for handshake and discovery, progress and logs, cancellation and subscriptions.

Pages: basic/lifecycle, basic/utilities/* (until 2025-11-25); server/discover, basic/patterns/*
(2026-07-28); server/utilities/logging.
"""

from typing import Any, TypeAlias

from ._base import (
    CacheableResult,
    ClientCapabilities,
    Implementation,
    LoggingLevel,
    NotificationParams,
    ProgressToken,
    RequestId,
    RequestParams,
    Result,
    ServerCapabilities,
    Shape,
)


class InitializeParams(RequestParams, kw_only=True):
    """A request to open a session, until 2025-11-25.

    `protocol_version` is the newest revision that the client speaks.
    """

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class InitializeResult(Result, kw_only=True):
    """The session's revision, and the server's identity and capabilities.

    `instructions` are for the client's model.
    """

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


class DiscoverParams(RequestParams, kw_only=True):
    """A request for the revisions and the capabilities of a server, since 2026-07-28."""


class DiscoverResult(CacheableResult, kw_only=True):
    """The revisions and the capabilities of a server.

    Its name and version are in `meta`, under `META_SERVER_INFO`.
    """

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | None = None


class PingParams(RequestParams, kw_only=True):
    """A keep-alive request, until 2025-11-25."""


class SetLevelParams(RequestParams, kw_only=True):
    """A request that sets the least severe level of log notifications, until 2025-11-25."""

    level: LoggingLevel


# Notifications without members of their own.
InitializedParams: TypeAlias = NotificationParams
ListChangedParams: TypeAlias = NotificationParams


class CancelledParams(NotificationParams, kw_only=True):
    """A notification that the sender cancels its request.

    `request_id` is optional in 2025-11-25 only, in which tasks are cancelled by `tasks/cancel`.
    """

    request_id: RequestId | None = None
    reason: str | None = None


class ProgressParams(NotificationParams, kw_only=True):
    """Progress of a request. `progress` increases; `total` is its final value, if known."""

    progress_token: ProgressToken
    progress: int | float
    total: int | float | None = None
    message: str | None = None


class LoggingMessageParams(NotificationParams, kw_only=True):
    """A log message of a server. `data` may be any JSON value."""

    level: LoggingLevel
    data: Any
    logger: str | None = None


class SubscriptionFilter(Shape, kw_only=True):
    """The changes to be notified of (2026-07-28).

    `resource_subscriptions` are URIs; `task_ids` belongs to the tasks extension.
    """

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    task_ids: list[str] | None = None


class ListenParams(RequestParams, kw_only=True):
    """A request that opens a subscription. It is open until one side ends it."""

    notifications: SubscriptionFilter


class AcknowledgedParams(NotificationParams, kw_only=True):
    """The first message of a subscription: the part of the filter that the server accepted."""

    notifications: SubscriptionFilter


class ListenResult(Result, kw_only=True):
    """The orderly end of a subscription.

    `META_SUBSCRIPTION_ID` in `meta` is the id of the listen request.
    """


class UnsupportedVersionData(Shape):
    """The `data` of error -32022 (2026-07-28)."""

    supported: list[str]
    requested: str


class MissingCapabilityData(Shape):
    """The `data` of error -32021 (2026-07-28): capabilities that the client has to declare."""

    required_capabilities: ClientCapabilities
