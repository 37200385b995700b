"""Change one member of a TOML text, and leave its other lines as they are.

1. Reading needs the standard library only. Writing needs tomlkit, which keeps comments, order and
   white space; only this module imports it, on first use.
2. A change is proved before it is returned: the text is read again and compared with what was
   meant, and all old lines outside the changed table must still be there.

Source: TOML 1.0.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

from mcp_core._nesting import depth_exceeds
from mcp_core.host._errors import ConfigFileError

from ._toml_places import find_toml_statements

__all__ = [
    "read_toml",
    "require_tomlkit",
    "set_toml_flag",
    "set_toml_members",
    "unchangeable_error",
]

_TOO_DEEP: Final = "arrays or tables are nested too deeply"
_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def require_tomlkit() -> None:
    """Import tomlkit. Call it before the user is asked to agree to a change.

    Raises:
        ImportError: tomlkit isn't installed.
    """
    try:
        import tomlkit  # noqa: F401
    except ImportError as exc:
        problem = "changing a TOML file needs tomlkit: pip install 'mcp-trio[config]'"
        raise ImportError(problem, name=exc.name) from exc


def read_toml(text: str) -> dict[str, Any]:
    """Return the value of a text.

    Raises:
        ConfigFileError: the text isn't TOML, or is nested more than 200 deep.
    """
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        problem = str(exc)
        place = _PLACE.search(problem)
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        column = int(place[2]) if place and place[2] else None
        problem = _PLACE.sub("", problem)
        raise ConfigFileError(line, problem[:1].lower() + problem[1:], column=column) from None
    except ValueError:  # Python limits the digits of a number
        raise ConfigFileError(1, "a number has too many digits") from None
    except RecursionError:
        raise ConfigFileError(1, _TOO_DEEP) from None
    if depth_exceeds(value):
        raise ConfigFileError(1, _TOO_DEEP)
    return value


def set_toml_members(text: str, path: Sequence[str], members: dict[str, Any]) -> str:
    """Return `text` with the table at `path` having exactly these members.

    Members that are equal already keep their text, and so do members of a table in them. A table
    that is missing is appended after its siblings.

    Args:
        text: the file. It may be empty.
        path: the names from the outermost table to the one that is set; at least one.
        members: strings, numbers, lists of them, and tables of them.

    Raises:
        ConfigFileError: the text isn't TOML, a value on the path isn't a table, or the table is
            written in a way that cannot be changed without changing other lines.
        ImportError: tomlkit isn't installed.
    """
    old = read_toml(text)
    require_tomlkit()
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    newline = "\r\n" if "\r\n" in text else "\n"
    try:
        document = tomlkit.parse(text)
        if tomlkit.dumps(document) != text:
            raise unchangeable_error(text, path)
        table: Any = document
        for depth, name in enumerate(path):
            if name not in table:
                table[name] = tomlkit.table(is_super_table=depth < len(path) - 1)
            table = table[name]
            if not hasattr(table, "get"):
                raise ConfigFileError(_line_of(text, name), "this is not a table")
        is_new = not table
        _set_members(table, members)
        if is_new:  # an empty line before the next table
            last = next((table[name] for name in members if isinstance(members[name], dict)), table)
            last.add(tomlkit.nl())
        new = tomlkit.dumps(document)
        if is_new and new.endswith("\n\n") and not text.endswith("\n\n"):
            new = new[:-1]
    except (TOMLKitError, AttributeError, LookupError, TypeError, ValueError):
        raise unchangeable_error(text, path) from None
    if newline == "\r\n":  # tomlkit ends its own lines with a line feed
        new = re.sub("\r?\n", "\r\n", new)
    if not _is_proved(text, new, _merge(old, path, members), path):
        raise unchangeable_error(text, path)
    return new


def set_toml_flag(text: str, path: Sequence[str], value: bool) -> str:
    """Return `text` with the key at `path` set to true or false.

    A new key is put behind the last one of its table. tomlkit would put it behind the comments that
    follow, which may be about the next table.

    Args:
        text: the file.
        path: the names from the outermost table to the key. The table of the key exists.
        value: the value.

    Raises:
        ConfigFileError: as `set_toml_members`.
        ImportError: as `set_toml_members`.
    """
    *outer, name = path
    old = read_toml(text)
    table: Any = old
    for each in outer:
        table = table[each]
    members = {**table, name: value}
    last = None
    if name not in table:
        for statement in find_toml_statements(text):
            if statement.is_header:
                if last is not None:
                    break
                last = statement if statement.path == tuple(outer) else None
            elif last is not None:
                last = statement
    if last is not None:
        line_start = text.rfind("\n", 0, last.start) + 1
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = "" if text[: last.end].endswith("\n") else newline
        line = f"{gap}{text[line_start : last.start]}{name} = {str(value).lower()}{newline}"
        new = text[: last.end] + line + text[last.end :]
        if _is_proved(text, new, _merge(old, outer, members), outer):
            return new
    return set_toml_members(text, outer, members)


def _set_members(table: Any, members: dict[str, Any]) -> None:
    for name in [name for name in table if name not in members]:
        del table[name]
    for name, value in members.items():
        if isinstance(value, dict) and hasattr(table.get(name), "get"):
            _set_members(table[name], value)
        elif name not in table or table[name] != value:
            table[name] = value


def _merge(old: dict[str, Any], path: Sequence[str], members: dict[str, Any]) -> dict[str, Any]:
    name, *rest = path
    inner = _merge(old.get(name, {}), rest, members) if rest else members
    return {**old, name: inner}


def _is_proved(old: str, new: str, meant: dict[str, Any], path: Sequence[str]) -> bool:
    """Return True if `new` has the meant value, and the lines of `old` outside of the table."""
    try:
        if tomllib.loads(new) != meant:
            return False
    except tomllib.TOMLDecodeError:
        return False
    kept = iter(new.splitlines())
    return all(line in kept for line in _lines_outside(old, path))


def _lines_outside(text: str, path: Sequence[str]) -> list[str]:
    """Return the lines that aren't in the table at `path`."""
    outside: list[str] = []
    header = ""
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            header = line
            is_inside = _starts_with(path, header)
        else:
            is_inside = _starts_with(path, header) or _starts_with(path, f"{header}\n{line}")
        if not is_inside and line.strip():
            outside.append(line)
    return outside


def _starts_with(path: Sequence[str], text: str) -> bool:
    """Return True if the first table or value of a text is at `path` or below it."""
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    for name in path:
        while isinstance(value, list) and value:
            value = value[-1]
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


def _line_of(text: str, name: str) -> int:
    """Return the first line with the name in it, or 1."""
    return next((n for n, line in enumerate(text.splitlines(), 1) if name in line), 1)


def unchangeable_error(text: str, path: Sequence[str]) -> ConfigFileError:
    """Return the error for a table that cannot be changed alone."""
    name = ".".join(path)
    return ConfigFileError(
        _line_of(text, path[0]),
        f"{name} cannot be changed without changing other lines; write it as a table [{name}], or"
        " change the file by hand",
    )
