"""The server that a command line names: a Python file, or a module of a package.

1. If the import fails, stderr gets a traceback of the user's code only, without the frames of the
   command and of the import system.
2. What the user's code prints while it is imported goes to stderr: stdout belongs to the protocol.
3. A file finds modules as with `python FILE`, first in its own directory. A module finds them as
   with `python -m MODULE`, first in the current directory.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from mcp_core import registry
from mcp_core.registry import DeclarationError, Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

__all__ = ["ServedSource", "ServedSourceError", "is_of_served_code"]

# A name that may be shown: a key has 43 characters or more.
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
# Not `__main__`: code under `if __name__ == "__main__"` is for `python FILE`. Nor the name of the
# file: a module that imports the file by name gets a second copy, as with Python's `__main__`.
_MODULE_NAME: Final = "__mcp_server__"
_OURS: Final = ("mcp_asyncio_shim", "mcp_core", "mcp_trio")  # may be beside it, in a checkout
_DEFAULT_NAMES: Final = ("server", "mcp", "app")
_REGISTRY: Final = Path(registry.__file__).parent  # its frames are left out of a traceback
_RELATIVE_IMPORT: Final = "attempted relative import with no known parent package"

_served_root: Path | None = None  # the directory of the code that `load` has imported


class ServedSourceError(Exception):
    """A server cannot be taken from its source.

    Args:
        text: the cause, then the cure.
        import_failed: True if the code was found and raised an exception.
    """

    def __init__(self, text: str, *, import_failed: bool = False) -> None:
        super().__init__(text)
        self.import_failed = import_failed


class ServedSource(NamedTuple):
    """Where a server is declared: `FILE[:NAME]`, or `PACKAGE.MODULE[:NAME]`.

    Make one by `from_file` or `from_module`, which import nothing.
    """

    # The words of a command line that name it: `FILE[:NAME]`, or `-m` and `PACKAGE.MODULE[:NAME]`.
    words: tuple[str, ...]
    # The file with the code.
    path: Path
    # The module's full name; "" for a file.
    module: str
    # The variable that holds the server; "" for the only one.
    name: str
    # The directory whose Python files belong to it: the file's, or the outermost package's. A
    # module's is as in the names of its files: Python resolves no links there.
    root: Path

    @classmethod
    def from_file(cls, target: str) -> Self:
        """Return the source that `target` names: `FILE` or `FILE:NAME`.

        Raises:
            ServedSourceError: there is no such file.
        """
        path, name = Path(target), ""
        if not path.exists():
            before, colon, name = target.rpartition(":")
            path = Path(before if colon else target)
        if path.is_dir():
            raise ServedSourceError(f"{path} is a directory; give the path of a file in it")
        if not path.is_file():
            raise ServedSourceError(
                f"there is no file {path}; give the path of a Python file, as server.py"
            )
        return cls((target,), path, "", name, path.resolve().parent)

    @classmethod
    def from_module(cls, target: str) -> Self:
        """Return the source that `target` names: `PACKAGE.MODULE` or `PACKAGE.MODULE:NAME`.

        Raises:
            ServedSourceError: there is no such module, or it has no file.
        """
        module, colon, name = target.partition(":")
        words = [*module.split("."), *([name] if colon else [])]
        if not all(map(str.isidentifier, words)):
            file = ": a file is named without -m" if module.endswith(".py") else ""
            raise ServedSourceError(
                f"-m {target} is not a module; write PACKAGE.MODULE or PACKAGE.MODULE:NAME{file}"
            )
        outermost, spec = _find_module(module)
        if spec.origin is None or not spec.has_location:
            raise ServedSourceError(
                f"-m {module}: the module has no file; name the module in it that has the server"
            )
        path = Path(spec.origin)
        places = outermost.submodule_search_locations
        root = Path(next(iter(places))) if places else path.parent
        return cls(("-m", target), path, module, name, root)

    @property
    def shown(self) -> str:
        """The name for messages: the file or the module, without the variable."""
        return self.module or str(self.path)

    def find_files(self) -> Iterator[Path]:
        """Return the Python files beside the source: of its directory, or of the whole package."""
        is_in_package = "." in self.module or (self.module and self.path.name == "__init__.py")
        return self.root.rglob("*.py") if is_in_package else self.root.glob("*.py")

    def load(self, log: str, keys_variable: str | None = None) -> Server:
        """Import the code, and return its server.

        Args:
            log: the name of the driver's logger. It logs to stderr, unless the code has configured
                logging.
            keys_variable: the environment variable that has the server's `state_keys`, if one has.

        Raises:
            ServedSourceError: the import fails, and stderr has the traceback; there is no such
                server; or the variable has no keys.
        """
        server = self._find_server(self._import())
        if keys_variable is not None:
            _use_state_keys(server, keys_variable)
        _configure_logging(log)
        return server

    def load_module(self, name: str) -> ModuleType:
        """Import the file anew as a module called `name`, or the module, and return it.

        Raises:
            ServedSourceError: the import fails, and stderr has the traceback.
        """
        # As Python does for the file, or the module, that it runs.
        folder = str(Path.cwd() if self.module else self.root)
        if sys.path[:1] != [folder]:
            sys.path.insert(0, folder)
        spec = None if self.module else self._spec_of_file(name)
        try:
            with redirect_stdout(sys.stderr):
                return importlib.import_module(self.module) if spec is None else _execute(spec)
        except Exception as exc:  # noqa: BLE001 - the user's code may raise anything
            self._print_traceback(exc)
            raise ServedSourceError(
                f"{self.shown} could not be imported: {self._describe_error(exc)}",
                import_failed=True,
            ) from None

    def explain_wait(self, name: str, option: str = "") -> None:
        """If stdin is a terminal, print what the server waits for, and how to try it.

        `name` is the server's, `option` what a command needs to start it, such as `--asyncio`.
        """
        if sys.stdin is not None and sys.stdin.isatty():
            words = " ".join(filter(None, [option, *self.words]))
            sys.stderr.write(
                f"{name} is waiting for a client on stdin, one JSON message a line; Ctrl+C ends it."
                f" To try it: mcp-trio inspect {words}\n"
            )

    def _import(self) -> ModuleType:
        global _served_root  # noqa: PLW0603 - a process serves one
        _served_root = self.root
        sys.argv = [str(self.path)]
        return self.load_module(_MODULE_NAME)

    def _spec_of_file(self, name: str) -> ModuleSpec:
        spec = importlib.util.spec_from_file_location(name, self.path.resolve())
        if spec is None:
            raise ServedSourceError(
                f"{self.path} is not a Python file: its name does not end in .py"
            )
        return spec

    def _print_traceback(self, exc: Exception) -> None:
        """Print the traceback, beginning at the user's code.

        For an invalid declaration it ends before the registry's frames.
        """
        shown = traceback.TracebackException.from_exception(exc)
        frames = shown.stack[:]
        while frames and not self._is_shown(frames[0].filename):
            del frames[0]
        while (
            isinstance(exc, DeclarationError)
            and frames
            and _REGISTRY in Path(frames[-1].filename).parents
        ):
            del frames[-1]
        shown.stack[:] = frames
        sys.stderr.write("".join(shown.format()))

    def _is_shown(self, file: str) -> bool:
        """Return True if a traceback may begin in this file."""
        return file != __file__ and Path(file).is_relative_to(self.root)

    def _describe_error(self, exc: Exception) -> str:
        text = str(exc).partition("\n")[0]
        if isinstance(exc, ModuleNotFoundError):
            return (
                f"{exc}; install it for {sys.executable}, or run this with the Python that has it"
            )
        if isinstance(exc, ImportError) and text == _RELATIVE_IMPORT and not self.module:
            return f"ImportError: {text}; {self._module_cure()}"
        return f"{type(exc).__name__}: {text}" if text else type(exc).__name__

    def _module_cure(self) -> str:
        """Return how to serve a file that uses relative imports: as a module of its package."""
        path = self.path.resolve()
        folder = path.parent
        names = [folder.name, path.stem]  # `__init__.py` is imported as a package
        while (folder.parent / "__init__.py").is_file():
            folder = folder.parent
            names.insert(0, folder.name)
        if not all(map(str.isidentifier, names)):
            return "write `import NAME` for `from . import NAME`: the file is in no package"
        module = ".".join(names) + (f":{self.name}" if self.name else "")
        return f"name it as a module of its package, in {folder.parent}: -m {module}"

    def _find_server(self, module: ModuleType) -> Server:
        found = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
        if self.name in found:
            return found[self.name]
        names = ", ".join(found)
        if self.name:
            has = f"its servers are: {names}" if found else "it has none"
            raise ServedSourceError(
                f"{self.shown} has no mcp_trio.Server called {self.name}; {has}"
            )
        if not found:
            raise ServedSourceError(
                f'{self.shown} has no server. Make one: server = mcp_trio.Server("name")'
            )
        if len({id(server) for server in found.values()}) > 1:
            default = next((found[key] for key in _DEFAULT_NAMES if key in found), None)
            if default is None:
                example = " ".join(self.words)
                raise ServedSourceError(
                    f"{self.shown} has several servers: {names}. Name one: mcp-trio run"
                    f" {example}:{next(iter(found))}"
                )
            return default
        return next(iter(found.values()))


def _execute(spec: ModuleSpec) -> ModuleType:
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return module


def is_of_served_code(error: BaseException) -> bool:
    """Return True if `error` passed through code that `load` imported, or that is beside it.

    Installed packages don't count.
    """
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_of_served_code, error.exceptions))
    if _served_root is None:
        return False
    return any(
        _served_root in Path(frame.f_code.co_filename).parents
        and "site-packages" not in Path(frame.f_code.co_filename).relative_to(_served_root).parts
        and str(frame.f_globals.get("__name__")).partition(".")[0] not in _OURS
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _find_module(name: str) -> tuple[ModuleSpec, ModuleSpec]:
    """Return the specs of a module's outermost package and of the module. Nothing is imported.

    Raises:
        ServedSourceError: there is no such module.
    """
    found: list[ModuleSpec] = []
    path: Sequence[str] = ()
    words = name.split(".")
    for count in range(1, len(words) + 1):
        part = ".".join(words[:count])
        spec = _find_in(path, part) if found else _find_outermost(part)
        if spec is None:
            if found:
                raise ServedSourceError(
                    f"the package {found[-1].name} has no module {words[count - 1]}"
                )
            raise ServedSourceError(
                f"there is no module {part} in {Path.cwd()}, nor for {sys.executable}; -m finds"
                " modules as `python -m` does: install the package, or name its directory in"
                " PYTHONPATH"
            )
        found.append(spec)
        path = tuple(spec.submodule_search_locations or ())
        if not path and count < len(words):
            raise ServedSourceError(
                f"{part} is a module and not a package, so there is no {name}; a variable comes"
                f" after a colon: -m {part}:{words[count]}"
            )
    return found[0], found[-1]


def _find_outermost(name: str) -> ModuleSpec | None:
    with suppress(ValueError):  # `__main__`, which is found by no name
        return PathFinder.find_spec(name, [str(Path.cwd())]) or importlib.util.find_spec(name)
    return None


def _find_in(path: Sequence[str], name: str) -> ModuleSpec | None:
    """Find a module of a package that wasn't imported, which `importlib.util.find_spec` would do.

    `path` has the package's directories. A directory without `__init__.py` comes last.
    """
    finders = filter(None, map(pkgutil.get_importer, path))
    specs = [spec for finder in finders if (spec := finder.find_spec(name)) is not None]
    return next((spec for spec in specs if spec.loader is not None), next(iter(specs), None))


def _use_state_keys(server: Server, variable: str) -> None:
    from mcp_core.sharing import read_state_keys  # on first use: most servers share no keys

    if variable not in os.environ and not _VARIABLE.fullmatch(variable):
        # It may be the variable's value, so it isn't shown.
        raise ServedSourceError(
            "--state-keys-env: this isn't the name of a variable: pass NOTES_KEYS, for example, and"
            " not $NOTES_KEYS"
        )
    try:
        if variable not in os.environ:
            raise ValueError("the variable isn't set")
        server.use_state_keys(read_state_keys(os.environ[variable]))
    except ValueError as exc:
        raise ServedSourceError(f"--state-keys-env {variable}: {exc}") from None


def _configure_logging(name: str) -> None:
    """Log to stderr, unless the code has configured logging."""
    log = logging.getLogger(name)
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
        log.addHandler(handler)
