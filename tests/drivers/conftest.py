"""Fixtures of the tests that run on both drivers."""

from __future__ import annotations

from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.trio_.conftest import _every_send_is_a_checkpoint  # noqa: F401
