"""Adapters to libraries that do I/O, for every driver: stores in files and databases."""

from __future__ import annotations

from ._sqlite import SqliteTaskStore as SqliteTaskStore

__all__ = ["SqliteTaskStore"]
