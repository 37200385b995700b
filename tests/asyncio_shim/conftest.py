"""No test of the asyncio driver may leave an error of asyncio in the log, or a resource warning."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from mcp_asyncio_shim import _stdio

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _asyncio_has_nothing_to_complain_of(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    # what is there already is not of this test, and looking through it takes longer than the test
    gc.freeze()
    yield
    gc.collect()  # tasks and transports complain when they are destroyed
    complaints = [
        record.getMessage() for record in caplog.get_records("call") if record.name == "asyncio"
    ]
    assert complaints == []


@pytest.fixture(params=["descriptors", "threads"])
def each_kind_of_pipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test twice: as on POSIX, and as on Windows."""
    monkeypatch.setattr(_stdio, "_HAS_POLLABLE_PIPES", request.param == "descriptors")
