"""One server of a host: what the errors of its attempts mean, and its steps in a row."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from mcp_core import (
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    LocalProtocolError,
)
from mcp_core.auth import AuthorizationFailed
from mcp_core.host._supervision import ServerEvent
from mcp_core.processes import UnsafeArgument
from mcp_core.runtime.host._server import _classify


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "event", "reason"),
    [
        # What may pass by itself is tried again.
        (ConnectFailed("no route"), "DIED", "no route"),
        (ConnectionLost("it ended"), "DIED", "it ended"),
        (OSError(errno.EMFILE, "too many open files"), "DIED", "[Errno 24] too many open files"),
        (CallTimeout("too slow"), "DIED", "too slow"),
        (caused(ConnectFailed("no start"), OSError(errno.EAGAIN, "later")), "DIED", "no start"),
        # A login is needed.
        (AuthRequired("log in"), "LOGIN_REQUIRED", "log in"),
        (caused(ConnectFailed("refused"), AuthRequired("log in")), "LOGIN_REQUIRED", "refused"),
        # The same would happen at the next attempt.
        (AuthorizationFailed("denied"), "REJECTED", "denied"),
        (caused(ConnectFailed("no login"), AuthorizationFailed("denied")), "REJECTED", "no login"),
        (FileNotFoundError(2, "no file"), "REJECTED", "[Errno 2] no file"),
        (caused(ConnectFailed("no start"), FileNotFoundError(2, "x")), "REJECTED", "no start"),
        (caused(ConnectFailed("no start"), PermissionError(13, "x")), "REJECTED", "no start"),
        (caused(ConnectFailed("no start"), UnsafeArgument("x")), "REJECTED", "no start"),
        *(
            (caused(ConnectFailed("no start"), OSError(number, "x")), "REJECTED", "no start")
            for number in (errno.E2BIG, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOEXEC)
        ),
        (OSError(errno.ENOTDIR, "x"), "REJECTED", f"[Errno {errno.ENOTDIR}] x"),
        (LocalProtocolError("no such option"), "REJECTED", "no such option"),
        (ValueError("wrong"), "REJECTED", "wrong"),
        (TypeError("wrong"), "REJECTED", "wrong"),
        # The cause of another error than `ConnectFailed` says nothing about the attempt.
        (caused(ConnectionLost("it ended"), AuthRequired("log in")), "DIED", "it ended"),
        # A bug is shown with its type: its text alone may say nothing.
        (KeyError("x"), "REJECTED", "KeyError: 'x'"),
        (AssertionError(), "REJECTED", "AssertionError: "),
    ],
)
def test_error_of_an_attempt_decides_whether_there_is_another_one(
    error: BaseException, event: str, reason: Any
) -> None:
    assert _classify(error) == (ServerEvent[event], reason)
