"""Causes and cures of Redis' failures, by the first word of an error and by exceptions below it."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from mcp_core.adapters._redis_errors import RedisFailure, explained


class UnknownFailure(Exception):
    """An exception of an unknown kind."""


OUTAGE = (True, False, False)


def kind_of(exc: BaseException) -> tuple[bool, bool, bool]:
    """Return whether it is an outage, is final, and may be mended by a new connection."""
    found = explained(exc)
    return found.is_outage, found.is_final, found.reconnects


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("WRONGPASS invalid", (True, True, False)),
        ("NOAUTH needed", (True, True, False)),
        ("READONLY replica", (True, False, True)),
        ("LOADING data", OUTAGE),
        ("BUSY script", OUTAGE),
        ("OOM command not allowed", (False, False, False)),
        ("MISCONF disk", OUTAGE),
        ("NOREPLICAS good", OUTAGE),
        ("MASTERDOWN link", (True, False, True)),
        ("CLUSTERDOWN hash slot", OUTAGE),
        ("TRYAGAIN later", (False, False, False)),
        ("CROSSSLOT keys", (False, True, False)),
        ("NOPROTO 3", (False, True, False)),
        ("-LOADING data", OUTAGE),  # as a script passes it on
        ("LOADINGS data", (False, False, False)),
        ("it says LOADING", (False, False, False)),
    ],
)
def test_first_word_of_an_error_says_what_else_fails_and_what_helps(
    said: str, kind: tuple[bool, bool, bool]
) -> None:
    assert kind_of(UnknownFailure(said)) == kind


@pytest.mark.parametrize(
    ("cause", "kind", "text"),
    [
        (
            ssl.SSLCertVerificationError(1, "self-signed"),
            (True, True, False),
            "isn't trusted: self-",
        ),
        (ssl.SSLError(1, "wrong version"), OUTAGE, "TLS fails: wrong version"),
        (socket.gaierror("no name"), OUTAGE, "its host name has no address"),
        (ConnectionRefusedError("refused"), OUTAGE, "it refuses connections"),
        (FileNotFoundError("nothing"), OUTAGE, "there is no such file or socket"),
        (PermissionError("mode"), OUTAGE, "this user may not open"),
        (OSError("some network"), OUTAGE, "it cannot be reached: some network"),
        (OSError(), OUTAGE, "it cannot be reached: OSError"),
        (UnknownFailure("odd"), (False, False, False), "it said odd"),
    ],
)
def test_cause_of_a_lost_connection_has_its_cure(
    cause: Exception, kind: tuple[bool, bool, bool], text: str
) -> None:
    """Also as a part of a group."""
    assert kind_of(cause) == kind
    assert text in explained(cause).text
    if kind != (False, False, False) and type(cause) is not OSError:
        group = ExceptionGroup("several", [UnknownFailure("another"), cause])
        assert text in explained(group).text


def raised(kind: str, text: str, cause: BaseException | None, *, hidden: bool = False) -> Exception:
    """Return an exception of a class of this name, with a cause or a context."""
    made: Any = type(kind, (Exception,), {})(text)
    if hidden:
        made.__context__ = cause
    else:
        made.__cause__ = cause
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("kind", ["EndOfStream", "BrokenResourceError"])
def test_connection_that_the_server_has_closed_is_an_outage(kind: str, hidden: bool) -> None:
    exc = raised("ConnectionError", "lost", raised(kind, "", None), hidden=hidden)
    assert kind_of(exc) == OUTAGE
    assert explained(exc).text.startswith("it has closed the connection")


@pytest.mark.parametrize("kind", ["ConnectionError", "ClosedResourceError"])
def test_connection_that_is_lost_is_an_outage_with_its_first_cause(kind: str) -> None:
    exc = raised(kind, "lost", raised("Middle", "middle", raised("First", "first", None)))
    assert kind_of(exc) == OUTAGE
    assert explained(exc).text == "it cannot be reached: first"
    assert explained(raised(kind, "", None)).text == f"it cannot be reached: {kind}"


def test_causes_in_a_circle_are_each_looked_at_once() -> None:
    first, second = UnknownFailure("first"), UnknownFailure("second")
    first.__context__, second.__context__ = second, first
    assert explained(first).text == "it said first"


def test_other_node_of_a_cluster_is_named() -> None:
    exc = raised("MovedError", "MOVED 3999 127.0.0.1:6381", None)
    assert "has the keys of this deployment: 127.0.0.1:6381. Give" in explained(exc).text


@pytest.mark.parametrize("text", ["ACL failure in script", "The user executing the script can't x"])
def test_script_that_the_acl_forbids_is_a_final_failure(text: str) -> None:
    found = explained(UnknownFailure(text))
    assert f"forbids what workers need: {text}." in found.text
    assert kind_of(UnknownFailure(text)) == (False, True, False)


@pytest.mark.parametrize(("size", "shown"), [(200, "x" * 200), (201, "x" * 200 + "...")])
def test_words_of_a_server_are_shown_up_to_a_limit(size: int, shown: str) -> None:
    assert explained(UnknownFailure("x" * size)).text == f"it said {shown}"


def test_control_characters_of_a_server_are_not_shown() -> None:
    assert explained(UnknownFailure("a\x1b[2J\n\x7fé~ ")).text == "it said a?[2J???~ "


def test_failure_is_not_final_unless_it_says_so() -> None:
    assert not RedisFailure("a").is_final
    assert RedisFailure("a", is_final=True).is_final
