"""`mcp-trio inspect --save` and `--against`: a server's contract as a file, and what has changed.

1. A contract is checked in the revisions that its file has, or in `--revision`. If the
   server's answer says that it doesn't speak one, that is a breaking change. A failure isn't.
2. If a list changes each time that it is read, there is no contract: exit status 4.
3. A file that exists and isn't a contract is never overwritten.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from mcp_core import ALL, RevisionRefused
from mcp_core.auth import AuthorizationFailed
from mcp_core.contract import (
    Contract,
    InvalidContract,
    OlderContract,
    compare_contracts,
    encode_contract,
    read_contract,
    worst_verdict,
)
from mcp_core.drivers import shorten_text
from mcp_core.urls import http_url
from mcp_trio._files import write_output
from mcp_trio.cli._errors import NO_CONNECTION, NOTHING_JUDGED, CliError, one_line
from mcp_trio.cli._screen import Screen, counted
from mcp_trio.cli._session import allow_undeclared, run_session
from mcp_trio.oracle._contract import ChangingLists, read_contract_of, read_scopes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from mcp_core.contract import ContractChange, ServerOffers, Verdict
    from mcp_core.types import Tool
    from mcp_trio._client import Client
    from mcp_trio.cli._session import Target

    from ._contract_options import ContractOptions

__all__ = [
    "BROKEN",
    "changes_document",
    "contract_status",
    "contracts_of_all",
    "handle_contract",
    "load_contract",
    "show_changes",
]

BROKEN: Final = 1
SUFFIX: Final = ".contract.json"
_NOT_IN_NAMES: Final = re.compile(r"[^\w-]+")
_MAX_SIZE: Final = 64 * 1024 * 1024  # bytes of a file
_MAX_TEXT: Final = 100  # characters of a text in a line
_STYLES: Final = {"breaking": "bold red", "unclear": "yellow", "compatible": "green"}
_ORDER: Final[tuple[Verdict, ...]] = ("breaking", "unclear", "compatible")


def handle_contract(target: Target, options: ContractOptions) -> int:
    """Compare and save a server's contract; return the exit status.

    Raises:
        CliError: a file or the server cannot be read, or there is nothing to compare.
    """
    saved = None if options.against is None else load_contract(options.against)
    if options.save is not None:
        _check_save(options.save, target.stderr)
    status, document = _handle(target, options, saved)
    if options.as_json:
        Screen(sys.stdout).write_json(document)
    return status


def contracts_of_all(targets: dict[str, Target], options: ContractOptions) -> int:
    """Do so for several servers, with a file for each in a directory; return the exit status.

    A server that cannot be read doesn't hide the others. Its error goes to stderr.
    """
    stderr = Screen(sys.stderr)
    statuses, documents = [], {}
    for name, file in _file_names(targets).items():
        mine = replace(
            options,
            save=None if options.save is None else options.save / file,
            against=None if options.against is None else options.against / file,
        )
        if not options.as_json:
            Screen(sys.stdout).write_line((one_line(name), "bold underline"))
        try:
            if options.save is not None:
                _make_directory(options.save)
            saved = None if mine.against is None else load_contract(mine.against)
            if mine.save is not None:
                _check_save(mine.save, stderr)
            status, documents[name] = _handle(targets[name], mine, saved)
        except CliError as exc:
            stderr.write_message(f"mcp-trio: {one_line(name)}: {exc}")
            status, documents[name] = exc.status, {"error": str(exc)}
        statuses.append(status)
    if options.as_json:
        Screen(sys.stdout).write_json({"servers": documents})
    return max(statuses, default=0)


def _file_names(names: Any) -> dict[str, str]:
    """Return the name of each server's file.

    Raises:
        CliError: two servers would have the same one.
    """
    found = {name: _NOT_IN_NAMES.sub("_", name) + SUFFIX for name in names}
    owners: dict[str, str] = {}
    for name, file in found.items():
        other = owners.setdefault(file.casefold(), name)
        if other != name:
            raise CliError(
                f"the servers {one_line(other)} and {one_line(name)} have one file {file}"
            )
    return found


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise CliError(f"--save {path}: {exc.strerror}; with --all it is a directory") from exc


def load_contract(path: Path) -> Contract:
    """Return the contract in a file.

    Raises:
        CliError: it cannot be read, or isn't one.
    """
    try:
        return _parse(path)
    except FileNotFoundError:
        raise CliError(
            f"there is no contract {path}; `mcp-trio inspect --save` writes one"
        ) from None
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}") from exc
    except InvalidContract as exc:
        raise CliError(f"{path}: {exc}") from exc


def _parse(path: Path) -> Contract:
    with path.open("rb") as file:
        data = file.read(_MAX_SIZE + 1)
    if len(data) > _MAX_SIZE:
        raise InvalidContract(f"it has more than {_MAX_SIZE >> 20} MiB")
    contract = read_contract(data)
    unknown = [each for each in contract.offers if each not in ALL]
    if unknown:
        raise InvalidContract(
            f"there is no revision {unknown[0]}; the revisions are {', '.join(ALL)}"
        )
    return contract


def _check_save(path: Path, stderr: Screen) -> None:
    """Check that nothing but a contract is overwritten.

    Raises:
        CliError: the file is something else.
    """
    if path.is_dir():
        raise CliError(f"--save {path}: it is a directory, which only --all takes")
    if path.exists() and not path.is_file():
        return  # a device or a pipe, such as /dev/stdout: to read it could wait forever
    try:
        _parse(path)
    except OlderContract:
        stderr.write_line(f"mcp-trio: {path} has an older form, and is written anew")
    except InvalidContract as exc:
        if path.stat().st_size:
            raise CliError(
                f"--save {path}: the file exists, and {exc}; remove it, or give another name"
            ) from exc
    except FileNotFoundError:
        pass
    except OSError as exc:
        raise CliError(f"--save {path}: {exc.strerror}") from exc


def _handle(
    target: Target, options: ContractOptions, saved: Contract | None
) -> tuple[int, dict[str, Any]]:
    """Compare and save a contract. Return the exit status, and the JSON document."""
    screen = Screen(sys.stdout)
    resources = options.resources
    if saved is not None:
        resources = resources or any("resources" in each.lists for each in saved.offers.values())
        saved = structs.replace(saved, offers=_wanted(saved.offers, target))
    found = _read(target, options, saved, resources=resources)
    document: dict[str, Any] = {"server": found.server, "revisions": list(found.offers)}
    status = 0
    if saved is not None:
        changes = compare_contracts(saved, found)
        status = contract_status(changes, allow_unclear=options.allow_unclear)
        document |= changes_document(changes)
        if not options.as_json:
            show_changes(screen, changes, saved.offers.keys() & found.offers.keys())
    if options.save is not None:
        try:
            write_output(options.save, encode_contract(found))
        except OSError as exc:
            raise CliError(f"--save {options.save}: {exc.strerror}") from exc
        document["saved"] = str(options.save)
        if not options.as_json:
            screen.write_line(f"saved {options.save}: {_summary(found)}")
    return status, document


def _read(
    target: Target, options: ContractOptions, saved: Contract | None, *, resources: bool
) -> Contract:
    """Return the server's contract, in the revisions that are wanted and that it speaks.

    Raises:
        CliError: it cannot be connected to, or read.
    """
    if saved is None:
        newest = _read_revision(target, resources)
        if not options.every_revision:
            return newest
        wanted = list(ALL[ALL.index(next(iter(newest.offers))) + 1 :])  # newer ones were offered
    else:
        wanted = list(saved.offers)
        newest = None
    found = {} if newest is None else {ALL.index(next(iter(newest.offers))): newest}
    for revision in wanted:
        one = replace(target, versions=(revision,))
        try:
            found[ALL.index(revision)] = _read_revision(one, resources)
        except CliError as exc:
            if exc.status != NO_CONNECTION:
                raise
            if isinstance(exc.__cause__, RevisionRefused):
                continue
            # Does it speak only older ones, or is there no server?
            agreed = _read_revision(target, resources)
            if ALL.index(next(iter(agreed.offers))) <= ALL.index(revision):
                raise
    if not found:
        return _read_revision(target, resources)
    contracts = [found[index] for index in sorted(found)]
    return Contract(
        server=contracts[0].server,
        scopes=contracts[0].scopes,
        offers={name: each for contract in contracts for name, each in contract.offers.items()},
    )


def _wanted(offers: dict[str, ServerOffers], target: Target) -> dict[str, ServerOffers]:
    """Return what a file has of the revisions that may be spoken.

    Raises:
        CliError: the file has other revisions only.
    """
    found = {name: each for name, each in offers.items() if name in target.versions}
    if not found:
        raise CliError(f"the contract has no revision {target.versions[0]}: leave --revision out")
    return found


def _read_revision(target: Target, resources: bool) -> Contract:
    """Connect, and return the contract in the revision that was agreed on."""
    found: list[Contract] = []

    async def body(client: Client) -> int:
        capabilities = client.peer.capabilities
        undeclared = allow_undeclared(client, "tools", "resources", "prompts")
        problems: list[str] = []
        has_listed = False

        async def list_tools() -> list[Tool]:
            """List the tools that are allowed, and say once which aren't."""
            nonlocal has_listed
            if has_listed and target.configured is not None:
                tools = await client.list_tools(timeout=target.timeout, problems=problems)
                return target.configured.allowed_tools(tools)
            has_listed = True
            return await target.list_tools(client, target.timeout, problems)

        try:
            contract = await read_contract_of(
                client,
                capabilities=capabilities,
                resources=resources,
                undeclared=undeclared,
                list_tools=list_tools,
                timeout=target.timeout,
                problems=problems,
            )
        except (ChangingLists, InvalidContract) as exc:
            raise CliError(str(exc), NOTHING_JUDGED) from exc
        for problem in dict.fromkeys(problems):
            target.stderr.write_line(f"mcp-trio: not in the contract: {problem}")
        found.append(structs.replace(contract, scopes=await _read_scopes(target)))
        return 0

    status = run_session(target, body)
    if not found:
        raise SystemExit(status)  # Ctrl+C
    return found[0]


