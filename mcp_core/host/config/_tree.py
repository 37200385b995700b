"""The text of a configuration file as a value whose members have places."""

from __future__ import annotations

import abc
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mcp_core.host._errors import ConfigFileError
from mcp_core.host.edit._json_edit import JsonNode, JsonSyntax, parse_json
from mcp_core.host.edit._toml_edit import read_toml
from mcp_core.host.edit._toml_places import find_toml_places

from ._problems import ConfigPlace, ConfigProblem, InvalidConfig, member_text

__all__ = [
    "MAX_CONFIG_SIZE",
    "ConfigTree",
    "MemberPath",
    "ValueTree",
    "decode_file",
    "is_yaml",
    "parse_tree",
]

# Bytes. Files that people write have some KiB; `~/.claude.json`, which has more than servers, has a
# few MiB after years. Measured: a MiB of servers takes about a second to read, one of numbers five.
MAX_CONFIG_SIZE: Final = 4 * 1024 * 1024

MemberPath = Sequence[str | int]

_BYTE_ORDER_MARK: Final = "\ufeff"
_YAML_FILE: Final = re.compile(r"\.ya?ml$")
_YAML_CURE: Final = (
    "YAML is read with PyYAML, which isn't installed: pip install 'mcp-trio[config]'; or convert"
    " the file to JSON (`yq -o json . FILE > servers.json`) and use that"
)
_UTF_16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class ConfigTree(abc.ABC):
    """A parsed file: its value, and the places of its members.

    `value` is None if the file has nothing but white space and comments.
    """

    def __init__(self, text: str, file: str, value: Any) -> None:
        self.value = value
        self._file = file
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        if text.startswith(_BYTE_ORDER_MARK):
            self._line_starts[0] = 1

    def place(self, path: MemberPath = ()) -> ConfigPlace:
        """Return the place of a member, or of the nearest member around it that has one.

        `path` has the names and indexes from the outermost object to the member.
        """
        position = max(self._find(path), self._line_starts[0])
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return ConfigPlace(self._file, line, column, member_text(path))

    def repeated(self, path: MemberPath) -> Iterator[tuple[str, ConfigPlace]]:
        """Yield the names that an object has twice, with the second place.

        `path` leads to the object, as for `place`. TOML itself forbids such names.
        """
        return iter(())

    @abc.abstractmethod
    def _find(self, path: MemberPath) -> int:
        """Return the position of the member at `path`, or of the nearest one around it."""


class ValueTree(ConfigTree):
    """A value that a program gives in place of a file. Its members have no positions."""

    def __init__(self, value: Any) -> None:
        super().__init__("", "", value)

    def _find(self, path: MemberPath) -> int:
        return 0


class _JsonTree(ConfigTree):
    def __init__(self, text: str, file: str, root: JsonNode | None) -> None:
        super().__init__(text, file, None if root is None else root.value)
        self._root = root

    def repeated(self, path: MemberPath) -> Iterator[tuple[str, ConfigPlace]]:
        node = self._walk(path)[1]
        for name, position in node.repeated.items() if node is not None else ():
            line = bisect_right(self._line_starts, position)
            column = position - self._line_starts[line - 1] + 1
            yield name, ConfigPlace(self._file, line, column, member_text([*path, name]))

    def _find(self, path: MemberPath) -> int:
        return self._walk(path)[0]

    def _walk(self, path: MemberPath) -> tuple[int, JsonNode | None]:
        """Return the position at the end of a path, and the value there, if there is one."""
        node = self._root
        if node is None:
            return 0, None
        position = node.start
        for part in path:
            if isinstance(part, int):
                if part >= len(node.items):
                    return position, None
                node = node.items[part]
                position = node.start
            else:
                member = node.members.get(part)
                if member is None:
                    return position, None
                position, node = member
        return position, node


class _TomlTree(ConfigTree):
    def __init__(self, text: str, file: str, value: dict[str, Any]) -> None:
        super().__init__(text, file, value or None)
        self._places = find_toml_places(text)

    def _find(self, path: MemberPath) -> int:
        names = tuple(str(part) for part in path)
        for depth in range(len(names), 0, -1):
            position = self._places.get(names[:depth])
            if position is not None:
                return position
        return 0


def parse_tree(
    data: bytes | str, *, file: str, syntax: JsonSyntax | None, max_size: int
) -> ConfigTree:
    """Return the value of a file with the places of its members.

    Args:
        data: the file's content.
        file: its path, for places. One with a YAML file's name may be JSON or YAML.
        syntax: the JSON of the file; None for TOML.
        max_size: the largest size, in bytes; in characters for a text.

    Raises:
        InvalidConfig: the file is too large, isn't UTF-8, or isn't JSON, YAML or TOML. Or it is
            YAML, and PyYAML isn't installed.
    """
    if len(data) > max_size:
        problem = f"the file is larger than {max_size / (1 << 20):g} MiB"
        raise InvalidConfig([ConfigProblem(ConfigPlace(file, 1, 1), problem)])
    text = data if isinstance(data, str) else decode_file(data, file)
    try:
        if syntax is None:
            return _TomlTree(text, file, read_toml(text))
        try:
            return _JsonTree(text, file, parse_json(text, syntax))
        except ConfigFileError:
            if not is_yaml(file):
                raise
        return _JsonTree(text, file, _read_yaml(text))
    except ConfigFileError as exc:
        place = ConfigPlace(file, exc.line, exc.column or 1)
        raise InvalidConfig([ConfigProblem(place, exc.problem)]) from None


def is_yaml(file: str) -> bool:
    """Return True if a file's name is one of YAML."""
    return _YAML_FILE.search(file) is not None


def _read_yaml(text: str) -> JsonNode | None:
    from ._yaml import MAX_YAML_SIZE, parse_yaml  # on first use: few files are YAML

    if len(text) > MAX_YAML_SIZE:
        raise ConfigFileError(1, f"the YAML is larger than {MAX_YAML_SIZE >> 10} KiB")
    try:
        return parse_yaml(text)
    except ImportError:
        raise ConfigFileError(1, _YAML_CURE) from None


def decode_file(data: bytes, file: str) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        InvalidConfig: it isn't UTF-8. The problem's place is the first wrong byte.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        before = data[: exc.start]
        line = before.count(b"\n") + 1
        start = before.rfind(b"\n") + 1
        column = len(before[start:].decode()) + 1
        problem = "the file is not UTF-8"
        if data.startswith(_UTF_16_MARKS):
            problem += ", but UTF-16: save it as UTF-8"
        raise InvalidConfig([ConfigProblem(ConfigPlace(file, line, column), problem)]) from None
