"""Fixtures for the attack tests: a fake internet, and a log at level DEBUG."""

from __future__ import annotations

import gc
import logging
import ssl
from collections.abc import AsyncIterator

import pytest

from tests.security.internet import Internet, certificates, internet


@pytest.fixture(autouse=True)
def _log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@pytest.fixture(autouse=True)
def _ignore_older_objects() -> None:
    """Hide older objects from `texts_of_objects`.

    It reads all objects of the collector, of which a full test run has too many.
    """
    gc.freeze()


@pytest.fixture(scope="session")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return certificates()


@pytest.fixture
async def world(
    tls: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Internet]:
    async with internet(tls, monkeypatch) as world:
        yield world
