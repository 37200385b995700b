"""A server's contract as a test."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from mcp_core import ALL, ConnectFailed, RevisionRefused, escape_text
from mcp_core.auth import AuthorizationFailed
from mcp_core.contract import (
    Contract,
    ContractChange,
    InvalidContract,
    OlderContract,
    compare_contracts,
    encode_contract,
    read_contract,
)
from mcp_core.urls import http_url
from mcp_trio._connect import connect
from mcp_trio._files import write_output
from mcp_trio.oracle._contract import read_contract_of, read_scopes

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
        allow_unclear: whether to pass in spite of a change that may break users or not.
        resources: whether resources are part of the contract; they are in any case if the file has
            them.
        options: as of `mcp_trio.connect`. `versions` names the revisions that are compared, by
            default all of the file.

    Raises:
        ContractBroken: a change breaks users of the server, or may break them.
        FileNotFoundError: there is no such file.
        InvalidContract: the file isn't a contract, has another form, or none of the `versions`.
        ChangingLists: what the server offers changes while it is read.
        McpTrioError: the server cannot be connected to or read.
    """
    saved = _load(path, update=update)
    versions = options.get("versions")
    if saved is None or (update and versions):
        revisions: list[str | None] = [None]
    else:
        kept = {
            name: each
            for name, each in saved.offers.items()
            if versions is None or name in versions
        }
        if not kept:
            raise InvalidContract(
                f"{path}: it has none of the revisions in versions=, but {', '.join(saved.offers)}:"
                " leave versions= out, or let pytest --mcp-update write it anew"
            )
        saved = structs.replace(saved, offers=kept)
        revisions = list(kept)
    if saved is not None:
        resources = resources or any("resources" in each.lists for each in saved.offers.values())
    found = [await _read(target, each, resources, options) for each in revisions]
    contracts = [each for each in found if each is not None]
    if not contracts:  # another revision is all that it speaks
        contracts = [await _connect_and_read(target, resources, options)]
    scopes = None if saved is None else saved.scopes
    if isinstance(target, str) and (update or scopes is not None):
        with suppress(AuthorizationFailed):  # they stay as they are
            scopes = await read_scopes(http_url(target))
    contract = Contract(
        server=contracts[0].server,
        offers={name: each for one in contracts for name, each in one.offers.items()},
        scopes=scopes,
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
    """Return the contract in a revision, or None if the server doesn't speak it.

    Raises:
        McpTrioError: it cannot be connected to or read, which says nothing about its revisions.
    """
    if revision is None:
        return await _connect_and_read(target, resources, options)
    try:
        return await _connect_and_read(target, resources, {**options, "versions": (revision,)})
    except RevisionRefused:
        return None
    except ConnectFailed:
        # Does it speak only older ones, or is there no server?
        agreed = await _connect_and_read(target, resources, options)
        if ALL.index(next(iter(agreed.offers))) <= ALL.index(revision):
            raise
        return None


async def _connect_and_read(target: Any, resources: bool, options: dict[str, Any]) -> Contract:
    async with connect(target, **options) as client:
        return await read_contract_of(client, resources=resources)
