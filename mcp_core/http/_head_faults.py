"""What no head of a request may be, in whichever version of HTTP it comes: the limits, and the words in which it is refused.

Whoever reads HTTP/1.1 (`_http1.py`) and whoever reads HTTP/2 (`_http2_heads.py`) draw the same lines, so that no spelling gets past one
that holds in the other. What only one of them can get wrong is said there.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MAX_HEAD: Final = (
    32 * 1024
)  # bytes; of HTTP/1.1 the request line and the empty line included, of HTTP/2 as RFC 9113 6.5.2 counts
MAX_FIELDS: Final = 100
MAX_VALUE: Final = 8 * 1024  # bytes of one value
MAX_TARGET: Final = 8 * 1024
MAX_METHOD: Final = 32  # none that is registered has more than 17
MAX_DIGITS: Final = 18  # of a length

SINGLETONS: Final = (
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"content-type",
    b"expect",
    b"authorization",
    b"origin",
    b"mcp-session-id",
    b"last-event-id",
)


class HeadFault(Struct, frozen=True):
    """Why a head is refused: the status of the answer and a sentence for its body. After it nothing more of the request is read: over
    HTTP/1.1 the connection is closed, over HTTP/2 the stream."""

    status: int
    reason: str


REPEATED: Final = HeadFault(400, "A header that must be there once is there several times.")
BAD_LENGTH: Final = HeadFault(400, "Content-Length is not one plain decimal number.")
HUGE_BODY: Final = HeadFault(413, "The body is too large.")
LONG_TARGET: Final = HeadFault(414, f"The target has more than {MAX_TARGET} bytes.")
EXPECTATION: Final = HeadFault(417, "The only expectation that can be met is 100-continue.")
LONG_HEAD: Final = HeadFault(431, f"The head has more than {MAX_HEAD} bytes.")
MANY_FIELDS: Final = HeadFault(431, f"There are more than {MAX_FIELDS} headers.")
LONG_VALUE: Final = HeadFault(431, f"The value of a header has more than {MAX_VALUE} bytes.")
OTHER_METHOD: Final = HeadFault(501, "This method is not supported.")
