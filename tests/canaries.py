"""Nothing secret in what a run of the tests writes: a pytest plugin that reads all of it.

Tests that have to do with authorization give out secrets that can be told from everything else: texts with `canary` in them, whatever
its case. If one is in what a test, the library or a child process has written to stdout, to stderr or to the log, the test has failed,
and so has one that wrote a signed token or a secret field of a form. Of tests that are about authorization every line of the log counts,
also of the level DEBUG.
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
    """What in `text` is, or looks like, a secret: the beginning of each."""
    return [found.group()[:12] for found in _SECRET.finditer(text)]


@pytest.fixture(autouse=True)
def _every_line_of_the_log_counts(request: pytest.FixtureRequest) -> None:
    if _ABOUT_AUTHORIZATION.search(request.path.as_posix()):
        request.getfixturevalue("caplog").set_level(logging.DEBUG, "mcp_trio")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    shown = [
        f"{found}... in the {name.lower()}"
        for name, text in report.sections
        if name.endswith(call.when)  # those of before were looked at before
        for found in secrets_in(text)
    ]
    if shown and report.outcome != "failed":
        report.outcome = "failed"
        report.longrepr = "\n".join(["a secret was written:", *dict.fromkeys(shown)])
        # It must not be written once more.
        report.sections = []
    return report
