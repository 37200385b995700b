"""Contracts: what users of a server depend on, and the file that has it.

What changes without meaning is left out: the server's version, `_meta`, cursors, `lastModified`,
`size` and the times of a cache. Lists are sorted by their key. So equal contracts are equal files,
and a version control system shows what has changed.

A contract may have several revisions of the protocol. The file has what they share once, and for
each revision what only it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct

from mcp_core._nesting import depth_exceeds

__all__ = [
    "CONTRACT_FORM",
    "Contract",
    "InvalidContract",
    "OlderContract",
    "ServerOffers",
    "encode_contract",
    "offers_of_lists",
    "read_contract",
]

# The form of the file. It changes with each change of its members, or of what is left out.
CONTRACT_FORM: Final = 1
# The lists, and the member by which an entry is known.
KEYS: Final = {
    "tools": "name",
    "prompts": "name",
    "resourceTemplates": "uriTemplate",
    "resources": "uri",
}
_FORM: Final = "mcpContract"
_MAX_NAMES, _MAX_SHOWN = 5, 80  # names of members in an error, and characters of each
_TOO_DEEP: Final = "an entry of {} is nested too deeply to be compared"
_LEFT_OUT: Final = ("_meta", "size")
_MEMBERS: Final = frozenset({_FORM, "server", "revisions", "scopes", "only"})
_OFFERED: Final = frozenset({"capabilities", "instructions", *KEYS})
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


class InvalidContract(ValueError):
    """A file that isn't a contract, or lists that cannot be one. The text has cause and cure."""


class OlderContract(InvalidContract):
    """A contract in an earlier form, which has to be saved again."""


class ServerOffers(Struct, frozen=True, kw_only=True):
    """The parts of a server that its users depend on, in one revision of the protocol.

    Attributes:
        capabilities: their dotted names, such as `tools.listChanged`; None if they aren't known.
        instructions: the server's instructions, "" without any.
        lists: by their names in the protocol, such as `resourceTemplates`, the entries as decoded
            JSON, sorted. A list that isn't known is missing.
    """

    capabilities: tuple[str, ...] | None = None
    instructions: str = ""
    lists: dict[str, list[dict[str, Any]]] = {}


class Contract(Struct, frozen=True, kw_only=True):
    """A server's contract.

    Attributes:
        server: the server's name, "" if it isn't known.
        offers: what it offers, by revision.
        scopes: the scopes in its metadata as a protected resource (RFC 9728), () if it publishes
            none; None if they aren't known.
    """

    server: str = ""
    offers: dict[str, ServerOffers] = {}
    scopes: tuple[str, ...] | None = None


def offers_of_lists(
    lists: Mapping[str, Iterable[Any]],
    *,
    capabilities: Any = None,
    instructions: str | None = None,
) -> ServerOffers:
    """Return what a server offers, without what isn't part of a contract.

    Args:
        lists: by their names in the protocol, the entries as types of `mcp_core.types` or decoded
            JSON. Entries without a key are left out.
        capabilities: as a type or decoded JSON, or None if they aren't known.
        instructions: the server's instructions.

    Raises:
        InvalidContract: an entry is nested more than 200 deep.
    """
    known = None if capabilities is None else msgspec.to_builtins(capabilities)
    return ServerOffers(
        capabilities=None if known is None else tuple(sorted(_capability_names(known, ""))),
        instructions=instructions or "",
        lists={
            name: _sorted(name, filter(None, (_entry(name, each) for each in entries)))
            for name, entries in lists.items()
        },
    )


def _entry(kind: str, entry: Any) -> dict[str, Any] | None:
    try:
        found = msgspec.to_builtins(entry)
    except RecursionError:
        raise InvalidContract(_TOO_DEEP.format(kind)) from None
    if depth_exceeds(found):
        raise InvalidContract(_TOO_DEEP.format(kind))
    if not isinstance(found, dict) or not isinstance(found.get(KEYS[kind]), str):
        return None
    kept = {key: value for key, value in found.items() if key not in _LEFT_OUT}
    annotations = kept.get("annotations")
    if isinstance(annotations, dict) and "lastModified" in annotations:
        kept["annotations"] = {k: v for k, v in annotations.items() if k != "lastModified"}
        if not kept["annotations"]:
            del kept["annotations"]
    return kept


