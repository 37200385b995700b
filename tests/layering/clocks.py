"""The rules about time in tests, and what reads the tests for them.

1. No default test waits for a real clock: a literal wait below `SHORT` seconds needs a clock that
   jumps. That is the fixture `autojump_clock`, `mock_clock` or `each_driver`, a `MockClock`, or
   what `VIRTUAL` lists. A pause in a `while` loop is a poll, which waits for something.
   `time.sleep` and threads know no such clock. Neither may a test set a timeout of the code to
   less: what is then not done in time fails a sound change. It may if nothing else ever happens.
2. What must happen is waited for by `PATIENCE` or `patience()` of `tests/harness/world/waiting.py`,
   not by a number of its own: a wait as long as the test never says what it has waited for.
3. What measures time or memory is marked `perf`.

Tests that the default run leaves out need keep rule 2 only. A clock has to be an argument of the
test: pytest-trio overlooks one that `usefixtures` names, unless it is in `BY_MARK`. A function, a
class or a table counts with all tests of its module that use it, directly or through others.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TestModule"]

SHORT: Final = 5.0
MOCK: Final = 1000.0  # so long may take a mock clock only
LEFT_OUT: Final = frozenset({"perf", "process", "slow", "interop", "conformance", "node"})
# Their tests may take longer: see `LONGEST` in tests/conftest.py.
TAKES_LONGER: Final = frozenset({"perf", "slow", "interop", "conformance", "node", "timeout"})
CLOCKS: Final = frozenset({"autojump_clock", "each_driver", "mock_clock", "MockClock"})
# Our own plugins' clocks, which a mark may name.
BY_MARK: Final = frozenset({"each_driver"})
# What runs a test on a clock that jumps, by module.
VIRTUAL: Final = {
    "tests.harness.world.virtual_time": {"run"},
    "tests.harness.world.loop": {"run"},
    "tests.harness.messages.scripted_server": {"PLAYS", "ClientPlay", "play_trio", "play_asyncio"},
    "tests.test_task_stores": {"KINDS"},
    "tests.trio_.cancelling": {"play_at_every_step"},
}
REAL: Final = frozenset({"trio.run", "anyio.run"})
# What waits, by its last name, and the place of the seconds among its arguments.
WAITS: Final = {
    "sleep": 0, "pause": -1, "fail_after": 0, "move_on_after": 0, "wait_for": 1, "within": 0,
}  # fmt: skip
# What a test may set, by the end of its name.
_TIME: Final = re.compile("(TIMEOUT|GRACE|INTERVAL|DEADLINE|DOUBT)$")
TIMEOUTS: Final = frozenset({"timeout", "max_timeout"})
LONG_WAITS: Final = frozenset(
    {"fail_after", "wait_for", "timeout", "communicate", "run", "wait", "join", "urlopen"}
)
MEASURES: Final = frozenset({"perf_counter", "process_time", "thread_time", "tracemalloc"})
# What neither imports what can wait nor says how long is not read.
_CONCERNED: Final = re.compile(
    rf"\b({'|'.join([*WAITS, *TIMEOUTS, *MEASURES, 'setattr', 'wait'])})\b"
)
_CAN_WAIT: Final = re.compile(
    r"^ *(import|from) "
    r"(trio|asyncio|anyio|time|threading|subprocess|http|socket"
    r"|tests\.harness(?!\.(forms|jsonrpc|stepping|messages\.pair|wire\.connection)\b))\b",
    re.MULTILINE,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class TestModule:
    """A file of tests or of helpers. `left_out` is True if the default run has none of its tests.

    `takes_longer` is True if its tests have a timeout of their own.
    """

    __test__ = False

    def __init__(
        self,
        text: str,
        *,
        tree: ast.Module | None = None,
        left_out: bool = False,
        takes_longer: bool = False,
    ) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._tree = tree or ast.parse(text)
        self._left_out = left_out
        self._takes_longer = takes_longer

    def complaints(self) -> Iterator[tuple[int, str]]:
        """Yield the line of each fault, and what is wrong there."""
        if not (_CONCERNED.search(self._text) and _CAN_WAIT.search(self._text)):
            return
        for name, node in self._parts:
            if not self._may_complain(node):
                continue
            tests = self._tests_of[name]
            marks = [self._module_names | self._names[test] for test in tests]
            virtual = bool(tests) and all(
                self._is_virtual((self._module_names & BY_MARK) | self._reach(test))
                for test in tests
            )
            left_out = self._left_out or (
                bool(tests) and all(_marked(each, LEFT_OUT) for each in marks)
            )
            takes_longer = self._takes_longer or (
                bool(tests) and all(_marked(each, TAKES_LONGER) for each in marks)
            )
            yield from self._complaints_of(
                node, virtual=virtual, left_out=left_out, takes_longer=takes_longer
            )

    def _may_complain(self, top: ast.stmt) -> bool:
        """True if there is a complaint unless the tests' clocks and marks excuse it.

        To find out which tests use a part takes longer than all else.
        """
        first = min(each.lineno for each in [top, *getattr(top, "decorator_list", ())])
        return bool(_CONCERNED.search("\n".join(self._lines[first - 1 : top.end_lineno]))) and any(
            self._complaints_of(top, virtual=False, left_out=False, takes_longer=False)
        )

    def _complaints_of(
        self, top: ast.stmt, *, virtual: bool, left_out: bool, takes_longer: bool
    ) -> Iterator[tuple[int, str]]:
        if not left_out and _is_test(top) and (found := _names_in(top) & MEASURES):
            yield top.lineno, f"measures by {', '.join(sorted(found))} without the mark perf"
        polls = {
            id(call)
            for loop in ast.walk(top)
            if isinstance(loop, ast.While)
            for call in ast.walk(loop)
        }
        for node in ast.walk(top):
            if not isinstance(node, ast.Call):
                continue
            called = _dotted(node.func)
            last = called.rpartition(".")[2]
            seconds = list(self._seconds_of(node, last))
            is_poll = last == "sleep" and id(node) in polls
            jumps = virtual and not called.startswith(("time.", "threading."))
            if not (left_out or is_poll or jumps) and any(0 < each < SHORT for each in seconds):
                yield node.lineno, f"waits for a real clock: {ast.unparse(node)[:70]}"
            elif (
                last in LONG_WAITS
                and called != "pytest.mark.timeout"
                and not (virtual or takes_longer)
                and any(SHORT <= each < MOCK for each in seconds)
            ):
                yield node.lineno, f"has a patience of its own: {ast.unparse(node)[:70]}"

    def _seconds_of(self, node: ast.Call, name: str) -> Iterator[float]:
        place = WAITS.get(name)
        if place is not None and len(node.args) > max(place, 0):
            yield from self._numbers(node.args[place])
        elif name == "setattr" and _sets_time(node):
            yield from self._numbers(node.args[-1])
        elif node.args and (name == "timeout" or (name == "wait" and _is_new(node.func))):
            yield from self._numbers(node.args[0])
        for keyword in node.keywords:
            if keyword.arg in TIMEOUTS:
                yield from self._numbers(keyword.value)

    def _numbers(self, node: ast.expr) -> Iterator[float]:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield float(node.value)  # type: ignore[arg-type]
        elif isinstance(node, ast.IfExp):
            yield from self._numbers(node.body)
            yield from self._numbers(node.orelse)
        elif isinstance(node, ast.Name) and node.id in self._constants:
            yield self._constants[node.id]

    # -- What uses what ----------------------------------------------------------------------------

    @cached_property
    def _parts(self) -> list[tuple[str, ast.stmt]]:
        """The functions, classes and other statements of the module; those by what they set."""
        return [(_name_of(node), node) for node in self._tree.body]

    @cached_property
    def _names(self) -> dict[str, set[str]]:
        names: dict[str, set[str]] = defaultdict(set)
        for name, node in self._parts:
            if name:
                names[name] |= _names_in(node)
        return names

    @cached_property
    def _module_names(self) -> set[str]:
        return self._names.get("pytestmark", set())

    @cached_property
    def _tests_of(self) -> dict[str, list[str]]:
        """For each part the tests that use it. A test uses itself."""
        tests = [name for name, node in self._parts if _is_test(node)]
        found: dict[str, list[str]] = defaultdict(list)
        for test in tests:
            for used in self._reach(test):
                found[used].append(test)
        return found

    def _reach(self, start: str) -> set[str]:
        """Return all names that a part uses, itself or through the parts that it uses."""
        reached, waiting = {start}, [start]
        while waiting:
            fresh = self._names.get(waiting.pop(), set()) - reached
            reached |= fresh
            waiting += fresh
        return reached

    def _is_virtual(self, names: set[str]) -> bool:
        if names & REAL and not names & CLOCKS:
            return False
        return bool(names & (CLOCKS | self._virtual_names))

    @cached_property
    def _virtual_names(self) -> set[str]:
        found = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = alias.asname or alias.name
                    if alias.name in VIRTUAL.get(node.module or "", ()):
                        found.add(name)
                    for inner in VIRTUAL.get(f"{node.module}.{alias.name}", ()):
                        found.add(f"{name}.{inner}")
        return found

    @cached_property
    def _constants(self) -> dict[str, float]:
        return {
            name: float(value.value)  # type: ignore[arg-type]
            for name, node in self._parts
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(value := node.value, ast.Constant)
            and type(value.value) in (int, float)
        }


def _sets_time(call: ast.Call) -> bool:
    """True if a call of `setattr` sets what the name says is a time."""
    return any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and _TIME.search(part.value) is not None
        for each in call.args[:-1]
        for part in ast.walk(each)
    )


def _is_new(method: ast.expr) -> bool:
    """True for the method of an event made in the same expression, such as `Event().wait`."""
    return isinstance(method, ast.Attribute) and isinstance(method.value, ast.Call)


def _name_of(node: ast.stmt) -> str:
    if isinstance(node, Function):
        return node.name
    if isinstance(node, ast.Assign):
        return _dotted(node.targets[0])
    return _dotted(node.target) if isinstance(node, ast.AnnAssign) else ""


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, Function) and node.name.startswith(("test_", "Test"))


def _marked(names: set[str], marks: frozenset[str]) -> bool:
    return any(f"pytest.mark.{mark}" in names for mark in marks)


def _names_in(top: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(top):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found |= {_dotted(node), node.attr}
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and node.value in BY_MARK:
            found.add(node.value)
    return found


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    return ""
