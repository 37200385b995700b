"""`ServedSource.load`: which server of a file is served, and what is printed if none can be."""

from __future__ import annotations

import io
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_core.adapters import ServedSource, ServedSourceError, _served_source, is_of_served_code

if TYPE_CHECKING:
    from collections.abc import Callable

LOGGER = "test_served_source_load"
IMPORT = "from mcp_core.registry import Server\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ServedSource]:
    """Return what writes the code of `served.py` and returns it as a source."""
    monkeypatch.setattr(sys, "path", ["before", *sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(_served_source, "_served_root", None)
    for name in _served_source._MODULE_NAME, "beside":
        monkeypatch.delitem(sys.modules, name, raising=False)

    def write(code: str) -> ServedSource:
        (tmp_path / "served.py").write_text(code)
        return ServedSource.from_file(str(tmp_path / "served.py"))

    return write


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """The driver's logger. The handler that it gets is removed."""
    log = logging.getLogger(LOGGER)
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "propagate", False)
    return log


def refusal(source: ServedSource, keys_variable: str | None = None) -> ServedSourceError:
    with pytest.raises(ServedSourceError) as caught:
        source.load(LOGGER, keys_variable)
    return caught.value


# -- The server ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("it = Server('one')", "one"),
        ("it = again = Server('one')", "one"),
        ("a = Server('a')\nserver = Server('b')", "b"),
        ("a = Server('a')\nmcp = Server('b')", "b"),
        ("a = Server('a')\napp = Server('b')", "b"),
        ("app = Server('a')\nserver = Server('b')\nmcp = Server('c')", "b"),
        ("app = Server('a')\nmcp = Server('c')", "c"),
    ],
)
def test_server_of_a_file_is_its_only_one_or_has_a_usual_name(
    code: str, name: str, write: Callable[[str], ServedSource], log: logging.Logger
) -> None:
    assert write(IMPORT + code).load(LOGGER).info.name == name


def test_server_that_is_named_is_served(
    write: Callable[[str], ServedSource], log: logging.Logger
) -> None:
    source = write(f"{IMPORT}a = Server('a')\nserver = Server('b')")
    assert source._replace(name="a").load(LOGGER).info.name == "a"


@pytest.mark.parametrize(
    ("code", "name", "text"),
    [
        ("", "", 'has no server. Make one: server = mcp_trio.Server("name")'),
        ("a = Server('a')\nb = Server('b')", "", "has several servers: a, b. Name one: mcp-trio"),
        ("a = Server('a')", "b", "has no mcp_trio.Server called b; its servers are: a"),
        ("b = 1", "b", "has no mcp_trio.Server called b; it has none"),
    ],
)
def test_server_that_is_not_clear_is_explained(
    code: str, name: str, text: str, write: Callable[[str], ServedSource]
) -> None:
    error = refusal(write(IMPORT + code)._replace(name=name))
    assert text in str(error)
    assert not error.import_failed


def test_several_servers_are_named_for_the_same_words(write: Callable[[str], ServedSource]) -> None:
    source = write(f"{IMPORT}a = Server('a')\nb = Server('b')")._replace(words=("-m", "p.served"))
    assert str(refusal(source)).endswith("mcp-trio run -m p.served:a")


# -- The import ------------------------------------------------------------------------------------


