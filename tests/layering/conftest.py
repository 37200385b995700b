"""The fixture with all files of the project."""

from __future__ import annotations

import pytest

from tests.layering.sources import Findings, project


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the test that happens to be the first with all files the time to read them."""
    for item in items:
        if "sources" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def sources() -> list[Findings]:
    """Return the findings of all files, which take seconds."""
    return project()
