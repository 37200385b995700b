"""Change one member of a TOML text, and leave its other lines as they are.

1. Reading needs the standard library only. Writing needs tomlkit, which keeps comments, order and
   white space; only this module imports it, on first use.
2. A change is proved before it is returned: the text is read again and compared with what was
   meant, and all old lines must still be there, but for those of the changed table.

Source: TOML 1.0.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

from mcp_core.host._errors import ConfigFileError

__all__ = ["read_toml", "require_tomlkit", "set_toml_members"]

_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def require_tomlkit() -> None:
    """Import tomlkit. Call it before the user is asked to agree to a change.

    Raises:
        ImportError: tomlkit is not installed.
    """
    try:
        import tomlkit  # noqa: F401
    except ImportError as exc:
        problem = "changing a TOML file needs tomlkit: pip install 'mcp-trio[config]'"
        raise ImportError(problem, name=exc.name) from exc


def read_toml(text: str) -> dict[str, Any]:
    """Return the value of a text.

    Raises:
        ConfigFileError: the text is not TOML.
    """
    try:
        return tomllib.loads(text)
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
        raise ConfigFileError(1, "arrays or tables are nested too deeply") from None


def set_toml_members(text: str, path: Sequence[str], members: dict[str, Any]) -> str:
    """Return `text` with the table at `path` having exactly these members.

    Members that are equal already keep their text, and so do members of a table in them. A table
    that is missing is appended after its siblings.

    Args:
        text: the file. It may be empty.
        path: the names from the outermost table to the one that is set; at least one.
        members: strings, numbers, lists of them, and tables of them.

    Raises:
        ConfigFileError: the text is not TOML, a value of the path is not a table, or the table
            is written in a way that cannot be changed without changing other lines.
        ImportError: tomlkit is not installed.
    """
    old = read_toml(text)
    require_tomlkit()
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    newline = "\r\n" if "\r\n" in text else "\n"
    try:
        document = tomlkit.parse(text)
        if tomlkit.dumps(document) != text:
            raise _unchangeable(text, path)
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
    except (TOMLKitError, AttributeError, TypeError, ValueError):
        raise _unchangeable(text, path) from None
    if newline == "\r\n":  # tomlkit ends its own lines with a line feed
        new = re.sub("\r?\n", "\r\n", new)
    if not _is_proved(text, new, _merge(old, path, members), path):
        raise _unchangeable(text, path)
    return new


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
    """Return the lines that are not in the table at `path`."""
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


def _unchangeable(text: str, path: Sequence[str]) -> ConfigFileError:
    name = ".".join(path)
    return ConfigFileError(
        _line_of(text, path[0]),
        f"{name} cannot be set without changing other lines; write it as a table [{name}], or"
        " change the file by hand",
    )
