"""How a conversation starts, what is said about requests that run, and what is listened to.

Rules: none beyond those of `_base.py`. This file does not know the order in which these are legal.
Pages: basic/lifecycle, basic/utilities/* (until 2025-11-25); server/discover, basic/patterns/* (2026-07-28);
server/utilities/logging.
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
    """Opens a session until 2025-11-25.

    `protocol_version` is the newest revision that the client wants to speak.
    """

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class InitializeResult(Result, kw_only=True):
    """The revision that the session will speak, and who answers.

    `instructions` are for the client's model.
    """

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


class DiscoverParams(RequestParams, kw_only=True):
    """Asks a server of 2026-07-28 or later what it speaks and offers."""


class DiscoverResult(CacheableResult, kw_only=True):
    """The revisions that a server speaks, and what it offers.

    Who it is stands in `meta`, under `META_SERVER_INFO`.
    """

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | None = None


class PingParams(RequestParams, kw_only=True):
    """Asks whether the peer is alive. Until 2025-11-25."""


class SetLevelParams(RequestParams, kw_only=True):
    """Sets the least severe level of log notifications wanted. Until 2025-11-25."""

    level: LoggingLevel


# Notifications without members of their own.
InitializedParams: TypeAlias = NotificationParams
ListChangedParams: TypeAlias = NotificationParams


class CancelledParams(NotificationParams, kw_only=True):
    """The sender gives a request up.

    `request_id` is optional in 2025-11-25 alone, where tasks are cancelled otherwise.
    """

    request_id: RequestId | None = None
    reason: str | None = None


class ProgressParams(NotificationParams, kw_only=True):
    """How far a request is. `progress` only grows; `total` is what it grows to, if that is known."""

    progress_token: ProgressToken
    progress: int | float
    total: int | float | None = None
    message: str | None = None


class LoggingMessageParams(NotificationParams, kw_only=True):
    """A line of a server's log. `data` may be any JSON value."""

    level: LoggingLevel
    data: Any
    logger: str | None = None


class SubscriptionFilter(Shape, kw_only=True):
    """What to be told of (2026-07-28).

    `resource_subscriptions` are URIs; `task_ids` belongs to the tasks extension.
    """

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    task_ids: list[str] | None = None


class ListenParams(RequestParams, kw_only=True):
    """Opens a subscription. It lasts until one side ends it."""

    notifications: SubscriptionFilter


class AcknowledgedParams(NotificationParams, kw_only=True):
    """The first message of a subscription: what of the wishes the server will keep."""

    notifications: SubscriptionFilter


class ListenResult(Result, kw_only=True):
    """The graceful end of a subscription.

    `META_SUBSCRIPTION_ID` in `meta` is the id of the listen request.
    """


class UnsupportedVersionData(Shape):
    """The `data` of error -32022 (2026-07-28)."""

    supported: list[str]
    requested: str


class MissingCapabilityData(Shape):
    """The `data` of error -32021 (2026-07-28): what the client would have to declare."""

    required_capabilities: ClientCapabilities
