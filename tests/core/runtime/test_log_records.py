"""Records of a logger: one line each, and tracebacks that cannot imitate a record."""

from __future__ import annotations

import io
import logging
from typing import Any
from uuid import uuid4

import pytest

from mcp_core.runtime import LogEscaper

FORGED = "x\n2026-01-01 ERROR root logged in\x1b[2J\u202e\x9b"
SHOWN = "x\\n2026-01-01 ERROR root logged in\\u001b[2J\\u202e\\u009b"


@pytest.fixture
def log() -> tuple[logging.Logger, io.StringIO]:
    logger = logging.getLogger(f"test.{uuid4()}")
    logger.propagate = False
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.addFilter(LogEscaper(logging.Formatter().formatException))
    return logger, written


class Named:
    def __repr__(self) -> str:
        return f"<{FORGED}>"


ARGUMENTS: list[tuple[str, tuple[object, ...], str]] = [
    ("from %s", (FORGED,), f"from {SHOWN}"),
    ("from %r", (FORGED,), f"from {FORGED!r}"),
    ("from %r", (Named(),), f"from <{SHOWN}>"),
    ("failed: %s", (ValueError(FORGED),), f"failed: {SHOWN}"),
    ("%d of %.1f, %s", (3, 0.5, None), "3 of 0.5, None"),
    ("100%", (), "100%"),
    ("%s", ("y" * 3000,), "y" * 2000 + "… (3000 characters)"),
]


@pytest.mark.parametrize(("template", "arguments", "line"), ARGUMENTS)
def test_log_record_arguments_are_escaped(
    log: tuple[logging.Logger, io.StringIO], template: str, arguments: tuple[Any, ...], line: str
) -> None:
    logger, written = log
    logger.warning(template, *arguments)
    assert written.getvalue() == f"WARNING {line}\n"


def test_log_record_template_stays_for_handlers_that_group_by_it(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, _ = log
    records: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    logger.addHandler(Keeping())
    logger.error("from %s", FORGED)
    assert records[0].msg == "from %s"


def test_log_record_traceback_is_indented_and_escaped(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    """A peer's text in an exception must not look like a record or control the terminal."""
    logger, written = log
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("failed")
    first, *others = written.getvalue().splitlines()
    assert first == "ERROR failed"
    assert others[0] == "  Traceback (most recent call last):"
    assert others[-2:] == [
        "  ValueError: x",
        "  2026-01-01 ERROR root logged in\\u001b[2J\\u202e\\u009b",
    ]
    assert all(line.startswith("  ") for line in others)


def test_log_record_without_current_exception_is_formatted(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, written = log
    logger.error("failed", exc_info=True)  # noqa: LOG014 - there is no exception
    assert written.getvalue() == "ERROR failed\nNoneType: None\n"
