"""Read typed members of an object, and collect what is wrong with them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, time
from types import MappingProxyType
from typing import Any, Final

from mcp_core._nesting import depth_exceeds

from ._problems import ConfigPlace, ConfigProblem
from ._servers import no_members
from ._tree import ConfigTree, MemberPath

__all__ = ["MemberReader"]

# No program, header or path can have these characters: half of a surrogate pair has no UTF-8 form,
# and NUL ends a string of the operating system.
_IMPOSSIBLE: Final = re.compile("[\x00\ud800-\udfff]")
# Files that people write have about five levels. Programs that compare or encode a member add some.
_MAX_DEPTH: Final = 100
_MAX_BITS: Final = 64  # of an integer that stands for its text: Python writes longer ones slowly


class MemberReader:
    """The reader of one object of a file, member by member.

    A member that was read is no longer in `rest`; `wrong` has those with a problem. A method that
    finds a member missing, or of the wrong type, returns None or an empty value; the wrong type is
    added to the problems.

    Args:
        tree: the file.
        path: the object's path in it.
        value: the object.
        problems: where problems are added.
        server: the server that cannot be used if there is a problem, by name.
    """

    def __init__(
        self,
        tree: ConfigTree,
        path: MemberPath,
        value: dict[str, Any],
        problems: list[ConfigProblem],
        server: str | None = None,
    ) -> None:
        self._tree = tree
        self._path = tuple(path)
        self._problems = problems
        self._server = server
        self.rest = dict(value)
        self.wrong: set[str | int] = set()  # the members that have a problem
        # The places of texts that may have variables, which are expanded later.
        self.places: dict[tuple[str | int, ...], ConfigPlace] = {}
        self._check_repeated(())

    def add(self, problem: str, *members: str | int, restricts: bool = False) -> None:
        """Add a problem with the object, or with the member at the path `members` in it."""
        self.wrong.update(members[:1])
        place = self.place(*members)
        self._problems.append(ConfigProblem(place, problem, self._server, restricts))

    def place(self, *members: str | int) -> ConfigPlace:
        """Return the place of the member at the path `members` in the object."""
        return self._tree.place((*self._path, *members))

    def keep_place(self, *members: str | int) -> None:
        """Keep the place of the member at the path `members` in the object, in `places`."""
        self.places[members] = self.place(*members)

    def text(self, name: str) -> str | None:
        """Read a text that isn't empty."""
        value = self.rest.pop(name, None)
        if value is None:
            return None
        if value == "":
            self.add("is empty", name)
            return None
        return value if self._is_text(value, name) else None

    def texts(
        self, name: str, *, restricts: bool = False, has_numbers: bool = False
    ) -> tuple[str, ...]:
        """Read an array of texts.

        Args:
            name: the member.
            restricts: as for a `ConfigProblem`.
            has_numbers: whether a number stands for its text.
        """
        values = self.rest.pop(name, None)
        if values is None:
            return ()
        if has_numbers and isinstance(values, list):
            values = [_number_text(value) for value in values]
        if not isinstance(values, list):
            problem = f"must be an array of strings, not {_type_of(values)}"
            self.add(problem, name, restricts=restricts)
            return ()
        # All of them, so that each wrong one is reported.
        return tuple(
            [
                value
                for n, value in enumerate(values)
                if self._is_text(value, name, n, restricts=restricts)
            ]
        )

    def words(self, name: str) -> tuple[str, ...]:
        """Read a text that isn't empty, or an array of texts that begins with one."""
        value = self.rest.get(name)
        if isinstance(value, dict) and "path" in value:  # in older files of Zed
            del self.rest[name]
            problem = "must be a string, not an object: write its path as a string, and its args"
            self.add(f"{problem} and env beside it", name)
            return ()
        if not isinstance(value, list):
            text = self.text(name)
            return () if text is None else (text,)
        found = self.texts(name, has_numbers=True)
        if name not in self.wrong and (not found or not found[0]):
            self.add("is empty", name)
            return ()
        return found

    def text_map(self, name: str, *, has_nulls: bool = False) -> Mapping[str, str]:
        """Read an object whose members are texts, or numbers, which stand for their text.

        Args:
            name: the member.
            has_nulls: whether null stands for a member that isn't there.
        """
        values = self.rest.pop(name, None)
        if values is None:
            return no_members()
        if not isinstance(values, dict):
            self.add(f"must be an object of strings, not {_type_of(values)}", name)
            return no_members()
        self._check_repeated((name,))
        values = {
            key: _number_text(value)
            for key, value in values.items()
            if value is not None or not has_nulls
        }
        found = {key: value for key, value in values.items() if self._is_text(value, name, key)}
        for key in values:
            if not key or _IMPOSSIBLE.search(key):
                self.add("has a name that no variable or header can have", name, key)
        return MappingProxyType(found)

    def flag(self, name: str) -> bool | None:
        """Read true or false."""
        value = self.rest.pop(name, None)
        if value is None or isinstance(value, bool):
            return value
        self.add(f"must be true or false, not {_type_of(value)}", name, restricts=True)
        return None

    def positive(self, name: str) -> float | None:
        """Read a number above zero."""
        value = self.rest.pop(name, None)
        if value is None:
            return None
        try:
            number = math.nan if isinstance(value, bool | str) else float(value)
        except (TypeError, OverflowError):
            number = math.nan
        if not 0 < number < math.inf:
            self.add("must be a number above 0", name)
            return None
        return number

    def others(self) -> Mapping[str, Any]:
        """Return the members that were not read, as they are."""
        for name, value in self.rest.items():
            if depth_exceeds(value, _MAX_DEPTH):
                self.add(f"is nested deeper than {_MAX_DEPTH} levels", name)
        return MappingProxyType(self.rest)

    def _is_text(self, value: Any, *members: str | int, restricts: bool = False) -> bool:
        if not isinstance(value, str):
            cure = ": write it in quotes" if isinstance(value, bool | int | float) else ""
            problem = f"must be a string, not {_type_of(value)}{cure}"
            self.add(problem, *members, restricts=restricts)
        elif _IMPOSSIBLE.search(value):
            problem = "has a NUL character or half of a surrogate pair"
            self.add(problem, *members, restricts=restricts)
        else:
            if "$" in value:
                self.keep_place(*members)
            return True
        return False

    def _check_repeated(self, members: tuple[str, ...]) -> None:
        for name, place in self._tree.repeated((*self._path, *members)):
            if members or name in self.rest:  # only some of the object's members may be read
                problem = ConfigProblem(place, "is there a second time", self._server)
                self._problems.append(problem)


def _number_text(value: Any) -> Any:
    """Return a number as programs write it into an environment, and any other value as it is."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() <= _MAX_BITS:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return value


def _type_of(value: Any) -> str:
    for kind, text in (
        (bool, "true or false"),
        (int | float, "a number"),
        (str, "a string"),
        (list, "an array"),
        (dict, "an object"),
        (type(None), "null"),
    ):
        if isinstance(value, kind):
            return text
    return "a date or time" if isinstance(value, date | time) else type(value).__name__