async def _read_scopes(target: Target) -> tuple[str, ...] | None:
    """Return the scopes in the metadata of a server at a URL; None if they cannot be known."""
    if not isinstance(target.server, str) or "$" in target.server:
        return None
    try:
        return await read_scopes(http_url(target.server))
    except AuthorizationFailed as exc:
        target.stderr.write_line(f"mcp-trio: no scopes in the contract: {exc}")
        return None


def contract_status(changes: Sequence[ContractChange], *, allow_unclear: bool) -> int:
    """Return the exit status of a comparison."""
    verdict = worst_verdict(changes)
    return BROKEN if verdict == "breaking" or (verdict == "unclear" and not allow_unclear) else 0


def _merged(changes: Sequence[ContractChange]) -> list[tuple[ContractChange, list[str]]]:
    """Return the changes, the worst first, each with the revisions in which it is the same."""
    found: dict[ContractChange, list[str]] = {}
    for each in changes:
        key = structs.replace(each, revision="")
        found.setdefault(key, []).append(each.revision)
    return sorted(found.items(), key=lambda pair: _ORDER.index(pair[0].verdict))


def changes_document(changes: Sequence[ContractChange]) -> dict[str, Any]:
    """Return the changes as members of a JSON document, the worst first."""
    return {
        "verdict": worst_verdict(changes),
        "changes": [
            {
                "verdict": each.verdict,
                "what": each.what,
                **({"place": each.place} if each.place else {}),
                "change": each.sentence,
                **({"example": each.example} if each.example else {}),
                **({"old": each.old} if each.old is not None else {}),
                **({"new": each.new} if each.new is not None else {}),
                "revisions": [name for name in revisions if name],
            }
            for each, revisions in _merged(changes)
        ],
    }