def _sorted(kind: str, entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    key = KEYS[kind]
    return sorted(entries, key=lambda entry: (entry[key], _encode_sorted(entry)))


def _capability_names(value: Any, prefix: str) -> Iterable[str]:
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if inner is not False and inner is not None:
            name = f"{prefix}{key}"
            yield name
            if prefix.count(".") < 4:
                yield from _capability_names(inner, f"{name}.")


def encode_contract(contract: Contract) -> bytes:
    """Return a contract's file: JSON in UTF-8, indented, with sorted members.

    Args:
        contract: the contract, of at least one revision.
    """
    offers = list(contract.offers.values())
    document: dict[str, Any] = {_FORM: CONTRACT_FORM, "server": contract.server}
    document["revisions"] = list(contract.offers)
    if contract.scopes is not None:
        document["scopes"] = list(contract.scopes)
    common = _common([_parts(each) for each in offers])
    document |= _document(common)
    only = {
        revision: _document(_without(_parts(each), common))
        for revision, each in contract.offers.items()
    }
    document |= (
        {"only": kept} if (kept := {key: each for key, each in only.items() if each}) else {}
    )
    ordered = {key: msgspec.json.decode(_encode_sorted(each)) for key, each in document.items()}
    return msgspec.json.format(msgspec.json.encode(ordered), indent=2) + b"\n"


# What a server offers as sets of encoded parts, by member. A list that is known is there, even if
# it is empty.
_Parts = dict[str, dict[bytes, Any]]


def _parts(offers: ServerOffers) -> _Parts:
    found: _Parts = {}
    if offers.capabilities is not None:
        found["capabilities"] = {name.encode(): name for name in offers.capabilities}
    if offers.instructions:
        text = offers.instructions
        found["instructions"] = {text.encode(): text}
    for name, entries in offers.lists.items():
        found[name] = {_encode_sorted(each): each for each in entries}
    return found


def _common(parts: Sequence[_Parts]) -> _Parts:
    first, *others = parts
    return {
        name: {
            key: value for key, value in mine.items() if all(key in each[name] for each in others)
        }
        for name, mine in first.items()
        if all(name in each for each in others)
    }


def _without(parts: _Parts, common: _Parts) -> _Parts:
    found = {}
    for name, mine in parts.items():
        rest = {key: value for key, value in mine.items() if key not in common.get(name, {})}
        if rest or name not in common:
            found[name] = rest
    return found


def _document(parts: _Parts) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, values in parts.items():
        if name == "instructions":
            found |= {name: next(iter(values.values()))} if values else {}
        else:
            found[name] = list(values.values())
    return found


def read_contract(data: bytes) -> Contract:
    """Return the contract of a file's bytes.

    Args:
        data: the bytes, also of a file that was edited.

    Raises:
        InvalidContract: they aren't a contract, or one of a newer form.
        OlderContract: they are one of an earlier form.
    """
    try:
        document = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except InvalidContract:
        raise
    except (ValueError, RecursionError) as exc:
        raise InvalidContract(f"it is not JSON: {exc}") from None
    if not isinstance(document, dict) or _FORM not in document:
        raise InvalidContract(
            f"it is not a contract: `mcp-trio inspect --save` writes one, with a member {_FORM!r}"
        )
    _check_form(document[_FORM])
    if depth_exceeds(document):
        raise InvalidContract("it is nested too deeply")
    try:
        _encode_sorted(document)
    except UnicodeEncodeError:
        raise InvalidContract(
            "a text in it has half of a surrogate pair, such as \\ud800: correct or remove it"
        ) from None
    more = _names(document.keys() - _MEMBERS - _OFFERED)
    _check(not more, f"no contract has the member {more}")
    revisions, server = document.get("revisions"), document.get("server", "")
    _check(isinstance(server, str), "server is not a text")
    _check(bool(revisions) and _is_texts(revisions), "revisions is not a list of revisions")
    assert isinstance(revisions, list)
    scopes, only = document.get("scopes"), document.get("only", {})
    _check(scopes is None or _is_texts(scopes), "scopes is not a list of texts")
    _check(
        isinstance(only, dict) and only.keys() <= set(revisions),
        "only is not an object with members for its revisions",
    )
    common = _read_offers(document, "")
    return Contract(
        server=server,
        offers={
            revision: _together(common, _read_offers(only.get(revision, {}), f"only.{revision}."))
            for revision in revisions
        },
        scopes=None if scopes is None else tuple(sorted(scopes)),
    )


def _check_form(form: Any) -> None:
    if not isinstance(form, int) or isinstance(form, bool):
        raise InvalidContract(f"{_FORM} is not a number")
    if form > CONTRACT_FORM:
        raise InvalidContract(
            f"its form {form} is newer than {CONTRACT_FORM}, which this version of mcp-trio reads:"
            " update mcp-trio"
        )
    if form < CONTRACT_FORM:
        raise OlderContract(
            f"its form {form} is older than {CONTRACT_FORM}: check the server with the version of"
            " mcp-trio that has written it, or save it again with `mcp-trio inspect --save`"
        )


def _read_offers(document: Any, place: str) -> ServerOffers:
    _check(isinstance(document, dict), f"{place.rstrip('.')} is not an object")
    if place:
        more = _names(document.keys() - _OFFERED)
        _check(not more, f"{place.rstrip('.')} cannot have the member {more}")
    capabilities, instructions = document.get("capabilities"), document.get("instructions", "")
    _check(
        capabilities is None or _is_texts(capabilities),
        f"{place}capabilities is not a list of texts",
    )
    _check(isinstance(instructions, str), f"{place}instructions is not a text")
    lists = {}
    for name, key in KEYS.items():
        if name not in document:
            continue
        entries = document[name]
        _check(isinstance(entries, list), f"{place}{name} is not a list")
        for number, each in enumerate(entries):
            _check(
                isinstance(each, dict) and isinstance(each.get(key), str),
                f"{place}{name}[{number}] is not an object that has a {key}",
            )
        lists[name] = [each for each in (_entry(name, entry) for entry in entries) if each]
    known = None if capabilities is None else tuple(capabilities)
    return ServerOffers(capabilities=known, instructions=instructions, lists=lists)


def _together(common: ServerOffers, only: ServerOffers) -> ServerOffers:
    capabilities = None
    if common.capabilities is not None or only.capabilities is not None:
        both = {*(common.capabilities or ()), *(only.capabilities or ())}
        capabilities = tuple(sorted(both))
    lists = {
        name: _sorted(name, [*common.lists.get(name, ()), *only.lists.get(name, ())])
        for name in KEYS
        if name in common.lists or name in only.lists
    }
    instructions = common.instructions or only.instructions
    return ServerOffers(capabilities=capabilities, instructions=instructions, lists=lists)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _names(members: Iterable[str]) -> str:
    """Return the first of some members' names, for an error; "" without any."""
    return ", ".join(repr(name[:_MAX_SHOWN]) for name in sorted(members)[:_MAX_NAMES])


def _check(condition: bool, problem: str) -> None:
    if not condition:
        raise InvalidContract(f"it is not a contract, or was damaged: {problem}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidContract("an object in it has the same member twice: keep one of them")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidContract(f"it is not JSON: {name} is not a number there")
