"""Errors about names, and the limits of the command that are numbers."""

from __future__ import annotations

from importlib import import_module

import pytest

from mcp_trio.cli import _errors
from mcp_trio.cli._errors import CliError, check_uri, is_uri, join_names, unknown_name


def test_error_is_misuse_by_default() -> None:
    assert CliError("no").status == 2
    assert (CliError("no", 4).status, str(CliError("no"))) == (4, "no")


def test_exit_statuses_are_the_ones_of_the_help() -> None:
    assert (_errors.SERVER_ERROR, _errors.MISUSE, _errors.NO_CONNECTION) == (1, 2, 3)
    assert (_errors.NOTHING_JUDGED, _errors.INTERNAL_ERROR, _errors.INTERRUPTED) == (4, 70, 130)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, ""),
        (2, "0, 1"),
        (30, ", ".join(map(str, range(30)))),
        (31, ", ".join(map(str, range(30))) + " and 1 more"),
    ],
)
def test_names_beyond_thirty_are_counted(count: int, shown: str) -> None:
    assert join_names([str(number) for number in range(count)]) == shown


@pytest.mark.parametrize(("length", "is_whole"), [(200, True), (201, False)])
def test_name_is_shown_up_to_200_characters(length: int, is_whole: bool) -> None:
    shown = join_names(["n" * length])
    assert (shown == "n" * length) is is_whole
    assert shown.count("n") <= 200


def test_name_is_one_line_and_suggested_if_it_is_similar() -> None:
    assert join_names(["a\nb\u200d", "c"], " or ") == "a\\nb\\u200d or c"
    found = unknown_name("tool", "lok", ["look", "other"])
    assert str(found) == (
        "the server has no tool lok; its tools are look, other. Did you mean look?"
    )
    assert str(unknown_name("tool", "zz", ["look"])).endswith("its tools are look.")


@pytest.mark.parametrize(
    ("word", "is_one"),
    [
        ("a:b", True),
        ("A+1.-:b", True),
        ("a:", True),
        ("1a:b", False),
        (":b", False),
        ("a b:c", False),
        ("ab", False),
    ],
)
def test_uri_begins_with_a_scheme(word: str, is_one: bool) -> None:
    assert is_uri(word) is is_one
    if is_one:
        check_uri(word)
    else:
        with pytest.raises(CliError, match="is not a URI"):
            check_uri(word)


# What the help, a docstring or the documentation says in seconds, characters or bytes, or what
# keeps a server from filling a screen or a disk.
LIMITS = [
    ("_session", "DEFAULT_TIMEOUT", 60),
    ("_session", "UNDECLARED_TIMEOUT", 5),
    ("_session", "_NOTICE_AFTER", 3),
    ("_session", "_MAX_NAME", 200),
    ("_forms", "_MAX_TEXT", 4_000),
    ("_forms", "_MAX_LINES", 40),
    ("_forms", "_MAX_TITLE", 200),
    ("_forms", "_MAX_CHOICES", 100),
    ("_arguments", "_MAX_EXAMPLES", 10),
    ("_arguments", "_MAX_NESTING", 4),
    ("_arguments", "_MAX_REFERENCES", 16),
    ("_elicitation_answers", "_MAX_MESSAGE", 1_000),
    ("_progress", "_MAX_MESSAGE", 200),
    ("_progress", "_MAX_NUMBER", 1e15),
    ("_config_update", "_MAX_ATTEMPTS", 3),
    ("_terminal", "_MAX_LINE", 4096),
    ("_unblocked_stderr", "_POLL_INTERVAL", 0.02),
    ("use._contract", "_MAX_SIZE", 64 << 20),
    ("use._contract", "_MAX_TEXT", 100),
    ("use._doctor", "_MAX_TEXT", 4_000),
    ("use._doctor", "_MAX_LINE", 100),
    ("use._doctor", "_MAX_ADDRESSES", 4),
    ("use._doctor", "_CONNECT_TIMEOUT", 10),
    ("use._doctor", "_LOGIN_TIMEOUT", 60),
    ("use._demo", "_TIMEOUT", 20),
    ("use._following", "_CANCEL_TIMEOUT", 2),
    ("use._following", "UNKNOWN_TASK", -32602),
    ("use._inspect", "_MAX_WIDTH", 100),
    ("use._inspect", "_MAX_COLUMN", 40),
    ("use._login", "_LOGIN_TIMEOUT", 360),
    ("use._task_line", "_ID_LENGTH", 8),
    ("use._task_line", "_MAX_MESSAGE", 200),
    ("use._tasks", "_MAX_MESSAGE", 1_000),
    ("state._handshakes", "_MAX_SIZE", 1 << 20),
    ("state._noted_tasks", "_MAX_SIZE", 16_384),
    ("state._noted_tasks", "_MAX_TASKS", 256),
    ("state._noted_tasks", "_LONGEST", 30 * 24 * 3600),
    ("run._install", "_ADD_TIMEOUT", 60),
    ("run._install", "_MAX_OUTPUT", 2_000),
    ("run._reload", "_INTERVAL", 0.5),
    ("run._reload", "_SETTLE_TIME", 0.05),
    ("run._reload", "_CLOCK_STEP", 10_000_000),
    ("run._reload", "_GRACE", (1.0, 2.0)),
    ("run._reload", "_LAST_RESPONSES", 2),
    ("run._reload_child", "_INTERVAL", 0.2),
]


@pytest.mark.parametrize(("module", "name", "limit"), LIMITS)
def test_limit_of_the_command_is_as_its_text_says(module: str, name: str, limit: object) -> None:
    assert getattr(import_module(f"mcp_trio.cli.{module}"), name) == limit
