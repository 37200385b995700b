"""nginx and haproxy as processes, which terminate TLS and HTTP/2 in front of a server on this
machine.

They are Debian's. A test that needs one is skipped where it is not installed.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import trustme

__all__ = ["haproxy", "nginx", "serve_nginx", "wait_for"]


# `{h2}` selects HTTP/2 to the backend, `{requests}` the requests per connection. Streams are not
# buffered.
NGINX: Final = """
daemon off;
pid {place}/nginx.pid;
error_log {place}/nginx.log;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {place}/body;
  proxy_temp_path {place}/proxy;
  fastcgi_temp_path {place}/fastcgi;
  uwsgi_temp_path {place}/uwsgi;
  scgi_temp_path {place}/scgi;
  keepalive_requests {requests};
  upstream behind {{ server 127.0.0.1:{behind}; keepalive 16; }}
  server {{
    listen 127.0.0.1:{port} ssl http2;
    ssl_certificate {pem};
    ssl_certificate_key {pem};
    client_max_body_size 8m;
    location / {{
      proxy_pass http://behind;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
    }}
  }}
}}
"""
# Around a part of a configuration, which has `map`, `upstream` and `server` blocks.
NGINX_AROUND: Final = """
daemon off;
pid {place}/nginx.pid;
error_log {place}/nginx.log;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {place}/body;
  proxy_temp_path {place}/proxy;
  fastcgi_temp_path {place}/fastcgi;
  uwsgi_temp_path {place}/uwsgi;
  scgi_temp_path {place}/scgi;
  PART
}}
"""
HAPROXY: Final = """
global
  maxconn 512
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{port} ssl crt {pem} alpn h2,http/1.1
  default_backend behind
backend behind
  server one 127.0.0.1:{behind}{h2}
"""


@contextmanager
def nginx(
    place: Path, authority: trustme.CA, behind: int, *, requests: int = 1000
) -> Iterator[str]:
    """Run nginx in front of the port `behind`, and yield its URL."""
    words = ["nginx", "-p", str(place), "-e", f"{place}/nginx.log", "-c", f"{place}/nginx.conf"]
    settings = NGINX.replace("{requests}", str(requests))
    with _running(words, place, place / "nginx.conf", settings, authority, behind) as url:
        yield url


@contextmanager
def serve_nginx(place: Path, authority: trustme.CA, part: str) -> Iterator[str]:
    """Run nginx with a part of a configuration, which listens on port 443, and yield its URL.

    The port and the files of the certificate are replaced.
    """
    words = ["nginx", "-p", str(place), "-e", f"{place}/nginx.log", "-c", f"{place}/nginx.conf"]
    part = part.replace("{", "{{").replace("}", "}}")
    part = re.sub(r"\blisten 443\b", "listen 127.0.0.1:{port}", part)
    part, replaced = re.subn(r"(ssl_certificate(?:_key)?\s+)\S+;", r"\1{pem};", part)
    assert replaced == 2
    settings = NGINX_AROUND.replace("PART", part)
    with _running(words, place, place / "nginx.conf", settings, authority, 0) as url:
        yield url


@contextmanager
def haproxy(
    place: Path, authority: trustme.CA, behind: int, *, http2: bool = True
) -> Iterator[str]:
    """Run haproxy in front of the port `behind`, and yield its URL.

    It uses HTTP/2 to the backend too, unless `http2` is false.
    """
    settings = HAPROXY.replace("{h2}", " proto h2" if http2 else "")
    words = ["haproxy", "-db", "-f", f"{place}/haproxy.cfg"]
    with _running(words, place, place / "haproxy.cfg", settings, authority, behind) as url:
        yield url


@contextmanager
def _running(
    words: list[str], place: Path, file: Path, settings: str, authority: trustme.CA, behind: int
) -> Iterator[str]:
    program = shutil.which(words[0], path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"needs {words[0]}")
    pem = place / "server.pem"
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(pem)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file.write_text(settings.format(place=place, pem=pem, port=port, behind=behind))
    with (place / "log.txt").open("wb") as log:
        process = subprocess.Popen([program, *words[1:]], stdout=log, stderr=log)
        try:
            wait_for(port, process, place / "log.txt")
            yield f"https://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(PATIENCE)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path | None = None) -> None:
    """Wait until a process listens on a port of this machine.

    Raises:
        AssertionError: it ended, or did not listen in time.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert process.poll() is None, log and log.read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
        else:
            return
