"""The wheel: built, installed into a new environment, and used from another directory.

No test needs a network. The build uses the installed hatchling, and the environment borrows the
dependencies of the one that runs the tests, so that only our own packages come from the wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PACKAGES = {"mcp_asyncio_shim", "mcp_core", "mcp_trio"}


def output_of(*command: str | Path, cwd: Path = ROOT) -> str:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    result = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    output_of(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"),
        *("--disable-pip-version-check", "--wheel-dir", place, ROOT),
    )
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a function that runs Python code with the installed wheel, in an empty directory."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place / "venv", symlinks=True)
    python = place / "venv" / "bin" / "python"
    output_of(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"),
        *("--disable-pip-version-check", wheel),
    )
    # Borrow the dependencies only after the install: pip must not find our own packages in the
    # other environment. The wheel comes first on the path.
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    site_packages = Path(
        output_of(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    )
    (site_packages / "borrowed.pth").write_text("\n".join(borrowed))
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    return lambda program: output_of(python, "-c", program, cwd=elsewhere)


def test_wheel_contains_packages_only(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    info = f"{wheel.name.split('-py3')[0]}.dist-info"
    assert {name.split("/")[0] for name in names} == {*PACKAGES, info}
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert f"{info}/licenses/LICENSE" in names
    assert not [name for name in names if "/test_" in name or "__pycache__" in name]


@pytest.mark.parametrize("target", ["sdist", "wheel"])
def test_pyproject_lists_only_paths_that_exist(target: str) -> None:
    """The build leaves out what is missing, without a word."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    options = project["tool"]["hatch"]["build"]["targets"][target]
    listed = [*options.get("only-include", ()), *options.get("packages", ())]
    assert listed
    assert [path for path in listed if not (ROOT / path).exists()] == []


def test_sdist_contains_sources_and_tests(tmp_path: Path) -> None:
    output_of(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests/conftest.py"} <= names
    assert not [
        name
        for name in names
        if "__pycache__" in name or name.startswith((".git/", "node_modules"))
    ]


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_package_is_imported_from_wheel(installed: Callable[[str], str], package: str) -> None:
    home = installed(f"import {package}; print({package}.__path__[0])")
    assert "site-packages" in home
    assert not Path(home).is_relative_to(ROOT)
    assert not Path(home).is_relative_to(sysconfig.get_path("purelib"))
    assert (Path(home) / "py.typed").is_file()


def test_wheel_metadata_names_command(installed: Callable[[str], str]) -> None:
    found = installed(
        "from importlib.metadata import distribution as d; dist = d('mcp-trio');"
        "print(dist.version, *[script.value for script in dist.entry_points if script.name =="
        " 'mcp-trio'])"
    )
    assert found == "0.1.0 mcp_trio.cli:main"


def test_installed_command_works_in_any_directory(installed: Callable[[str], str]) -> None:
    found = installed(
        "import subprocess, sys\n"
        "from pathlib import Path\n"
        "command = Path(sys.executable).with_name('mcp-trio')\n"
        "for word in '--version', 'demo':\n"
        "    print(subprocess.run([command, word], check=True, capture_output=True,"
        " text=True).stdout)"
    )
    assert found.startswith("mcp-trio 0.1.0\n")
    assert "notifications/cancelled" in found
    assert str(ROOT) not in found
