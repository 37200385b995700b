"""`ServedSource`: what names a file or a module, found without importing anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcp_core.adapters import ServedSource, ServedSourceError, is_of_served_code
from mcp_core.adapters._served_source import _find_in

FILES = {
    "app/__init__.py": "raise RuntimeError('imported')",
    "app/server.py": "raise RuntimeError('imported')",
    "app/sub/tools.py": "",  # a namespace package
    "space/server.py": "",
    "single.py": "",
    "string.py": "",  # before the one of the standard library, as with `python -m`
}
# The module's file, the variable, and the directory of the outermost package.
FOUND = {
    "app": ("app/__init__.py", "", "app"),
    "app.server": ("app/server.py", "", "app"),
    "app.server:mcp": ("app/server.py", "mcp", "app"),
    "app.sub.tools": ("app/sub/tools.py", "", "app"),
    "space.server": ("space/server.py", "", "space"),
    "single:\u00e9": ("single.py", "\u00e9", "."),
    "string": ("string.py", "", "."),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_package_comes_before_a_directory_of_its_name(tmp_path: Path) -> None:
    """As Python imports it, even if the directory comes first in the path."""
    for each in ("first/both", "first/only", "second/both"):
        (tmp_path / each).mkdir(parents=True)
    (tmp_path / "second/both/__init__.py").touch()
    path = [str(tmp_path / each) for each in ("first", "second")]
    found = _find_in(path, "both")
    assert found is not None
    assert found.origin == str(tmp_path / "second/both/__init__.py")
    directory = _find_in(path, "only")
    assert directory is not None
    assert directory.loader is None
    assert _find_in(path, "neither") is None


def test_module_is_found_without_importing_its_packages(project: Path) -> None:
    before = set(sys.modules)
    for target, (path, name, root) in FOUND.items():
        source = ServedSource.from_module(target)
        assert (source.path.resolve(), source.name) == (project / path, name)
        assert source.root.resolve() == (project / root).resolve()
        assert source.words == ("-m", target)
        assert source.shown == target.partition(":")[0]
    assert {name for name in set(sys.modules) - before if name.startswith("app")} == set()


FILES_BESIDE = {
    "app.sub.tools": {"__init__.py", "server.py", "tools.py"},
    "app": {"__init__.py", "server.py", "tools.py"},
    "space.server": {"server.py"},
    "single": {"single.py", "string.py"},
}


@pytest.mark.usefixtures("project")
def test_files_beside_a_module_are_those_of_its_package() -> None:
    for target, names in FILES_BESIDE.items():
        assert {path.name for path in ServedSource.from_module(target).find_files()} == names
    assert {path.name for path in ServedSource.from_file("app/server.py").find_files()} == {
        "__init__.py",
        "server.py",
    }


REFUSED = {
    "space": "-m space: the module has no file; name the module in it",
    "app.none": "the package app has no module none",
    "app.none.server": "the package app has no module none",
    "single.server": "single is a module and not a package, so there is no single.server; a",
    "none": "there is no module none in ",
    "": "-m  is not a module; write PACKAGE.MODULE",
    "app.": "-m app. is not a module",
    "app.server:": "-m app.server: is not a module",
    "app.server:a.b": "-m app.server:a.b is not a module",
    "app:a:b": "is not a module",
    "app/server.py": ": a file is named without -m",
    ".server": "-m .server is not a module",
    "\0": "is not a module",
    "__main__.server": "there is no",
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("target", REFUSED)
def test_module_that_cannot_be_served_is_explained(target: str) -> None:
    with pytest.raises(ServedSourceError) as caught:
        ServedSource.from_module(target)
    assert REFUSED[target] in str(caught.value)
    assert not caught.value.import_failed


def test_file_is_named_with_its_variable(project: Path) -> None:
    """A file whose name has a colon is that file, as long as it exists."""
    odd = project / "a.py:b"
    odd.write_text("")
    (project / "a.py").write_text("")
    assert ServedSource.from_file("a.py:b")[1:4] == (Path("a.py:b"), "", "")
    odd.unlink()
    source = ServedSource.from_file("a.py:b")
    assert source[1:] == (Path("a.py"), "", "b", project.resolve())
    assert source.words == ("a.py:b",)


def test_error_of_a_module_behind_a_link_is_of_the_served_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the command would ask for a report about an error of the author's own package."""
    package = tmp_path / "real" / "linked_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "server.py").write_text(
        "from mcp_core.registry import Server\nserver = Server('s')\ndef fail(): 1 / 0\n"
    )
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "link"), *sys.path])
    assert not is_of_served_code(ZeroDivisionError())
    source = ServedSource.from_module("linked_package.server")
    assert source.load("test-of-served-source").info.name == "s"
    with pytest.raises(ZeroDivisionError) as caught:
        sys.modules["linked_package.server"].fail()
    assert is_of_served_code(caught.value)
    assert is_of_served_code(ExceptionGroup("", [ValueError(), caught.value]))
    with pytest.raises(ValueError, match="invalid literal") as elsewhere:
        int("x")
    assert not is_of_served_code(elsewhere.value)
