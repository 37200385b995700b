"""Prepare the start of a configured server: first what the user approves, then the values.

1. `prepare_launch` finds the program, its directory and its file of variables, as absolute paths.
   It expands only the texts with these paths, and `PATH`. Nothing is started or connected to.
2. `PreparedLaunch.expand`, after the approval, expands the rest. It takes the paths of the first
   step, so what was approved is what runs, even if `PATH` has changed.
3. A program of a project or local file starts in the project's directory, other programs in the
   user's home directory. Relative paths count from there too. VS Code does the same. Claude Code
   starts all servers in its own working directory. But `npx` and `python -m` load code from their
   directory, and a project's code must not run in the user's servers.

All functions block: call them in a worker thread.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_core import escape_text
from mcp_core.drivers import launch_secrets
from mcp_core.host import (
    ConfigProblem,
    InvalidConfig,
    expand_server,
    find_denial,
    find_excess,
    find_variables,
    make_launch,
    parse_env_file,
)
from mcp_core.processes import UnsafeArgument, child_environment, member_form, windows_command
from mcp_trio._files import read_regular_file

if TYPE_CHECKING:
    from mcp_core.host import (
        ExpandedServer,
        MergedServers,
        ScopedServer,
        ServerConfig,
        ServerLaunch,
        ServerPolicy,
        ServerScope,
        ServerTransport,
    )

    from ._config_files import ConfigFiles

__all__ = ["ExpandedLaunch", "PreparedLaunch", "prepare_launch"]

# The rules of Windows for environments and names of programs. A test sets it.
_WINDOWS = os.name == "nt"
# Above the limit of `parse_env_file`, whose error names it.
_MAX_ENV_FILE: Final = 2 * 1024 * 1024
_MAX_SHOWN: Final = 1000  # characters of `PATH` in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedLaunch:
    """A server's launch with all values, ready to start it or to connect to it.

    Args:
        transport: how its messages travel.
        argv: the absolute path of the program and its arguments; empty for a remote server.
        env: the program's variables, in addition to those that each child inherits.
        cwd: the absolute path of its working directory; None for a remote server.
        url: the address of a remote server, else None.
        headers: the headers of each HTTP request.
        secrets: values that must not be shown: `ExpandedServer.secrets`, and values from the file
            of variables that aren't common words, paths or the like.
    """

    transport: ServerTransport
    argv: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedLaunch:
    """A configured server whose program was found. `prepare_launch` makes it.

    Args:
        name: the server's name.
        scope: its file's scope.
        file: the absolute path of its file. File and name identify its approval.
        server: the server, unexpanded.
        launch: what is shown, approved and digested.
    """

    name: str
    scope: ServerScope
    file: str
    server: ServerConfig
    launch: ServerLaunch = field(repr=False)
    _files: ConfigFiles = field(repr=False)
    _servers: MergedServers = field(repr=False)

    @property
    def needs_approval(self) -> bool:
        """True if the user has to approve the launch: the file may come with a project.

        This includes local files: a repository can contain one.
        """
        return self.scope in ("local", "project")

    def expand(self, inputs: Mapping[str, str] | None = None) -> ExpandedLaunch:
        """Return the values to start the server or to connect to it. Call it after the approval.

        Args:
            inputs: the user's answers, by the id of the input.

        Raises:
            InvalidConfig: a variable has no value, a text cannot be used with its values, the
                policy denies the server with them, or the file with variables cannot be read.
        """
        launch = self.launch
        env_file = _read_env_file(self.server, launch.env_file)
        expanded = self._servers.expand(self.name, self._files.variables(inputs), env_file)
        if launch.transport != "stdio":
            return ExpandedLaunch(
                transport=launch.transport,
                url=expanded.url,
                headers=expanded.headers,
                secrets=expanded.secrets | launch_secrets((expanded.url or "",)),
            )
        return ExpandedLaunch(
            transport=launch.transport,
            argv=(launch.command, *expanded.args),
            env={**env_file, **expanded.env},
            cwd=launch.directory,
            secrets=expanded.secrets
            | launch_secrets((launch.command, *expanded.args), env=env_file),
        )


def prepare_launch(
    files: ConfigFiles,
    servers: MergedServers,
    name: str,
    *,
    launch: ServerLaunch | None = None,
    env: Mapping[str, str] = {},
) -> PreparedLaunch:
    """Return what a server would run or connect to, for its approval.

    The program of a stdio server is looked for as the child would find it: on the `PATH` of its own
    variables, of its file of variables, or else of this process; a relative path counts from its
    directory. A `~` at the beginning of the command, `cwd` and `envFile` is the home directory.

    Args:
        files: the files' places.
        servers: what `files.read()` has returned.
        name: the name of a server in `servers`.
        launch: what was approved. Then nothing is looked for, and this is used.
        env: variables that the host gives to each server, such as `PATH`. The server's own ones
            replace them.

    Raises:
        InvalidConfig: the program, its directory or its file of variables isn't there, their
            texts cannot be expanded or have an input, which is entered after the approval, or the
            launch is too large to be shown for it.
        KeyError: there is no such server.
    """
    scoped = servers.servers[name]
    server = scoped.server
    if launch is None:
        if server.transport == "stdio":
            launch = _StdioPreparation(files, scoped, servers.policy, env).run()
        else:
            launch = make_launch(server, scoped.inputs)
    prepared = PreparedLaunch(
        name=name,
        scope=scoped.scope,
        file=server.place.file,
        server=server,
        launch=launch,
        _files=files,
        _servers=servers,
    )
    excess = find_excess(launch) if prepared.needs_approval else None
    if excess is not None:
        raise InvalidConfig([ConfigProblem(server.place, excess, name)])
    return prepared


class _StdioPreparation:
    """The preparation of one stdio server."""

    def __init__(
        self,
        files: ConfigFiles,
        scoped: ScopedServer,
        policy: ServerPolicy | None,
        env: Mapping[str, str],
    ) -> None:
        self._policy = policy
        self._env = env
        self._server = scoped.server
        self._scoped = scoped
        self._environ = files.environ
        self._home = files.home
        self._variables = files.variables()
        is_of_project = scoped.scope in ("local", "project")
        self._base = files.directory if is_of_project else self._home or files.directory

    def run(self) -> ServerLaunch:
        server = self._server
        expanded = self._expand_paths()
        directory = self._absolute("cwd", expanded.cwd or "", self._base)
        if not os.path.isdir(directory):  # noqa: PTH112  no error where it may not be looked at
            raise _error(server, "cwd", f"there is no directory {escape_text(str(directory))}")
        env_file = ""
        if expanded.env_file is not None:
            env_file = str(self._absolute("env_file", expanded.env_file, self._base))
        in_file = _read_env_file(server, env_file)
        # What a user approves must not be denied afterwards.
        denial = None if self._policy is None else find_denial(self._policy, server, in_file)
        if denial is not None:
            raise InvalidConfig([ConfigProblem(server.place, denial, server.name)])
        variables = {**in_file, **expanded.env}
        program = self._find_program(expanded.command or "", directory, variables)
        for field_name, path in (
            ("command", program),
            ("cwd", str(directory)),
            ("env_file", env_file),
        ):
            try:
                path.encode()
            except UnicodeEncodeError:
                shown = escape_text(path)
                problem = f"the path {shown} is not UTF-8, so it cannot be approved: rename it"
                raise _error(server, field_name, problem) from None
        return make_launch(
            server,
            self._scoped.inputs,
            program=program,
            directory=str(directory),
            env_file=env_file,
        )

    def _expand_paths(self) -> ExpandedServer:
        """Expand only the texts from which the program is found.

        Raises:
            InvalidConfig: one cannot be expanded, or has an input.
        """
        server, inputs = self._server, self._scoped.inputs
        paths_only = replace(
            server,
            args=(),
            env={name: text for name, text in server.env.items() if _is_path(name)},
            forwarded=(),  # PATH is passed in any case
        )
        problems = [
            ConfigProblem(
                use.place,
                f"the input {escape_text(use.name)} is entered after the approval, for which this"
                " text is shown: use it in args or env",
                server.name,
            )
            for use in find_variables(paths_only)
            if use.kind == "input" and use.name in inputs
        ]
        if problems:
            raise InvalidConfig(problems)
        return expand_server(paths_only, self._variables, inputs)

    def _absolute(self, member: str, text: str, base: Path) -> Path:
        first, *rest = Path(text).parts or ("",)
        if first != "~":
            return base / text
        if self._home is None:
            raise _error(self._server, member, "~ is not known: the user has no home directory")
        return self._home.joinpath(*rest)

    def _find_program(self, command: str, directory: Path, variables: Mapping[str, str]) -> str:
        """Return the absolute path of the program that the child would run.

        Raises:
            InvalidConfig: there is none.
        """
        written = command
        has_directory = "/" in command or os.sep in command
        if has_directory:
            command = str(self._absolute("command", command, directory))
        environ = child_environment(
            self._environ,
            {**self._env, **variables},
            inherit_env=False,
            mark="",
            windows=_WINDOWS,
        )
        if _WINDOWS:
            found = _find_on_windows(command, environ)
        elif has_directory:
            found = command if _is_file(command) else None
        else:
            found = _find_on_path(command, directory, environ)
        if found is not None:
            return str(directory / found)
        shown = escape_text(command)
        members = member_form(written)  # not the command itself: an argument may be a secret
        if members:
            shown = "of this name with its spaces"
        cure = f"write {members}" if members else "install it, or write its full path"
        if has_directory:
            problem = f"there is no program {shown}" + (f": {cure}" if members else "")
            raise _error(self._server, "command", problem)
        path = escape_text(environ.get("PATH", os.defpath)[:_MAX_SHOWN])
        problem = f"no program {shown} on PATH ({path}): {cure}"
        raise _error(self._server, "command", problem)


def _find_on_path(name: str, directory: Path, environ: Mapping[str, str]) -> str | None:
    """Return the first program on PATH, as `execvpe` finds it in a child that is in `directory`."""
    # A relative entry counts from there, and an empty one is that directory itself.
    for entry in os.get_exec_path(environ):
        candidate = directory / entry / name
        if _is_file(candidate) and os.access(candidate, os.X_OK):
            return str(candidate)
    return None


def _find_on_windows(command: str, environ: Mapping[str, str]) -> str | None:
    try:
        found = windows_command([command], environ, is_file=_is_file)
    except (FileNotFoundError, UnsafeArgument):
        return None
    program = found.strip('"') if isinstance(found, str) else found[0]
    return program if _is_file(program) else None


def _is_file(path: str | Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  no error where it may not be looked at


def _is_path(name: str) -> bool:
    return (name.upper() if _WINDOWS else name) == "PATH"


def _read_env_file(server: ServerConfig, path: str) -> dict[str, str]:
    """Return a file's variables; none for an empty path.

    Raises:
        InvalidConfig: it cannot be read, with the place in the file or in the configuration.
    """
    if not path:
        return {}
    try:
        data, _ = read_regular_file(Path(path), max_size=_MAX_ENV_FILE)
        return parse_env_file(data, file=path)
    except OSError as exc:
        problem = f"the file {escape_text(path)} cannot be read ({exc.strerror or exc})"
        raise _error(server, "env_file", problem) from exc
    except InvalidConfig as exc:
        problems = [replace(problem, server=server.name) for problem in exc.problems]
        raise InvalidConfig(problems) from None


def _error(server: ServerConfig, member: str, problem: str) -> InvalidConfig:
    return InvalidConfig([ConfigProblem(server.place_of(member), problem, server.name)])
