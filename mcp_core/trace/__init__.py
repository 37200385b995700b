"""Traces: files with recorded conversations, which this or another program reads later.

Each name is imported on first use: a program that records loads neither the judge nor the replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use

if TYPE_CHECKING:
    from ._channels import ChildChannel as ChildChannel
    from ._channels import StreamChannel as StreamChannel
    from ._channels import WebSocketChannel as WebSocketChannel
    from ._encoder import TraceEncoder as TraceEncoder
    from ._format import FORMAT_VERSION as FORMAT_VERSION
    from ._format import MAX_TRACE_LINE as MAX_TRACE_LINE
    from ._format import UNTIMED as UNTIMED
    from ._format import DamagedLine as DamagedLine
    from ._format import EmptyTrace as EmptyTrace
    from ._format import HttpHead as HttpHead
    from ._format import InvalidTrace as InvalidTrace
    from ._format import RecordedFinding as RecordedFinding
    from ._format import SseFields as SseFields
    from ._format import TraceHeader as TraceHeader
    from ._format import TraceLine as TraceLine
    from ._format import TraceReader as TraceReader
    from ._format import TruncatedMessage as TruncatedMessage
    from ._format import WebSocketClose as WebSocketClose
    from ._format import encode_header as encode_header
    from ._format import encode_line as encode_line
    from ._format import read_header as read_header
    from ._format import read_line as read_line
    from ._format import read_trace as read_trace
    from ._http_channel import ConversationNumbers as ConversationNumbers
    from ._http_channel import HttpChannel as HttpChannel
    from ._messages import MessageSplitter as MessageSplitter
    from ._redaction import Redactor as Redactor
    from .judge._finding import Finding as Finding
    from .judge._judge import Judge as Judge
    from .judge._outline import message_outline as message_outline
    from .judge.rows import CHECKED_LEVELS as CHECKED_LEVELS
    from .judge.rows import ROWS as ROWS
    from .judge.rows import Requirement as Requirement
    from .judge.rows import row_family as row_family
    from .judge.rules import JUDGED_ROWS as JUDGED_ROWS
    from .judge.rules import RowOpportunity as RowOpportunity
    from .judge.rules import opportunity_of as opportunity_of
    from .logs._reader import LogReader as LogReader
    from .replay._client import RESPONSE_TIMEOUT as RESPONSE_TIMEOUT
    from .replay._client import ReplayClient as ReplayClient
    from .replay._diff import ChangedValue as ChangedValue
    from .replay._diff import TraceDiff as TraceDiff
    from .replay._diff import TraceDifference as TraceDifference
    from .replay._diff import diff_traces as diff_traces
    from .replay._http_client import ReplayHttpClient as ReplayHttpClient
    from .replay._http_client import ReplayRequest as ReplayRequest
    from .replay._http_server import ReplayExchange as ReplayExchange
    from .replay._http_server import ReplayHttpServer as ReplayHttpServer
    from .replay._load import CallCopy as CallCopy
    from .replay._load import LeftOut as LeftOut
    from .replay._load import RecordedCall as RecordedCall
    from .replay._load import RecordedLoad as RecordedLoad
    from .replay._load import recorded_load as recorded_load
    from .replay._offers import RecordedOffers as RecordedOffers
    from .replay._offers import recorded_offers as recorded_offers
    from .replay._recorded import MAX_TRACE_BYTES as MAX_TRACE_BYTES
    from .replay._recorded import RecordedMessage as RecordedMessage
    from .replay._recorded import RecordedSession as RecordedSession
    from .replay._recorded import RecordedTrace as RecordedTrace
    from .replay._recorded import TraceTooLarge as TraceTooLarge
    from .replay._recorded import load_trace as load_trace
    from .replay._replayed import NotRecorded as NotRecorded
    from .replay._replayed import ReplayedServer as ReplayedServer
    from .replay._server import ReplayOutput as ReplayOutput
    from .replay._server import ReplayServer as ReplayServer
    from .replay._server import ReplaySession as ReplaySession
    from .replay._stream import MAX_REPLAY_LINE as MAX_REPLAY_LINE
    from .replay._stream import ReplayStream as ReplayStream

__all__ = [
    "CHECKED_LEVELS",
    "FORMAT_VERSION",
    "JUDGED_ROWS",
    "MAX_REPLAY_LINE",
    "MAX_TRACE_BYTES",
    "MAX_TRACE_LINE",
    "RESPONSE_TIMEOUT",
    "ROWS",
    "UNTIMED",
    "CallCopy",
    "ChangedValue",
    "ChildChannel",
    "ConversationNumbers",
    "DamagedLine",
    "EmptyTrace",
    "Finding",
    "HttpChannel",
    "HttpHead",
    "InvalidTrace",
    "Judge",
    "LeftOut",
    "LogReader",
    "MessageSplitter",
    "NotRecorded",
    "RecordedCall",
    "RecordedFinding",
    "RecordedLoad",
    "RecordedMessage",
    "RecordedOffers",
    "RecordedSession",
    "RecordedTrace",
    "Redactor",
    "ReplayClient",
    "ReplayExchange",
    "ReplayHttpClient",
    "ReplayHttpServer",
    "ReplayOutput",
    "ReplayRequest",
    "ReplayServer",
    "ReplaySession",
    "ReplayStream",
    "ReplayedServer",
    "Requirement",
    "RowOpportunity",
    "SseFields",
    "StreamChannel",
    "TraceDiff",
    "TraceDifference",
    "TraceEncoder",
    "TraceHeader",
    "TraceLine",
    "TraceReader",
    "TraceTooLarge",
    "TruncatedMessage",
    "WebSocketChannel",
    "WebSocketClose",
    "diff_traces",
    "encode_header",
    "encode_line",
    "load_trace",
    "message_outline",
    "opportunity_of",
    "read_header",
    "read_line",
    "read_trace",
    "recorded_load",
    "recorded_offers",
    "row_family",
]

_MODULES = {
    "._channels": (
        "ChildChannel",
        "StreamChannel",
        "WebSocketChannel",
    ),
    "._encoder": ("TraceEncoder",),
    "._format": (
        "DamagedLine",
        "EmptyTrace",
        "FORMAT_VERSION",
        "HttpHead",
        "InvalidTrace",
        "MAX_TRACE_LINE",
        "RecordedFinding",
        "SseFields",
        "TraceHeader",
        "TraceLine",
        "TraceReader",
        "TruncatedMessage",
        "UNTIMED",
        "WebSocketClose",
        "encode_header",
        "encode_line",
        "read_header",
        "read_line",
        "read_trace",
    ),
    "._http_channel": (
        "ConversationNumbers",
        "HttpChannel",
    ),
    "._messages": ("MessageSplitter",),
    "._redaction": ("Redactor",),
    ".judge._finding": ("Finding",),
    ".judge._judge": ("Judge",),
    ".judge._outline": ("message_outline",),
    ".judge.rows": (
        "CHECKED_LEVELS",
        "ROWS",
        "Requirement",
        "row_family",
    ),
    ".judge.rules": (
        "JUDGED_ROWS",
        "RowOpportunity",
        "opportunity_of",
    ),
    ".logs._reader": ("LogReader",),
    ".replay._client": (
        "RESPONSE_TIMEOUT",
        "ReplayClient",
    ),
    ".replay._diff": (
        "ChangedValue",
        "TraceDiff",
        "TraceDifference",
        "diff_traces",
    ),
    ".replay._http_client": (
        "ReplayHttpClient",
        "ReplayRequest",
    ),
    ".replay._http_server": (
        "ReplayExchange",
        "ReplayHttpServer",
    ),
    ".replay._load": (
        "CallCopy",
        "LeftOut",
        "RecordedCall",
        "RecordedLoad",
        "recorded_load",
    ),
    ".replay._offers": (
        "RecordedOffers",
        "recorded_offers",
    ),
    ".replay._recorded": (
        "MAX_TRACE_BYTES",
        "RecordedMessage",
        "RecordedSession",
        "RecordedTrace",
        "TraceTooLarge",
        "load_trace",
    ),
    ".replay._replayed": (
        "NotRecorded",
        "ReplayedServer",
    ),
    ".replay._server": (
        "ReplayOutput",
        "ReplayServer",
        "ReplaySession",
    ),
    ".replay._stream": (
        "MAX_REPLAY_LINE",
        "ReplayStream",
    ),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
