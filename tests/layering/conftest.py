"""The fixture with all files of the project."""

from __future__ import annotations

import pytest

from tests.layering.sources import Findings, project


@pytest.fixture(scope="session")
def sources() -> list[Findings]:
    """Return the findings of all files, which take seconds."""
    return project()
