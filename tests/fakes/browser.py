"""The first step of a browser that a login has started: from the URL given to it to the login page.

That URL leads to a start page, which is on loopback or in a file.
"""

from __future__ import annotations

import re
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["login_page_of", "visit"]


def visit(url: str) -> str:
    """Open a page on loopback or in a file. Return where it redirects to, or else its HTML."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).read_text("utf-8")
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path)
        reply = connection.getresponse()
        return reply.headers["location"] or reply.read().decode()
    finally:
        connection.close()


def login_page_of(url: str) -> str:
    """Return the login page to which `url` leads, after a click if necessary."""
    page = visit(url)
    if page.startswith("http"):
        return page
    link = re.search(r'href="([^"]+)"', page)
    assert link is not None, page
    return unescape(link[1])
