"""Types for resources, which a URI identifies, and for resource templates.

Binary data is base64 text in these types, as in JSON. The code that builds a result encodes it.
Pages: server/resources of every revision.
"""

from typing import Any

from msgspec import Raw, field

from ._base import (
    Annotations,
    CacheableResult,
    Cursor,
    Listed,
    NotificationParams,
    RequestParams,
    Shape,
)


class Resource(Listed, kw_only=True):
    """A resource in a list. `size` is in bytes, before base64 encoding."""

    uri: str
    mime_type: str | None = None
    annotations: Annotations | None = None
    size: int | None = None


class ResourceTemplate(Listed, kw_only=True):
    """Resources whose URIs match a URI template (RFC 6570).

    `mime_type` is set only if all of them have that type.
    """

    uri_template: str
    mime_type: str | None = None
    annotations: Annotations | None = None


class ResourceContents(Shape, kw_only=True):
    """A resource's contents: either `text` or `blob`, which is base64.

    It is both TextResourceContents and BlobResourceContents of the specification.

    Raises:
        ValueError: neither or both of `text` and `blob` are given.
    """

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)

    def __post_init__(self) -> None:
        if (self.text is None) is (self.blob is None):
            raise ValueError("resource contents have either text or blob")


class InputResponseParams(RequestParams, kw_only=True):
    """The params of a request to which a server may respond with `input_required` (2026-07-28).

    When the client repeats the request, `input_responses` are the input requests' results, by their
    keys. They are results of `elicitation/create`, `sampling/createMessage` or `roots/list`,
    undecoded because their types depend on the input requests. `request_state` is the server's,
    unchanged. Page: basic/patterns/mrtr.
    """

    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None


class ListResourcesResult(CacheableResult, kw_only=True):
    """One page of resources. `next_cursor` is set if there are more."""

    resources: list[Resource]
    next_cursor: Cursor | None = None


class ListResourceTemplatesResult(CacheableResult, kw_only=True):
    """One page of resource templates. `next_cursor` is set if there are more."""

    resource_templates: list[ResourceTemplate]
    next_cursor: Cursor | None = None


class ReadResourceParams(InputResponseParams, kw_only=True):
    """A request for the contents of one resource."""

    uri: str


class ReadResourceResult(CacheableResult, kw_only=True):
    """A resource's contents, with several entries if the URI identifies a collection."""

    contents: list[ResourceContents]


class SubscribeParams(RequestParams, kw_only=True):
    """A subscription to one resource, until 2025-11-25. Later: `subscriptions/listen`."""

    uri: str


class UnsubscribeParams(RequestParams, kw_only=True):
    """The end of a subscription by `resources/subscribe`."""

    uri: str


class ResourceUpdatedParams(NotificationParams, kw_only=True):
    """A subscribed resource has changed. `uri` may name a part of it."""

    uri: str
