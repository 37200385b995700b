"""For the tests of attacks: an internet, and a log of which nothing is left out."""

from __future__ import annotations

import gc
import logging
import ssl
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.security.internet import Internet, certificates, internet


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@pytest.fixture(autouse=True)
def _only_what_is_new_is_looked_at() -> Iterator[None]:
    """`texts_of_objects` asks the collector for all objects, of which there are too many in a run of all tests."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return certificates()


@pytest.fixture
async def world(
    tls: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Internet]:
    async with internet(tls, monkeypatch) as world:
        yield world
