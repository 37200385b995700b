"""Texts that are kept in a file beside the tests, each below its name.

They are whole results, of which a test written by hand would check a part. A change shows in the
file what else it changes; each file has a program that writes it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["read_kept", "write_kept"]


def read_kept(path: Path) -> dict[str, str]:
    """Return the texts of a file by their names."""
    parts = path.read_text("utf-8").strip("\n").split("\n\n")
    return dict(part.split("\n", 1) for part in parts)


def write_kept(path: Path, texts: Mapping[str, str]) -> None:
    """Write texts, which have no empty line, below their names."""
    path.write_text("\n\n".join(f"{name}\n{text}" for name, text in texts.items()) + "\n", "utf-8")
