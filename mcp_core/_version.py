"""The version of the distribution. The package metadata has the same."""

from __future__ import annotations

__version__ = "0.1.0"
