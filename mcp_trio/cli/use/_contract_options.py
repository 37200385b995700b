"""The options of `mcp-trio inspect` for contracts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

__all__ = ["ContractOptions", "add_contract_options", "contract_options"]


@dataclass(frozen=True, kw_only=True)
class ContractOptions:
    """The options of a command that saves a contract, or compares with one.

    Args:
        save: the file to write, or None; with `--all` a directory.
        against: the file to compare with, or None; with `--all` a directory.
        every_revision: whether it has all revisions that the server speaks.
        resources: whether resources are part of it.
        allow_unclear: whether unclear changes are allowed.
        as_json: print one JSON document.
    """

    save: Path | None
    against: Path | None
    every_revision: bool
    resources: bool
    allow_unclear: bool
    as_json: bool


def add_contract_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of contracts."""
    group = parser.add_argument_group("contracts")
    group.add_argument(
        "--save",
        metavar="FILE",
        type=Path,
        help="write what the server offers into FILE, to be compared with later",
    )
    group.add_argument(
        "--against",
        metavar="FILE",
        type=Path,
        help="compare what the server offers with a saved FILE; the exit status is 1 if a change"
        " breaks its users, or may break them",
    )
    group.add_argument(
        "--all",
        action="store_true",
        help="each server of the configuration files, or of --config; FILE is a directory, with a"
        " file for each",
    )
    group.add_argument(
        "--every-revision",
        action="store_true",
        help="with --save: each revision of MCP that the server speaks, not only the newest",
    )
    group.add_argument(
        "--resources", action="store_true", help="resources are part of the contract, too"
    )
    group.add_argument(
        "--allow-unclear",
        action="store_true",
        help="with --against: don't fail because of a change that may break users or not",
    )


def contract_options(
    parser: argparse.ArgumentParser, found: argparse.Namespace
) -> ContractOptions | None:
    """Return the options of contracts, or None if there are none.

    Raises:
        SystemExit: argparse has printed an error: they don't fit each other.
    """
    uses = {"save": found.save, "against": found.against}
    needed = {
        "all": uses,
        "every_revision": {"save": found.save},
        "resources": uses,
        "allow_unclear": {"against": found.against},
    }
    for option, others in needed.items():
        if getattr(found, option) and not any(others.values()):
            names = " or ".join(f"--{name}" for name in others)
            parser.error(f"--{option.replace('_', '-')} is for contracts: it needs {names}")
    if found.every_revision and found.revision:
        parser.error("--every-revision and --revision exclude each other")
    if not any(uses.values()):
        return None
    return ContractOptions(
        save=found.save,
        against=found.against,
        every_revision=found.every_revision,
        resources=found.resources,
        allow_unclear=found.allow_unclear,
        as_json=found.json,
    )
