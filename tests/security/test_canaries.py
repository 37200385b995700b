"""The plugin that searches output for secrets finds them in every output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.canaries import secrets_in

ROOT = Path(__file__).parents[2]
TESTS = """
import logging, os, subprocess, sys, warnings
import pytest

def test_print(): print("CANARY-1")
def test_stderr(): print("canary-2", file=sys.stderr)
def test_log(): logging.getLogger("mcp_trio").warning("the token canary-3")
def test_traceback():
    try:
        raise ValueError("canary-4")
    except ValueError:
        logging.getLogger("mcp_trio").exception("failed")
def test_debug(): logging.getLogger("mcp_trio.auth").debug("canary-9")
def test_child(): subprocess.run([sys.executable, "-c", "print('canary-5')"])
def test_descriptor(): os.write(2, b"canary-6")

@pytest.fixture
def loud():
    yield
    print("canary-7")
def test_afterwards(loud): pass

def test_silent(): assert "canary-8"
def test_harmless(): print("a token was refused")
"""


@pytest.mark.process
def test_canary_plugin_any_output_with_secret_fails_test(tmp_path: Path) -> None:
    """A child pytest leaks in seven tests; the report must not leak the secret again."""
    place = tmp_path / "test_login.py"  # its name is of a test of authorization
    place.write_text(TESTS)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.canaries", "-p", "no:cacheprovider",
            "-c", "/dev/null",
         "--rootdir", str(tmp_path), "-rA", str(place)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    passed = {
        line.rpartition("::")[2] for line in run.stdout.splitlines() if line.startswith("PASSED")
    }
    assert passed == {"test_silent", "test_harmless", "test_afterwards"}, run.stdout + run.stderr
    assert "1 error" in run.stdout  # `test_afterwards`, at its end
    assert "7 failed" in run.stdout
    # Each failure names the finding, without the secret itself.
    assert run.stdout.count("a secret was written") >= 8
    assert re.search(r"canary-\d", run.stdout, re.IGNORECASE) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nothing", []),
        ("my Canary sings", ["Canary"]),
        ("Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2ln", ["eyJhbGciOiJF"]),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.", ["eyJhbGciOiJu"]),
        ("grant_type=x&code_verifier=abc&resource=y", ["code_verifie"]),
        ("code_verifier=&access_token=", []),
        ("an access_token is needed", []),
    ],
)
def test_secrets_in_text_table(text: str, found: list[str]) -> None:
    assert secrets_in(text) == found
