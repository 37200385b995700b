"""Make the environments that the peers run in:

    python benchmarks/peers/prepare.py DIRECTORY [NAME ...]

`DIRECTORY/NAME` becomes a virtual environment of this Python, or a folder with `node_modules`, for
each name in `ENVIRONMENTS`. pip and npm look for packages where they are configured to. An
environment that has the wanted packages is left as it is; one with others is made again.

Only the packages named here have fixed versions. What they bring along is what the registries have
today, so `compare.py` notes the versions that it measures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Final, NamedTuple

_STAMP: Final = "packages.json"


class Environment(NamedTuple):
    """The packages of one peer: all for pip, or all for npm."""

    node: bool
    packages: dict[str, str]

    def program(self, place: Path) -> list[str]:
        """Return the words before the path of a script. A Node script wants `modules` after it."""
        if self.node:
            return ["node"]
        scripts = "Scripts" if sys.platform == "win32" else "bin"
        return [str(place / scripts / "python")]


ENVIRONMENTS: Final = {
    "mcp": Environment(node=False, packages={"mcp": "2.3.0", "uvicorn": "0.54.0"}),
    "fastmcp": Environment(node=False, packages={"fastmcp": "4.2.3"}),
    "ts1": Environment(node=True, packages={"@modelcontextprotocol/sdk": "1.32.2", "zod": "4.6.7"}),
    "ts2": Environment(
        node=True,
        packages={
            "@modelcontextprotocol/server": "2.4.0",
            "@modelcontextprotocol/client": "2.4.0",
            "@modelcontextprotocol/node": "2.1.2",
            "zod": "4.6.7",
        },
    ),
}


def is_ready(directory: Path, name: str) -> bool:
    """Return whether an environment was made completely, with the packages of the table."""
    try:
        made = json.loads((directory / name / _STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return bool(made == ENVIRONMENTS[name].packages)


def installed(directory: Path, name: str) -> dict[str, str]:
    """Return the version of each package of the table, as the environment has it."""
    place, environment = directory / name, ENVIRONMENTS[name]
    if environment.node:
        return {
            package: json.loads(_manifest(place, package).read_text("utf-8"))["version"]
            for package in environment.packages
        }
    words = [*environment.program(place), "-c", _VERSIONS, *environment.packages]
    found: dict[str, str] = json.loads(subprocess.check_output(words))
    return found


_VERSIONS: Final = (
    "import json, sys; from importlib.metadata import version;"
    "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
)


def _manifest(place: Path, package: str) -> Path:
    return place / "node_modules" / package / "package.json"


def prepare(directory: Path, name: str) -> None:
    """Make one environment."""
    place, environment = directory / name, ENVIRONMENTS[name]
    if place.exists():
        if not (place / _STAMP).exists() and any(place.iterdir()):
            raise SystemExit(f"{place} isn't an environment of this script: remove it first")
        shutil.rmtree(place)
    place.mkdir(parents=True)
    # From now on it is known as ours, and as incomplete.
    (place / _STAMP).write_text("{}", "utf-8")
    if environment.node:
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit(f"{name} needs npm")
        words = [npm, "install", "--prefix", str(place), "--ignore-scripts", "--no-save"]
        words += ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        words += [f"{package}@{version}" for package, version in environment.packages.items()]
    else:
        venv.create(place, with_pip=True, clear=False)
        words = [*environment.program(place), "-m", "pip", "install", "--quiet"]
        words += [f"{package}=={version}" for package, version in environment.packages.items()]
    if subprocess.run(words, check=False).returncode != 0:
        raise SystemExit(f"{name} isn't complete: see above")
    wanted: dict[str, Any] = environment.packages
    if (found := installed(directory, name)) != wanted:
        raise SystemExit(f"{name} has {found} instead of {wanted}")
    (place / _STAMP).write_text(json.dumps(wanted, indent=2) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="The environments that the peers run in.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", metavar="NAME", nargs="*", default=list(ENVIRONMENTS))
    options = parser.parse_args()
    if unknown := set(options.names) - ENVIRONMENTS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(ENVIRONMENTS)}")
    directory = options.directory.resolve()
    for name in options.names:
        if is_ready(directory, name):
            print(f"{name}: was ready")
        else:
            prepare(directory, name)
            print(f"{name}: made")


if __name__ == "__main__":
    main()