def show_changes(
    screen: Screen, changes: Sequence[ContractChange], compared: AbstractSet[str]
) -> None:
    """Print the changes, the worst first, and how many there are.

    `compared` has the revisions that both contracts have: a change that isn't in all names its own.
    """
    for each, revisions in _merged(changes):
        # Neither scopes nor a revision that is gone are in one of them.
        only = f" ({', '.join(revisions)})" if set(revisions) < compared else ""
        place = f", {each.place}" if each.place else ""
        screen.write_line(
            (f"{each.verdict:12}", _STYLES[each.verdict]),
            one_line(f"{each.what}{place}: {each.sentence}{only}"),
        )
        if each.example:
            screen.write_line(f"{'':12}  such as {_short(each.example)}")
        if each.old is not None or each.new is not None:
            old, new = (
                "none" if text is None else f'"{_short(text)}"' for text in (each.old, each.new)
            )
            screen.write_line(f"{'':12}  {old} → {new}")
    counts = Counter(each.verdict for each, _ in _merged(changes))
    numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict])
    screen.write_line(f"changes: {numbers}" if numbers else "no changes")


def _short(text: str) -> str:
    return one_line(shorten_text(text, _MAX_TEXT))


def _summary(contract: Contract) -> str:
    first = next(iter(contract.offers.values()))
    nouns = {"tools": "tool", "prompts": "prompt", "resourceTemplates": "resource template"}
    if "resources" in first.lists:
        nouns["resources"] = "resource"
    counts = [counted(len(first.lists.get(name, ())), noun) for name, noun in nouns.items()]
    revisions = f"revision{'s' if len(contract.offers) > 1 else ''} {', '.join(contract.offers)}"
    return f"{', '.join(counts)}, {revisions}"
