"""Runs chosen tests again and again, each time with another change of the code, in forks.

`ForkedTests` starts pytest once in a copy of the code. It collects all tests, and forks for each
change: the child puts the new code into the functions that exist, and runs its tests. So a mutant
costs no start of pytest, no imports and no collection, which take longer than most tests.

What runs when a module is imported, such as a default or a decorator, can't be changed like this.

This module is also a pytest plugin, for the process that forks: `FORKED` has the descriptors of its
two pipes. Each request and each answer is a line of JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import IO, TYPE_CHECKING, Any, Final, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

__all__ = ["ForkedTests", "TestRun", "changed_functions"]

_PIPES: Final = os.environ.get("FORKED")
_SET_CHILD_SUBREAPER: Final = 36  # of prctl(2)
_OPTIMIZED: Final = 1  # inspect.CO_OPTIMIZED: set for functions, not for modules and classes


@dataclass(frozen=True)
class TestRun:
    """The end of a run of tests: whether one failed, and the first that did."""

    __test__ = False
    failed: bool
    test: str = ""
    timed_out: bool = False


class ForkedTests:
    """A process that has collected tests, and runs some of them for each change.

    Args:
        root: a copy of the code and the tests.
        options: pytest's, with the test files.
        timeout: seconds for the tests of one change.
        memory: bytes of address space for them.

    Use it as a context manager.

    Raises:
        RuntimeError: pytest could not collect the tests, or has ended.
    """

    def __init__(self, root: Path, options: Sequence[str], timeout: float, memory: int) -> None:
        self.root = root
        self._options = options
        self._limits = {"timeout": timeout, "memory": memory}

    def __enter__(self) -> Self:
        asked, self._ask = os.pipe()
        self._answer, answers = os.pipe()
        hidden = ("PYTEST_ADDOPTS", "CI", "HITS", "SELECTED", "MUTATION_ROWS", "MUTATION_REPORT")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment |= {"PYTHONPATH": str(self.root), "FORKED": f"{asked} {answers}"}
        # A pipe would be full in the end.
        self._output = tempfile.TemporaryFile()  # closed by `__exit__`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "tests.spec.forked_tests", *self._options],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            pass_fds=(asked, answers),
        )
        os.close(asked)
        os.close(answers)
        self._requests: IO[str] = os.fdopen(self._ask, "w", encoding="utf-8")
        self._answers: IO[str] = os.fdopen(self._answer, encoding="utf-8")
        try:
            self._read()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()

    def run(
        self,
        tests: Sequence[str],
        file: str = "",
        old: str = "",
        new: str = "",
        ignored: Sequence[str] = (),
    ) -> TestRun | None:
        """Run tests until one fails, with the file's text changed from `old` to `new`.

        Return None, without any test, if the change can't be made in a running process. The file
        itself is left alone: a test that starts programs needs it changed, too.

        Args:
            tests: names of files, of test functions, or of single tests, in their order.
            file: the changed file, below the root.
            old: its text as it was when the tests were collected.
            new: its text with the change.
            ignored: tests that are left out.
        """
        request = {"tests": list(tests), "ignored": list(ignored), "file": file}
        self._requests.write(json.dumps({**request, "old": old, "new": new, **self._limits}) + "\n")
        self._requests.flush()
        found = self._read()
        return None if found is None else TestRun(**found)

    def _read(self) -> Any:
        line = self._answers.readline()
        if not line:
            status = self._process.wait()
            self._output.seek(0)
            output = self._output.read().decode(errors="replace")
            raise RuntimeError(f"pytest exits {status}: {output[-2000:]}")
        return json.loads(line)


# -- Changing functions ----------------------------------------------------------------------------


def changed_functions(old: str, new: str, file: str) -> dict[tuple[int, str], CodeType] | None:
    """Return the new code of the functions that a change of a file changes.

    The keys have the line and the qualified name of the old code. None if the change can't be made
    in the functions alone, or two functions on a line have one name.
    """
    found: dict[tuple[int, str], CodeType] = {}
    before = compile(old, file, "exec")
    try:
        _compare(before, compile(new, file, "exec"), found)
    except _Unchangeable:
        return None
    keys = [_key(each) for each in _codes_within(before)]
    return None if any(keys.count(key) > 1 for key in found) else found


class _Unchangeable(Exception):
    pass


def _compare(
    old: CodeType, new: CodeType, found: dict[tuple[int, str], CodeType], *, within: bool = False
) -> bool:
    """Add the functions that differ to `found`. True if the code around them differs by them."""
    is_function = bool(old.co_flags & _OPTIMIZED)
    differs = _own(old) != _own(new)
    pairs = zip(_inner(old), _inner(new), strict=False)
    inner = [_compare(*pair, found, within=within or is_function) for pair in pairs]
    if is_function or within:
        differs |= any(inner)
    elif differs:  # a module, or one of its classes
        raise _Unchangeable
    if differs and is_function:
        found[_key(old)] = new
    return differs


def _key(code: CodeType) -> tuple[int, str]:
    return code.co_firstlineno, code.co_qualname


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _codes_within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in _inner(code):
        yield from _codes_within(each)


def _own(code: CodeType) -> tuple[object, ...]:
    """Return what a piece of code does, without lines, and without the code within it."""
    # Since Python 3.13 a class knows its first line.
    line = code.co_firstlineno if "__firstlineno__" in code.co_names else None
    constants = [
        "code" if isinstance(each, CodeType) else (type(each), repr(each))
        for each in code.co_consts
        if type(each) is not int or each != line
    ]
    return (
        *(code.co_code, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars),
        *(code.co_exceptiontable, code.co_flags, constants),
    )


# -- The plugin: in the process that forks ---------------------------------------------------------


def _first_child() -> int | None:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    found = path.read_text().split() if path.exists() else []
    return int(found[0]) if found else None


def _file_of(function: Any) -> str:
    return function.__code__.co_filename if isinstance(function, FunctionType) else ""


class _Forker:
    """Forks for each request, in place of pytest's loop."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests = os.fdopen(requests, encoding="utf-8")
        self._answers = os.fdopen(answers, "w", encoding="utf-8")
        self._items: dict[str, list[pytest.Item]] = {}
        self._functions: dict[str, list[FunctionType]] = {}
        self._caches: list[Any] = []
        self._failure: dict[str, Any] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        root = f"{session.config.rootpath}{os.sep}"
        for item in session.items:
            file, function = item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]
            for name in dict.fromkeys((file, function, item.nodeid)):
                self._items.setdefault(name, []).append(item)
        gc.unfreeze()  # frozen objects aren't listed
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and _file_of(each).startswith(root):
                self._functions.setdefault(_file_of(each), []).append(each)
            elif isinstance(each, functools._lru_cache_wrapper):
                self._caches += [each] if _file_of(each.__wrapped__).startswith(root) else []
        gc.collect()
        # A child's collections then leave the pages of these objects shared.
        gc.freeze()
        if sys.platform == "linux":
            # What a test's programs have started, and leave behind, becomes this process's child.
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._send(None)
        for line in self._requests:
            self._send(self._answer(json.loads(line), root))
        return True

    def _send(self, answer: dict[str, Any] | None) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def _answer(self, request: dict[str, Any], root: str) -> dict[str, Any] | None:
        file = root + request["file"]
        changed: dict[tuple[int, str], CodeType] | None = {}
        if request["file"]:
            changed = changed_functions(request["old"], request["new"], file)
        if changed is None:
            return None
        live = [
            (each, changed[_key(each.__code__)])
            for each in self._functions.get(file, ())
            if _key(each.__code__) in changed
        ]
        if any(each.__code__.co_freevars != code.co_freevars for each, code in live):
            return None
        alive = {_key(each.__code__) for each, _ in live}
        # Such as a comprehension that has run when its module was imported.
        gone = [key for key in changed if key not in alive and "<locals>" not in key[1]]
        if gone and any(getattr(each, "__file__", "") == file for each in [*sys.modules.values()]):
            return None
        items = [item for name in request["tests"] for item in self._items.get(name, ())]
        items = [item for item in items if not item.nodeid.startswith(tuple(request["ignored"]))]
        # A mutant may write anywhere.
        home = tempfile.mkdtemp(dir=root, prefix="home")
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
                os.environ.update(HOME=home, TMPDIR=home, PYTHONDONTWRITEBYTECODE="1")
                sys.dont_write_bytecode = True
                tempfile.tempdir = None
                for function, code in live:
                    function.__code__ = code
                for cache in self._caches:
                    cache.cache_clear()
                os.write(writing, json.dumps(self._play(items)).encode())
                os._exit(0)
            except BaseException:  # noqa: BLE001 - nothing may go on in the parent's code
                os._exit(1)
        os.close(writing)
        try:
            return self._wait(child, reading, request["timeout"])
        finally:
            os.close(reading)
            for pid in iter(_first_child, None):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            shutil.rmtree(home, ignore_errors=True)

    def _wait(self, child: int, reading: int, timeout: float) -> dict[str, Any]:
        end = time.monotonic() + timeout
        data = b""
        timed_out = False
        # Programs that a test has left behind may hold the pipe, so its end isn't waited for alone.
        while (
            not data
            and not timed_out
            and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        ):
            if select.select([reading], [], [], 0.05)[0]:
                data = os.read(reading, 1 << 16)
                if not data:
                    break
            timed_out = time.monotonic() > end
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not data and select.select([reading], [], [], 0)[0]:
            data = os.read(reading, 1 << 16)
        if data:
            return json.loads(data)  # type: ignore[no-any-return]
        if timed_out:
            return {"failed": True, "timed_out": True}
        return {"failed": True, "test": f"pytest exits {status}"}

    def _play(self, items: Sequence[pytest.Item]) -> dict[str, Any]:
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failure is not None:
                return self._failure
        return {"failed": False}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._failure is None:
            timed_out = "Timeout" in report.longreprtext[-200:]
            self._failure = {"failed": True, "test": report.nodeid, "timed_out": timed_out}


def pytest_configure(config: pytest.Config) -> None:
    """Add the plugin in the process that forks."""
    if _PIPES is not None and not config.pluginmanager.has_plugin("forker"):
        config.pluginmanager.register(_Forker(*map(int, _PIPES.split())), "forker")
