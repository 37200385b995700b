"""A server's contract as a test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core import ConnectFailed, escape_text
from mcp_core.contract import (
    Contract,
    ContractChange,
    InvalidContract,
    OlderContract,
    compare_contracts,
    encode_contract,
    read_contract,
)
from mcp_trio._connect import connect
from mcp_trio._files import write_output
from mcp_trio.oracle._contract import read_contract_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.registry import Server

__all__ = ["ContractBroken", "check_contract"]

_SHOWN: Final = 50  # changes in the text of a failure
_SHOWN_CHARACTERS: Final = 300  # of each


class ContractBroken(AssertionError):
    """The failure of a test whose server has changed so that it breaks, or may break, its users.

    Args:
        path: the contract's file.
        changes: the changes that break, or may break.

    Attributes:
        changes: the same as the argument.
    """

    def __init__(self, path: Path, changes: Sequence[ContractChange]) -> None:
        lines = [f"{path}: {len(changes)} changes break users of the server, or may break them:"]
        for each in changes[:_SHOWN]:
            place = f", {each.place}" if each.place else ""
            such = f", such as {each.example}" if each.example else ""
            text = f"{each.verdict} {each.what}{place}: {each.sentence}{such}"
            lines.append(f"  {escape_text(text[:_SHOWN_CHARACTERS])}")
        lines.append("if they are meant: pytest --mcp-update writes the contract anew")
        super().__init__("\n".join(lines))
        self.changes = list(changes)


async def check_contract(
    target: str | Server | Sequence[str | os.PathLike[str]],
    path: Path,
    *,
    update: bool = False,
    allow_unclear: bool = False,
    resources: bool = False,
    **options: Any,
) -> None:
    """Compare what a server offers with its contract, in the revisions that the file has.

    Args:
        target: as of `mcp_trio.connect`: a URL, the words of a command, or a `Server`.
        path: the contract's file, as `mcp-trio inspect --save` writes it.
        update: write it anew, and compare nothing. A new one has the newest common revision.
        allow_unclear: whether a change that may break users or not is no failure.
        resources: whether resources are part of the contract; they are in any case if the file has
            them.
        options: as of `mcp_trio.connect`.

    Raises:
        ContractBroken: a change breaks users of the server, or may break them.
        FileNotFoundError: there is no such file.
        InvalidContract: the file isn't a contract, or one of another form.
        ChangingLists: what the server offers changes while it is read.
        McpTrioError: the server cannot be connected to or read.
    """
    saved = _load(path, update=update)
    revisions = [None] if saved is None else list(saved.offers)
    if saved is not None:
        resources = resources or any("resources" in each.lists for each in saved.offers.values())
    found = [await _read(target, each, resources, options) for each in revisions]
    if not any(found):  # does it speak another revision, or is there no server?
        found = [await _read(target, None, resources, options)]
    contracts = [each for each in found if each is not None]
    contract = Contract(
        server=contracts[0].server,
        offers={name: each for one in contracts for name, each in one.offers.items()},
    )
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, encode_contract(contract))
        return
    assert saved is not None
    failing = ("breaking",) if allow_unclear else ("breaking", "unclear")
    changes = [each for each in compare_contracts(saved, contract) if each.verdict in failing]
    if changes:
        raise ContractBroken(path, changes)


def _load(path: Path, *, update: bool) -> Contract | None:
    try:
        return read_contract(path.read_bytes())
    except FileNotFoundError:
        if update:
            return None
        raise FileNotFoundError(
            f"there is no contract {path}: pytest --mcp-update writes it"
        ) from None
    except OlderContract:
        if update:
            return None
        raise
    except InvalidContract as exc:
        raise InvalidContract(f"{path}: {exc}") from None


async def _read(
    target: Any, revision: str | None, resources: bool, options: dict[str, Any]
) -> Contract | None:
    """Return the contract in a revision, or None if the server doesn't speak it."""
    mine = dict(options) if revision is None else {**options, "versions": (revision,)}
    try:
        async with connect(target, **mine) as client:
            return await read_contract_of(client, resources=resources)
    except ConnectFailed:
        if revision is None:
            raise
        return None
