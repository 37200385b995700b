"""Run a program as on a system without what only POSIX has: `python other_system.py FILE WORD...`

`-c CODE` in place of `FILE` runs code. This module imports the libraries that the program needs,
and gives them complete copies of the modules of the system. Then it removes from the real ones what
Windows lacks. So it is the project's own code that meets a system without it.

This imitates what is missing, and not how Windows behaves.
"""

# Imported for their copies of the modules of the system.
# ruff: noqa: F401
from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import importlib.metadata
import logging.handlers
import multiprocessing.util
import os
import pathlib
import runpy
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import webbrowser
from functools import partial
from types import ModuleType
from typing import Any, Final

import trio
import trio._subprocess

MISSING: Final = {
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK WNOHANG chown fchmod fork forkpty
        get_blocking getegid geteuid getgid getpgid getpgrp getsid getuid initgroups killpg mkfifo
        openpty posix_spawn set_blocking setpgid setsid ttyname uname wait3 wait4
        """,
    "select": "epoll poll PIPE_BUF POLLHUP POLLIN POLLOUT",
    "signal": "SIGALRM SIGCHLD SIGHUP SIGKILL SIGQUIT SIGTSTP SIGUSR1 SIGUSR2 pthread_sigmask",
    "socket": "AF_UNIX SO_REUSEPORT sethostname",
}
MODULES: Final = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")


class Pipe(trio.abc.SendStream, trio.abc.ReceiveStream):
    """A pipe to a child without a descriptor, as trio has them on Windows."""

    def __init__(self, fd: int, stream: Any = trio.lowlevel.FdStream) -> None:
        self._stream = stream(fd)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data: bytes = await self._stream.receive_some(max_bytes)
        return data

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()


def remove_posix() -> None:
    """Make this process look like one on another system."""
    names = {"os": os, "select": select, "signal": signal, "socket": socket}
    pairs: Any = socket
    pairs.socketpair = partial(socket.socketpair, socket.AF_UNIX)  # is its default, by name
    complete = {}
    for name, module in names.items():
        complete[module] = copy = ModuleType(name)
        vars(copy).update(vars(module))
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if isinstance(value, ModuleType) and value in complete and module.__name__ != __name__:
                setattr(module, name, complete[value])
    for module_name, attributes in MISSING.items():
        for attribute in attributes.split():
            vars(names[module_name]).pop(attribute, None)
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    _pretend(complete[os], complete[signal])


def _pretend(posix: Any, signals: Any) -> None:
    system: Any = os
    system.name = "nt"

    def without_proc(function: Any) -> Any:
        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(path, str) and path.startswith(("/proc", "/dev/fd")):
                raise FileNotFoundError(path)
            return function(path, *arguments, **options)

        return call

    system.open = without_proc(posix.open)
    system.listdir = without_proc(posix.listdir)

    def terminate(process: Any) -> None:
        if process.poll() is None:
            posix.kill(process.pid, signals.SIGKILL)

    popen: Any = subprocess.Popen
    popen.terminate = popen.kill = terminate

    def to_child() -> tuple[Pipe, int]:
        source, sink = posix.pipe()
        return Pipe(sink), source

    def from_child() -> tuple[Pipe, int]:
        source, sink = posix.pipe()
        return Pipe(source), sink

    trios: Any = trio._subprocess
    trios.create_pipe_to_child_stdin = to_child
    trios.create_pipe_from_child_output = from_child
    del trio.lowlevel.FdStream
    loops: Any = asyncio
    loops.ProactorEventLoop = asyncio.SelectorEventLoop


if __name__ == "__main__":
    remove_posix()
    sys.argv = sys.argv[1:]
    if sys.argv[0] == "-c":
        code = sys.argv.pop(1)
        exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