def test_file_is_run_as_python_would_run_it(
    write: Callable[[str], ServedSource], log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its directory is the first in the path, and its prints go to stderr."""
    source = write(
        f"{IMPORT}import sys, beside\nprint('printed', __name__, sys.argv == [__file__])\n"
        "assert sys.modules[__name__].beside is beside\nserver = Server('s')"
    )
    source.path.with_name("beside.py").touch()
    source.load(LOGGER)
    assert sys.path[:2] == [str(source.root), "before"]
    source.load(LOGGER)
    assert sys.path[:2] == [str(source.root), "before"]  # once
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "printed __mcp_server__ True\n" * 2


def test_module_is_imported_from_the_current_directory(
    tmp_path: Path,
    write: Callable[[str], ServedSource],
    log: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = tmp_path / "served_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "main.py").write_text(f"{IMPORT}server = Server(__name__)")
    monkeypatch.chdir(tmp_path)
    source = ServedSource.from_module("served_package.main")
    assert source.load(LOGGER).info.name == "served_package.main"
    assert sys.path[:2] == [str(Path.cwd()), "before"]


ERRORS = [
    ("1 / 0", "ZeroDivisionError: division by zero"),
    ("raise ValueError", "ValueError"),
    ("raise ValueError('one\\ntwo')", "ValueError: one"),
    ("from . import a", "ImportError: attempted relative import with no known parent package; "),
    ("from os import nothing_there", "ImportError: cannot import name 'nothing_there' from 'os'"),
    ("import nothing_there", f"No module named 'nothing_there'; install it for {sys.executable}"),
]


@pytest.mark.parametrize(("code", "text"), ERRORS)
def test_import_that_fails_shows_its_own_frames(
    code: str,
    text: str,
    write: Callable[[str], ServedSource],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The traceback begins in the file: the frames of the command and the import are left out."""
    source = write(f"def fail():\n    {code}\n\nfail()\n")
    error = refusal(source)
    assert error.import_failed
    assert str(error).startswith(f"{source.path} could not be imported: {text}")
    printed = capsys.readouterr().err
    frames = [line for line in printed.splitlines() if line.startswith("  File ")]
    assert [line.split(", ")[1:] for line in frames] == [
        ["line 4", "in <module>"],
        ["line 2", "in fail"],
    ]


def test_invalid_declaration_ends_its_traceback_in_the_file(
    write: Callable[[str], ServedSource], capsys: pytest.CaptureFixture[str]
) -> None:
    """The registry's frames, which come after it, say nothing to the author."""
    source = write(f"{IMPORT}server = Server('s')\n\n@server.tool\ndef look(*at): 'Look.'\n")
    assert refusal(source).import_failed
    printed = capsys.readouterr().err
    assert [line.split(", ")[1] for line in printed.splitlines() if line.startswith("  File ")] == [
        "line 4"
    ]


PACKAGED = {
    "outer/inner/served.py": "name it as a module of its package, in {}: -m outer.inner.served",
    "odd-name/served.py": "write `import NAME` for `from . import NAME`: the file is in no package",
}


@pytest.mark.parametrize(("path", "cure"), PACKAGED.items())
def test_relative_import_of_a_file_has_the_cure(
    path: str, cure: str, tmp_path: Path, write: Callable[[str], ServedSource]
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    for each in tmp_path.glob("outer/**/"):
        (each / "__init__.py").touch()
    file.write_text("from . import a")
    source = ServedSource.from_file(str(file))
    assert str(refusal(source)).endswith(cure.format(tmp_path))
    named = source._replace(name="it")
    assert str(refusal(named)).endswith(cure.format(tmp_path) + (":it" if "-m" in cure else ""))


def test_file_without_the_ending_of_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "served").touch()
    source = ServedSource.from_file(str(tmp_path / "served"))
    with pytest.raises(ServedSourceError, match=r"its name does not end in \.py"):
        source.load_module("it")


@pytest.mark.parametrize(
    ("target", "text"),
    [("", "is a directory; give the path of a file in it"), ("/none.py", "there is no file")],
)
def test_path_without_a_file_is_explained(target: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(ServedSourceError, match=text):
        ServedSource.from_file(f"{tmp_path}{target}")


def test_error_of_our_code_or_an_installed_package_is_none_of_the_served_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though these files may be beside the served one, as in a checkout or an environment."""

    def raised(file: str, name: str) -> ZeroDivisionError:
        with pytest.raises(ZeroDivisionError) as caught:
            exec(compile("1 / 0", str(tmp_path / file), "exec"), {"__name__": name})
        return caught.value

    assert not is_of_served_code(raised("a.py", "a"))  # nothing is served
    monkeypatch.setattr(_served_source, "_served_root", tmp_path)
    assert is_of_served_code(raised("a.py", "a"))
    assert is_of_served_code(raised("a.py", "a.mcp_core"))
    assert not is_of_served_code(raised("mcp_core/a.py", "mcp_core.a"))
    assert not is_of_served_code(raised("venv/site-packages/a.py", "a"))


# -- What is around it -----------------------------------------------------------------------------


def test_log_goes_to_stderr_unless_the_code_has_configured_it(
    write: Callable[[str], ServedSource],
    log: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = write(f"{IMPORT}server = Server('s')")
    monkeypatch.setattr(log, "handlers", [])  # those of pytest are there
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    source.load(LOGGER)
    source.load(LOGGER)  # has a handler now, and gets no second one
    log.warning("careful")
    time, level, text = stderr.getvalue().split(" ", 2)
    assert [len(part) for part in time.split(":")] == [2, 2, 2]
    assert (level, text) == ("WARNING", "careful\n")


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("SERVED_KEYS", None, "--state-keys-env SERVED_KEYS: the variable isn't set"),
        ("SERVED_KEYS", "short", "--state-keys-env SERVED_KEYS: "),
        ("$SERVED_KEYS", None, "this isn't the name of a variable: pass NOTES_KEYS"),
        ("k" * 41, None, "this isn't the name of a variable"),
        ("k" * 40, None, "the variable isn't set"),
        ("odd-name", "short", "--state-keys-env odd-name: "),
    ],
)
def test_keys_that_cannot_be_used_are_explained(
    variable: str,
    value: str | None,
    text: str,
    write: Callable[[str], ServedSource],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value)
    error = refusal(write(f"{IMPORT}server = Server('s')"), variable)
    assert text in str(error)
    assert error.__cause__ is None


def test_keys_of_the_variable_are_the_server_s(
    write: Callable[[str], ServedSource], log: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are given once: the code must not have its own."""
    monkeypatch.setitem(os.environ, "SERVED_KEYS", "a=" + "A" * 43)
    source = write(f"{IMPORT}server = Server('s')")
    source.load(LOGGER, "SERVED_KEYS")
    own = write(f"{IMPORT}server = Server('s', state_keys={{'a': b'a' * 32}})")
    assert "--state-keys-env SERVED_KEYS: " in str(refusal(own, "SERVED_KEYS"))


@pytest.mark.parametrize(
    ("option", "words"), [("", "inspect served.py"), ("--asyncio", "inspect --asyncio served.py")]
)
def test_wait_at_a_terminal_is_explained(
    option: str, words: str, write: Callable[[str], ServedSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person sees why nothing happens, and a client reads no such line."""
    source = write("")._replace(words=("served.py",))
    for stdin, explains in (
        (None, False),
        (StdinOfTerminal(is_one=False), False),
        (StdinOfTerminal(), True),
    ):
        stderr = io.StringIO()
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", stderr)
        source.explain_wait("tea", option)
        printed = stderr.getvalue()
        assert printed.startswith("tea is waiting for a client on stdin") == explains
        assert printed.endswith(f"To try it: mcp-trio {words}\n") == explains


class StdinOfTerminal(io.StringIO):
    """Standard input that is a terminal, or isn't."""

    def __init__(self, *, is_one: bool = True) -> None:
        super().__init__()
        self.is_one = is_one

    def isatty(self) -> bool:
        return self.is_one
