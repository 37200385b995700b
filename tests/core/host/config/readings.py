"""The whole reading of each file in the tables of this folder, in `readings.txt`.

    python -m tests.core.host.config.readings

writes the file again. A change of the reader shows in it which fields, places and problems it
changes, also in files that the change isn't about: read that difference before you commit it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core.host import ConfigPlace, read_config
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.host import ConfigFile, ConfigProblem

__all__ = ["FileToRead", "files_to_read", "kept_readings", "reading_of", "text_of_reading"]

_FILE: Final = Path(__file__).with_name("readings.txt")


class FileToRead(NamedTuple):
    """A file of a table, by the table's name and its place there."""

    name: str
    file: str
    text: str


def files_to_read() -> list[FileToRead]:
    """Return the files of the tables."""
    from tests.core.host.config.examples import EXAMPLES
    from tests.core.host.config.test_beside import PLACES, ROWS, text_of
    from tests.core.host.config.test_read import RULES, SHAPES
    from tests.core.host.config.test_read_problems import PROBLEMS, UNKNOWN

    tables = {
        "example": [(each.file, each.text) for each in EXAMPLES],
        "problem": [(file, text) for file, text, _ in PROBLEMS],
        "unknown": [(file, text) for file, text, _ in UNKNOWN],
        "beside": [(PLACES[place][0], text_of(place, beside)) for place, beside, _ in ROWS],
        "shape": [("any.json", text) for text, _, _ in SHAPES],
        "rules": [
            ("opencode.json", json.dumps({"mcp": {server: {"command": ["x"]}}, **rules}))
            for server, rules, _ in RULES
        ],
    }
    return [
        FileToRead(f"{name} {n}", file, text)
        for name, rows in tables.items()
        for n, (file, text) in enumerate(rows)
    ]


def reading_of(read: FileToRead) -> str:
    """Return what the file has: its format, its inputs, servers and problems, in lines."""
    return text_of_reading(read_config(read.text, file=read.file))


def text_of_reading(found: ConfigFile) -> str:
    """Return what a file has, as `reading_of` does."""
    begin = [found.format, ".".join(found.servers_path), *(["has servers"] * found.has_servers)]
    lines = [f"  {', '.join(filter(None, begin))}"]
    for name, each in (*found.inputs.items(), *found.servers.items()):
        lines.append(f"  {type(each).__name__} {name}")
        lines += _fields(each)
    lines += [f"  broken: {name}" for name in sorted(found.broken)]
    lines += [f"  {_shown(problem)}" for problem in found.problems]
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def _fields(value: Any) -> Iterator[str]:
    """Yield the fields of a server or an input that aren't the default ones."""
    for each in fields(value):
        given = getattr(value, each.name)
        made = None if each.default_factory is MISSING else each.default_factory()
        if each.name != "name" and given != (made if each.default is MISSING else each.default):
            yield f"    {each.name}: {_text(given)}"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key!r}: {_text(each)}" for key, each in value.items())
    return str(value) if isinstance(value, ConfigPlace) else repr(value)


def _shown(problem: ConfigProblem) -> str:
    marks = [
        *([problem.server] if problem.server is not None else ()),
        *(["restricts"] * problem.restricts),
        *(["ignored"] * problem.ignored),
    ]
    return f"problem ({', '.join(marks)}): {problem}"


def kept_readings() -> dict[str, str]:
    """Return the readings in the file, by the names of what is read."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {each.name: reading_of(each) for each in files_to_read()})
