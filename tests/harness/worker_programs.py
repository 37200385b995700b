"""Workers of a server as programs on 127.0.0.1, which share a Redis."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.redis_server import RedisServer

__all__ = ["PROGRAMS_OF_WORKERS", "worker_program"]

PROGRAMS_OF_WORKERS: Final = ("serve_http", "uvicorn", "gunicorn")


@contextmanager
def worker_program(module: str, redis: RedisServer, how: str) -> Iterator[int]:
    """Start one worker, yield its port, and end it.

    Args:
        module: what `python -m MODULE URL HOW` serves, printing its port; for gunicorn, with the
            URL in `MCP_TEST_REDIS`, it has the application `app`.
        redis: the running server.
        how: one of `PROGRAMS_OF_WORKERS`.
    """
    environment = os.environ | {"MCP_TEST_REDIS": redis.url}
    options: dict[str, Any] = {"env": environment, "text": True, "stdout": subprocess.PIPE}
    if how != "gunicorn":
        command = [sys.executable, "-m", module, redis.url, how]
        with subprocess.Popen(command, **options) as process:
            try:
                assert process.stdout is not None
                yield int(process.stdout.readline())
            finally:
                process.kill()
        return
    if importlib.util.find_spec("gunicorn") is None:
        assert os.environ.get("CI") != "true", "gunicorn is missing"
        pytest.skip("needs gunicorn")
    listener = socket.create_server(("127.0.0.1", 0))
    command = [sys.executable, "-W", "ignore", "-m", "gunicorn", f"{module}:app", "--preload"]
    command += ["--bind", f"fd://{listener.fileno()}", "--worker-class"]
    command += ["uvicorn.workers.UvicornWorker", "--log-level", "error"]
    fds = [listener.fileno()]
    with listener, subprocess.Popen(command, pass_fds=fds, **options) as process:
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()  # and with it its worker
            process.wait(PATIENCE)
