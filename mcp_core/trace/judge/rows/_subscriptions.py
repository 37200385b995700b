"""Rows for `subscriptions/listen`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # SUB, subscriptions/listen
    *rows(
        {"2026-07-28": "basic/patterns/subscriptions"},
        ("SUB-1", "schema", "2026-07-28", None, "client",
         "`subscriptions/listen` params `notifications{toolsListChanged?, promptsListChanged?, "
         "resourcesListChanged?, resourceSubscriptions?: uri[]}` required (may be empty)."),
        ("SUB-2", "MUST NOT", "2026-07-28", None, "server",
         "No notification type or URI that was not requested."),
        ("SUB-3", "MUST", "2026-07-28", None, "server",
         "First message of the subscription is `notifications/subscriptions/acknowledged` with "
         "the honoured subset (unsupported left out) and `_meta` subscription id; nothing of "
         "that subscription before it. Order is per subscription id on stdio."),
        ("SUB-4", "MUST", "2026-07-28", None, "server",
         "Every notification on it carries the subscription id in `_meta`, and so does the "
         "closing result."),
        ("SUB-5", "MUST", "2026-07-28", None, "client",
         "stdio: demultiplex by the subscription id."),
        ("SUB-6", "SHOULD", "2026-07-28", None, "client",
         "Compare the ack with the request; degrade gracefully."),
        ("SUB-7", "MAY", "2026-07-28", None, "client",
         "Several subscriptions at once."),
        ("SUB-8", "SHOULD", "2026-07-28", None, "server",
         'Graceful end by the server: `SubscriptionsListenResult` (`resultType: "complete"`, '
         "`_meta` subscription id = request id), then close the stream."),
        ("SUB-9", "MUST", "2026-07-28", None, "server",
         "A server tearing a subscription down sends `notifications/cancelled` with the listen "
         "id; schema limits it to stdio. It conflicts with SUB-8; DEC-1 decides."),
        ("SUB-10", "MUST NOT", "2026-07-28", None, "server",
         "`notifications/progress` and `notifications/message` never on the listen stream."),
        ("SUB-11", "schema", "2026-07-28", None, "client",
         "Client ends it: HTTP closes the stream; stdio `notifications/cancelled` with the "
         "listen id."),
        ("SUB-12", "MUST", "2026-07-28", None, "client",
         "After re-establishing a stdio connection, re-send listen."),
        ("SUB-13", "MAY", "2026-07-28", None, "client",
         "A close without a result is an abnormal end: MAY reconnect. Missed events are lost → "
         "re-list/re-read (reading)."),
        ("SUB-14", "reading", "2026-07-28", None, "server",
         "`resources/updated` may name a sub-resource of a subscribed URI."),
        ("SUB-15", "SHOULD", "2026-07-28", None, "server",
         "HTTP listen streams: comment keep-alives, `X-Accel-Buffering: no`."),
        ("SUB-16", "reading", "2026-07-28", None, "server",
         "A server without any subscribable feature still may answer listen with an empty ack; "
         "over-limit → error before the ack."),
    ),
)
# fmt: on
