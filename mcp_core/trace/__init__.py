"""Traces: recorded conversations as files, which this or another program reads later."""

from __future__ import annotations

from ._channels import ChildChannel as ChildChannel
from ._channels import StreamChannel as StreamChannel
from ._channels import WebSocketChannel as WebSocketChannel
from ._encoder import TraceEncoder as TraceEncoder
from ._finding import Finding as Finding
from ._format import FORMAT_VERSION as FORMAT_VERSION
from ._format import MAX_TRACE_LINE as MAX_TRACE_LINE
from ._format import DamagedLine as DamagedLine
from ._format import HttpHead as HttpHead
from ._format import InvalidTrace as InvalidTrace
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
from ._judge import Judge as Judge
from ._redaction import Redactor as Redactor
from .rows import ROWS as ROWS
from .rows import Requirement as Requirement
from .rules import JUDGED_ROWS as JUDGED_ROWS

__all__ = [
    "FORMAT_VERSION",
    "JUDGED_ROWS",
    "MAX_TRACE_LINE",
    "ROWS",
    "ChildChannel",
    "ConversationNumbers",
    "DamagedLine",
    "Finding",
    "HttpChannel",
    "HttpHead",
    "InvalidTrace",
    "Judge",
    "Redactor",
    "Requirement",
    "SseFields",
    "StreamChannel",
    "TraceEncoder",
    "TraceHeader",
    "TraceLine",
    "TraceReader",
    "TruncatedMessage",
    "WebSocketChannel",
    "WebSocketClose",
    "encode_header",
    "encode_line",
    "read_header",
    "read_line",
    "read_trace",
]
