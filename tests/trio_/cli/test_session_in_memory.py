"""A command's target, and the errors of its session with what the user can do about each."""

from __future__ import annotations

import io
from typing import Any

import pytest

from mcp_core import (
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    LocalProtocolError,
    McpTrioError,
    PeerError,
    RemoteProtocolError,
    TaskCancelled,
)
from mcp_core.auth import AuthorizationFailed
from mcp_trio.cli import _session
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target, explain_error, guess_endpoint, run_session

NOTHING: Any = None


def target_of(server: str | tuple[str, ...] = ("a b", "c"), **options: Any) -> Target:
    return Target(server=server, stderr=Screen(None), **options)


URL = target_of("http://x/mcp?key=1")
PROGRAM = target_of()
FILE = target_of(("python", "run"), file="s.py", file_words=("--asyncio", "s.py"))


@pytest.mark.parametrize(
    ("target", "name", "words", "stderr_hint"),
    [
        (URL, "http://x/mcp", ["http://x/mcp?key=1"], ""),
        (PROGRAM, "'a b' c", ["'a b' c"], "; its stderr, if any, is above"),
        (FILE, "s.py", ["--asyncio", "s.py"], "; its stderr, if any, is above"),
    ],
)
def test_target_has_a_name_and_words_for_the_command_line(
    target: Target, name: str, words: list[str], stderr_hint: str
) -> None:
    assert (target.name, target.words, target.stderr_hint) == (name, words, stderr_hint)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        (URL, "Is that the URL of an MCP server? --trace shows the messages"),
        (PROGRAM, "Is that an MCP server on stdin and stdout? --trace shows the messages"),
        (FILE, "Its stderr, if any, is above"),
    ],
)
def test_target_hint_says_why_it_may_be_no_server(target: Target, hint: str) -> None:
    assert target.not_mcp_hint == hint


def test_target_shows_words_before_their_variables_are_expanded() -> None:
    assert URL.shown_words == ("http://x/mcp?key=1",)
    assert PROGRAM.shown_words == ("a b", "c")
    assert target_of(("a", "key"), unexpanded=("a", "$KEY")).shown_words == ("a", "$KEY")


def test_target_timeout_for_connecting_is_the_common_one_by_default() -> None:
    assert target_of().connecting_timeout == 60
    assert target_of(timeout=5).connecting_timeout == 5
    assert target_of(timeout=5, connect_timeout=7.0).connecting_timeout == 7


def test_target_has_no_options_by_default() -> None:
    target = target_of()
    assert (target.env, target.inherit_env, target.cwd, target.headers) == ((), False, None, ())
    assert (target.recording, target.keychain, target.auth) == (None, False, None)
    assert (target.allow_cleartext, target.known_peer, target.log_level) == (False, None, None)
    assert target.client_options["on_log"] is None
    assert "on_roots" not in target.client_options
    assert target.call_options(NOTHING) == {"timeout": 60, "progress": None}


def test_target_repr_hides_values_of_variables_and_headers() -> None:
    values = ("first-secret", "second-secret", "third-secret")
    target = target_of(
        env=(("API_TOKEN", values[0]),),
        headers=(("x-api-key", values[1]),),
        secrets=frozenset(values[2:]),
    )
    assert not [value for value in values if value in repr(target)]
    assert target.known_secrets >= {*values}


def test_target_quotes_a_line_of_stderr_on_a_terminal() -> None:
    data = io.BytesIO()
    file = io.TextIOWrapper(data, "utf-8")
    target = Target(server=("a",), stderr=Screen(file))
    target._print_stderr_line("a\x1b")
    assert data.getvalue() == b"| a\\u001b\n"
    assert target.child_stderr == "forward"


# -- Errors ----------------------------------------------------------------------------------------

ELSEWHERE = "; `mcp-trio inspect` shows what the server can do"
LOGIN = "`mcp-trio login http://x/mcp?key=1` gets a token"


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (AuthorizationFailed("no"), 3, "'a b' c: no"),
        (CallTimeout("late"), 3, "late; a larger --timeout allows more time"),
        (
            ConnectionLost("it ended\nmore"),
            3,
            "it ended before it answered; its stderr, if any, is above",
        ),
        (TaskCancelled(-32000, "gone"), 1, "the task has no result: gone"),
        (PeerError(-5, "no"), 1, "the server answered with an error: no (-5)"),
        (LocalProtocolError("not now"), 2, f"not now{ELSEWHERE}"),
        (
            RemoteProtocolError("bad\nmore"),
            3,
            "the server broke the protocol: bad. --trace shows the messages",
        ),
        (ConnectFailed("no"), 3, f"'a b' c: no. {PROGRAM.not_mcp_hint}"),
    ],
)
def test_error_of_a_session_says_what_to_do(error: Any, status: int, text: str) -> None:
    found = explain_error(PROGRAM, error)
    assert found is not None
    assert (str(found), found.status) == (text, status)


def test_error_that_no_server_causes_is_not_explained() -> None:
    assert explain_error(PROGRAM, McpTrioError("a fault")) is None

    def fail() -> None:
        with _session._explain_errors(PROGRAM):
            raise McpTrioError("a fault")

    with pytest.raises(McpTrioError, match="a fault"):
        fail()


REQUIRED = "a token is required: connect with auth=True, or log in with `mcp-trio login` before."


