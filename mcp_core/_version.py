"""The version of the distribution; the metadata of the package say the same."""

from __future__ import annotations

__version__ = "0.1.0"
