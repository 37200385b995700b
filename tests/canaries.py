"""A pytest plugin that fails tests which write secrets.

Tests of authorization use secrets that can be recognised: texts that contain `canary`, in any case.
A test fails if such a text, a signed token or a secret form field is in what the test, the library
or a child process writes to stdout, stderr or the log. For tests of authorization the log includes
the level DEBUG.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Generator

import pytest

__all__ = ["secrets_in"]

_ABOUT_AUTHORIZATION = re.compile(
    r"tests/(?:security|core/auth)/|test_(?:authorization|guarded|login|fetch|storage|protected|access)\w*\.py"
)
_SECRET = re.compile(
    r"canary"
    r"|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"  # a signed token (RFC 7515): both parts begin with {"
    r"|\b(?:access_token|refresh_token|client_secret|client_assertion|code_verifier)=[^\s&]",
    re.IGNORECASE,
)


def secrets_in(text: str) -> list[str]:
    """Return the beginning of each text that is, or looks like, a secret."""
    return [found.group()[:12] for found in _SECRET.finditer(text)]


# Not a fixture: to set up one more for each of all tests takes longer than many of them.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Log at the level DEBUG in tests of authorization."""
    if not _ABOUT_AUTHORIZATION.search(item.path.as_posix()):
        return (yield)
    logger = logging.getLogger("mcp_trio")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        return (yield)
    finally:
        logger.setLevel(before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    shown = [
        f"{found}... in the {name.lower()}"
        for name, text in report.sections
        if name.endswith(call.when)  # earlier sections were checked in their own phase
        for found in secrets_in(text)
    ]
    if shown and report.outcome != "failed":
        report.outcome = "failed"
        report.longrepr = "\n".join(["a secret was written:", *dict.fromkeys(shown)])
        # The report must not repeat the secret.
        report.sections = []
    return report
