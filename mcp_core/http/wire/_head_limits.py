"""Limits on a message's head, and why a head is rejected, for every version of HTTP.

HTTP/1.1 (`_http1.py`) and HTTP/2 (`_http2_headers.py`) share these: no spelling passes one of
them that the other rejects. Errors that only one version can have are in its own file.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

# Bytes: in HTTP/1.1 with request line and empty line, in HTTP/2 as RFC 9113, 6.5.2 counts.
MAX_HEAD: Final = 32 * 1024
# Bytes of a response's head. Servers set more and longer headers than clients.
MAX_RESPONSE_HEAD: Final = 64 * 1024
MAX_FIELDS: Final = 100
MAX_VALUE: Final = 8 * 1024  # bytes of one value
MAX_TARGET: Final = 8 * 1024
MAX_METHOD: Final = 32  # the longest registered method has 17 characters
MAX_DIGITS: Final = 18  # of Content-Length

# Fields of which only one value is used. If there were two lines, a proxy might use the other one.
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


class HeadError(Struct, frozen=True):
    """The rejection of a head: the response's `status`, and a `reason` for its body.

    Read nothing more of the request: close the connection in HTTP/1.1, the stream in HTTP/2.
    """

    status: int
    reason: str


REPEATED: Final = HeadError(400, "A header that may occur only once is repeated.")
BAD_LENGTH: Final = HeadError(400, "Content-Length is not one plain decimal number.")
# The answer to a head that has not arrived in time.
HEAD_TIMEOUT: Final = HeadError(408, "The head of the request took too long.")
HUGE_BODY: Final = HeadError(413, "The body is too large.")
LONG_TARGET: Final = HeadError(414, f"The target has more than {MAX_TARGET} bytes.")
EXPECTATION: Final = HeadError(417, "The only expectation that can be met is 100-continue.")
LONG_HEAD: Final = HeadError(431, f"The head has more than {MAX_HEAD} bytes.")
MANY_FIELDS: Final = HeadError(431, f"There are more than {MAX_FIELDS} headers.")
LONG_VALUE: Final = HeadError(431, f"The value of a header has more than {MAX_VALUE} bytes.")
OTHER_METHOD: Final = HeadError(501, "This method is not supported.")
