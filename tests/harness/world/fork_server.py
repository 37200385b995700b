"""A process that has imported the command and runs it in forks of itself.

A fork takes 10 ms, a new interpreter 300 ms.

`python fork_server.py DESCRIPTOR` reads requests from the socket with that number: a JSON array of
the words, the working directory and the environment, with descriptors for stdin, stdout, stderr and
a socket. On this it sends the process id, and the exit status once the process has ended. Forks run
side by side. It ends when the other end of its own socket is closed.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import selectors
import socket
import sys

import mcp_trio.__main__
import mcp_trio.cli as command
from mcp_trio.cli import _session
from tests.harness.world.children import inherit_python_path


def serve(control: socket.socket) -> None:
    """Return in each fork, which then has the requested words, environment and descriptors.

    Raises:
        SystemExit: the other end of the socket is closed.
    """
    running: dict[int, tuple[int, int]] = {}  # process id and socket, by the process's descriptor
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in running:
                    selector.unregister(key.fd)
                    _report(key.fd, *running.pop(key.fd))
                    continue
                request, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 4)
                if not request:
                    raise SystemExit
                pid = os.fork()
                if pid == 0:
                    selector.close()
                    control.close()
                    for each, (_, report) in running.items():
                        os.close(each)
                        os.close(report)
                    _become(descriptors, *json.loads(request))
                    return
                for descriptor in descriptors[:3]:
                    os.close(descriptor)
                os.write(descriptors[3], str(pid).encode())
                process = os.pidfd_open(pid)
                running[process] = pid, descriptors[3]
                selector.register(process, selectors.EVENT_READ)


def _become(
    descriptors: list[int], words: list[str], directory: str, environment: dict[str, str]
) -> None:
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    # As an interpreter does at its start: a terminal is line-buffered, a pipe cannot seek.
    sys.stdin = os.fdopen(0, encoding=sys.stdin.encoding, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=sys.stdout.encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, sys.stderr.encoding, "backslashreplace", closefd=False)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [mcp_trio.__main__.__file__, *words]
    del sys.path[0]  # as `python -m mcp_trio` does


def _report(process: int, pid: int, report: int) -> None:
    _, status = os.waitpid(pid, 0)
    try:
        os.write(report, str(os.waitstatus_to_exitcode(status)).encode())
    except BrokenPipeError:  # the test waits no longer
        pass
    os.close(report)
    os.close(process)


if __name__ == "__main__":
    for module in pkgutil.walk_packages(command.__path__, f"{command.__name__}."):
        importlib.import_module(module.name)
    inherit_python_path()
    # Output is compared. On a busy machine many servers take longer to start than a user waits in
    # silence. The notice has a test of its own, on a mock clock.
    _session._NOTICE_AFTER = 30.0  # type: ignore[misc]
    serve(socket.socket(fileno=int(sys.argv[1])))
    raise SystemExit(command.main())
