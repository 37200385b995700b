"""A process that has imported the command and runs it in forks of itself.

A fork takes 10 ms, a new interpreter 300 ms.

`python fork_server.py DESCRIPTOR` reads requests from the socket of that number, one at a time: a
JSON array of the words, the working directory and the environment, with three descriptors for
stdin, stdout and stderr. It answers with the process id, and with the exit status when the process
has ended. It ends when the other end of the socket is closed.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import socket
import sys

import mcp_trio.__main__
import mcp_trio.cli as command
from tests.children import inherit_python_path


def serve(control: socket.socket) -> None:
    """Return in each fork, which then has the requested words, environment and descriptors.

    Raises:
        SystemExit: the other end of the socket is closed.
    """
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 3)
        if not request:
            raise SystemExit
        words, directory, environment = json.loads(request)
        pid = os.fork()
        if pid == 0:
            control.close()
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.chdir(directory)
            os.environ.clear()
            os.environ.update(environment)
            sys.argv = [mcp_trio.__main__.__file__, *words]
            del sys.path[0]  # as `python -m mcp_trio` does
            return
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        control.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    for module in pkgutil.walk_packages(command.__path__, f"{command.__name__}."):
        importlib.import_module(module.name)
    inherit_python_path()
    serve(socket.socket(fileno=int(sys.argv[1])))
    raise SystemExit(command.main())