@pytest.mark.parametrize(
    ("options", "scopes", "hint"),
    [
        ({}, (), f". {LOGIN}, --token-env VARIABLE sends one that you have"),
        (
            {"keychain": True},
            ("a", "b c"),
            (
                ". `mcp-trio login --keychain --scope a --scope 'b c' 'http://x/mcp?key=1'` gets"
                " a token, --token-env VARIABLE sends one that you have"
            ),
        ),
        (
            {"headers": (("x-a", "b"), ("authorization", "t"))},
            (),
            (
                ". Check the token that was sent, or get one by `mcp-trio login"
                " 'http://x/mcp?key=1'` and send none yourself"
            ),
        ),
        (
            {"headers": (("x-a", "b"),)},
            (),
            f". {LOGIN}, --token-env VARIABLE sends one that you have",
        ),
        ({"auth": False}, (), ""),
    ],
)
@pytest.mark.parametrize("connecting", [False, True])
def test_error_about_a_token_says_how_to_get_one(
    options: Any, scopes: tuple[str, ...], hint: str, connecting: bool
) -> None:
    target = target_of("http://x/mcp?key=1", **options)
    required = AuthRequired(REQUIRED, scopes)
    error: McpTrioError = required
    prefix = "a token is required"
    if connecting:
        error, prefix = ConnectFailed(REQUIRED), f"http://x/mcp: {prefix}"
        error.__cause__ = required
    found = explain_error(target, error)
    assert found is not None
    shown = hint.replace("login http://x/mcp?key=1", "login 'http://x/mcp?key=1'")
    assert (str(found), found.status) == (prefix + shown, 3)


@pytest.mark.parametrize(
    ("cause", "text", "shown"),
    [
        (OSError("x"), "cannot connect.\nmore", "cannot connect."),
        (AuthorizationFailed("x"), "no.", "http://x/mcp: no."),
        (None, "no.\nmore", f"http://x/mcp: no. {URL.not_mcp_hint}"),
        (None, "is it?", "http://x/mcp: is it?"),
        (
            None,
            "no\n  stderr\n  set here, and not passed on to it: A, B",
            f"http://x/mcp: no. {URL.not_mcp_hint}\nset here, and not passed on to it: A, B",
        ),
    ],
)
def test_error_of_a_failed_connection_has_one_hint(
    cause: BaseException | None, text: str, shown: str
) -> None:
    error = ConnectFailed(text)
    error.__cause__ = cause
    found = explain_error(URL, error)
    assert found is not None
    assert (str(found), found.status) == (shown, 3)


def with_status(status: object, *, data: Any = None) -> RemoteProtocolError:
    return RemoteProtocolError("no", data={"status": status} if data is None else data)


CURED = {*range(300, 400), 407, 413, 429, 500, 502, 503, 504, 511}
NO_ENDPOINT = {*range(200, 400), 404, 405, 410, 501}


def test_error_of_a_status_with_a_cure_has_no_hint() -> None:
    """A redirect, a proxy, a limit and a server that is down are no other server."""
    cured = {status for status in range(600) if _session._is_cured(with_status(status))}
    assert cured == CURED
    assert not _session._is_cured(with_status("300"))
    assert not _session._is_cured(with_status(0, data=["status"]))
    assert not _session._is_cured(OSError())
    assert not _session._is_cured(None)


def failed(cause: BaseException | None) -> CliError:
    """Return an error of a session as `run_session` sees it."""
    error = ConnectFailed("no")
    error.__cause__ = cause
    found = CliError("no", 3)
    found.__cause__ = error
    return found


def test_endpoint_is_guessed_after_a_status_without_a_server() -> None:
    """Only for a URL without a path: the user has chosen any other one."""
    guessed = {
        status
        for status in range(600)
        if guess_endpoint("http://a", failed(with_status(status)).__cause__) is not None
    }
    assert guessed == NO_ENDPOINT
    assert guess_endpoint("http://a", None) is None
    assert guess_endpoint("http://a", ConnectFailed("no")) is None
    assert guess_endpoint("http://a", failed(OSError()).__cause__) is None
    for server in ("http://a/b", "http://a?b", "http://a/#b", ("a",)):
        assert guess_endpoint(server, failed(with_status(404)).__cause__) is None
    assert guess_endpoint("http://a:1/", failed(with_status(404)).__cause__) == (
        "http://a:1/mcp",
        "HTTP status 404",
    )
    assert guess_endpoint("ws://a", failed(with_status(None, data=[])).__cause__) == (
        "ws://a/mcp",
        "its response is not MCP",
    )


@pytest.mark.parametrize(
    ("second", "shown"),
    [
        (None, None),
        (failed(with_status(404)), "first"),
        (failed(with_status(500)), "second"),
        (failed(OSError()), "second"),
    ],
)
def test_session_tries_the_usual_path_and_keeps_the_error_that_matters(
    second: CliError | None, shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the second URL is no endpoint either, the error is about the URL that was given."""
    first = failed(with_status(404))
    outcomes = [first, second]
    tried: list[Any] = []

    def connect(target: Target, body: object) -> int:
        tried.append(target.server)
        error = outcomes.pop(0)
        if error is not None:
            raise error
        return 5

    monkeypatch.setattr(_session, "connect_and_run", connect)
    data = io.BytesIO()
    target = Target(server="http://a", stderr=Screen(io.TextIOWrapper(data, "utf-8")))
    if second is None:
        assert run_session(target, NOTHING) == 5
    else:
        with pytest.raises(CliError) as caught:
            run_session(target, NOTHING)
        assert caught.value is (first if shown == "first" else second)
    assert tried == ["http://a", "http://a/mcp"]
    assert data.getvalue() == (
        b"mcp-trio: http://a is no MCP endpoint (HTTP status 404); trying http://a/mcp\n"
    )
