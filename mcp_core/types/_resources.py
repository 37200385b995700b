"""Resources: what a server lets be read, addressed by URI, and the templates of such URIs.

Rule: binary data is base64 text in these shapes, as on the wire. Encoding bytes is done where results are
made. This file does not know how URIs or templates are matched.
Pages: server/resources of every revision.
"""

from typing import Any

from msgspec import Raw, field

from ._base import Annotations, CacheableResult, Cursor, Listed, NotificationParams, RequestParams, Shape


class Resource(Listed, kw_only=True):
    """A resource in a list. `size` is in bytes, before any encoding."""

    uri: str
    mime_type: str | None = None
    annotations: Annotations | None = None
    size: int | None = None


class ResourceTemplate(Listed, kw_only=True):
    """A family of resources, by URI template (RFC 6570). `mime_type` only if it is that of every member."""

    uri_template: str
    mime_type: str | None = None
    annotations: Annotations | None = None


class ResourceContents(Shape, kw_only=True):
    """What was read from a resource: either `text` or `blob`, which is base64.

    The spec's TextResourceContents and BlobResourceContents in one.

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
    """The params of a request that a server may answer by asking for input (2026-07-28).

    When the request is repeated, `input_responses` are the answers by the key of their question: results of
    `elicitation/create`, `sampling/createMessage` or `roots/list`, undecoded because only the question tells
    which. `request_state` is what the server sent along, unchanged. Page: basic/patterns/mrtr.
    """

    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None


class ListResourcesResult(CacheableResult, kw_only=True):
    """One page of resources. `next_cursor` is there if more follow."""

    resources: list[Resource]
    next_cursor: Cursor | None = None


class ListResourceTemplatesResult(CacheableResult, kw_only=True):
    """One page of resource templates. `next_cursor` is there if more follow."""

    resource_templates: list[ResourceTemplate]
    next_cursor: Cursor | None = None


class ReadResourceParams(InputResponseParams, kw_only=True):
    """Asks for the contents of one resource."""

    uri: str


class ReadResourceResult(CacheableResult, kw_only=True):
    """The contents of a resource: several entries if the URI stands for a collection."""

    contents: list[ResourceContents]


class SubscribeParams(RequestParams, kw_only=True):
    """Asks to be told of changes of one resource. Until 2026-07-28, which has `subscriptions/listen`."""

    uri: str


class UnsubscribeParams(RequestParams, kw_only=True):
    """Takes a `resources/subscribe` back."""

    uri: str


class ResourceUpdatedParams(NotificationParams, kw_only=True):
    """A resource that is watched has changed. `uri` may be that of a part of it."""

    uri: str
