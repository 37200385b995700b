"""fastmcp-sample-server 0.4.1: 20 tools, 5 resources and 3 prompts, with a database of notes.

Lines that had to change:

1. `FastMCP(NAME)` is `Server(NAME, version=VERSION)`. The version was a constant beside it.
2. `@tool()` is `@tool(thread=True)` where a function uses the database or the network: a plain
   `def` runs in the event loop here, while FastMCP takes a worker thread for each.
3. `mcp.run(transport="http", host=..., port=...)` is `run_http(server, port)` of the driver, and
   `mcp.run(transport="stdio")` is `run(server)`, so that one server works with both drivers.

All else stays: the decorator around `mcp.tool` that measures each call, `-> dict` for data and for
`{"error": ...}`, `search: str | None = None`, a resource beside a template that matches it, too.
"""

# mypy: disable-error-code="untyped-decorator, type-arg, no-untyped-def"
# The annotations are those of the published server.

import base64
import functools
import hashlib
import json
import math
import random
import re
import secrets
import sqlite3
import string
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit

from mcp_core.registry import Server

__all__ = ["make_server", "refuse_private"]

NAME = "sample"
VERSION = "0.4.1"
MAX_BYTES = 200_000
METERS = {
    "mm": 0.001,
    "cm": 0.01,
    "m": 1.0,
    "km": 1000.0,
    "in": 0.0254,
    "ft": 0.3048,
    "yd": 0.9144,
    "mi": 1609.344,
}
GRAMS = {"mg": 0.001, "g": 1.0, "kg": 1000.0, "t": 1e6, "oz": 28.3495, "lb": 453.592}
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def refuse_private(url: str) -> str:
    """Return a URL of the public network."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.hostname in (None, "localhost", "127.0.0.1"):
        raise ValueError(f"{parts.hostname} isn't public")
    return url


class Notes:
    """Notes in a database. Each method opens it, so it may be called in any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._run(
            "CREATE TABLE IF NOT EXISTS notes"
            " (id INTEGER PRIMARY KEY, title TEXT, body TEXT, created TEXT)"
        )

    def _run(self, statement: str, *values: Any) -> tuple[list[dict[str, Any]], sqlite3.Cursor]:
        with closing(sqlite3.connect(self._path)) as database, database:
            database.row_factory = sqlite3.Row
            cursor = database.execute(statement, values)
            return [dict(row) for row in cursor.fetchall()], cursor

    def add(self, title: str, body: str) -> dict[str, Any]:
        if not title.strip():
            raise ValueError("a note needs a title")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        statement = "INSERT INTO notes (title, body, created) VALUES (?, ?, ?)"
        _, cursor = self._run(statement, title.strip(), body, now)
        assert cursor.lastrowid is not None
        return self.get(cursor.lastrowid)

    def get(self, number: int) -> dict[str, Any]:
        found, _ = self._run("SELECT * FROM notes WHERE id = ?", number)
        return found[0] if found else {}

    def find(self, limit: int, search: str | None) -> list[dict[str, Any]]:
        pattern = f"%{search or ''}%"
        statement = "SELECT * FROM notes WHERE title LIKE ? OR body LIKE ? ORDER BY id DESC LIMIT ?"
        return self._run(statement, pattern, pattern, limit)[0]

    def update(self, number: int, title: str | None, body: str | None) -> dict[str, Any]:
        if title is None and body is None:
            raise ValueError("there is nothing to change")
        statement = "UPDATE notes SET title = coalesce(?, title), body = coalesce(?, body)"
        self._run(f"{statement} WHERE id = ?", title, body, number)
        return self.get(number)

    def delete(self, number: int) -> bool:
        return self._run("DELETE FROM notes WHERE id = ?", number)[1].rowcount > 0

    def count(self) -> int:
        return int(self._run("SELECT count(*) AS n FROM notes")[0][0]["n"])


def make_server(
    database: Path,
    *,
    check_url: Callable[[str], str] = refuse_private,
    forecasts: str = "https://api.open-meteo.com",
) -> Server:
    """Return the server. Tests have no public network, and so other `check_url` and `forecasts`."""
    server = Server(NAME, version=VERSION)
    notes = Notes(database)
    calls: list[dict[str, Any]] = []

    def measured(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                milliseconds = (time.perf_counter() - begin) * 1000
                calls.append({"tool": function.__name__, "duration_ms": milliseconds})

        return wrapper

    def tool(**options: Any) -> Callable[[Callable[..., Any]], Any]:
        return lambda function: server.tool(**options)(measured(function))

    _declare_texts(tool)
    _declare_numbers(tool)
    _declare_units(tool)
    _declare_network(tool, check_url, forecasts)
    _declare_notes(server, tool, notes)
    _declare_prompts(server)

    @server.resource("resource://server/info")
    def server_info() -> dict:
        """The server and its notes."""
        python = ".".join(map(str, sys.version_info[:2]))
        return {"name": NAME, "version": VERSION, "python": python, "notes_count": notes.count()}

    @server.resource("resource://telemetry/recent")
    def recent_calls() -> dict:
        """The last 100 calls, newest first."""
        return {"calls": calls[:-101:-1]}

    @server.resource("resource://telemetry/summary")
    def summary_of_calls() -> dict:
        """How many calls there were."""
        return {"total_recorded": len(calls)}

    return server


def _declare_texts(tool: Callable[..., Any]) -> None:
    @tool()
    def analyze_text(text: str) -> dict:
        """Count characters, words and sentences."""
        words = text.split()
        return {
            "characters": len(text),
            "words": len(words),
            "sentences": len([part for part in re.split(r"[.!?]", text) if part.strip()]),
            "avg_word_length": round(sum(map(len, words)) / len(words), 2) if words else 0,
        }

    @tool()
    def echo(message: str) -> str:
        """Return the message."""
        return f"You said: {message}"

    @tool()
    def hash_text(text: str, algorithm: str = "sha256") -> dict:
        """Hash a text.

        Args:
            text: the text, hashed as UTF-8.
            algorithm: md5, sha1, sha256 or sha512.
        """
        name = algorithm.strip().lower()
        if name not in ("md5", "sha1", "sha256", "sha512"):
            return {"error": f"unknown algorithm {algorithm}"}
        digest = hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()
        return {"algorithm": name, "input_length": len(text), "hex": digest}

    @tool()
    def base64_encode(text: str, url_safe: bool = False) -> str:
        """Encode a text as base64."""
        return base64.b64encode(text.encode(), b"-_" if url_safe else None).decode()

    @tool()
    def base64_decode(data: str, url_safe: bool = False) -> str:
        """Decode base64 to a text."""
        try:
            return base64.b64decode(data, b"-_" if url_safe else None, validate=True).decode()
        except ValueError as exc:
            return f"Error: {exc}"

    @tool()
    def json_format(data: str, indent: int = 2, sort_keys: bool = False) -> str:
        """Indent a JSON text."""
        try:
            return json.dumps(json.loads(data), indent=indent, sort_keys=sort_keys)
        except ValueError as exc:
            return f"Error: {exc}"

    @tool()
    def regex_match(
        pattern: str, text: str, ignore_case: bool = False, multiline: bool = False
    ) -> dict:
        """Find the first 50 matches of a pattern."""
        flags = (re.IGNORECASE if ignore_case else 0) | (re.MULTILINE if multiline else 0)
        try:
            found = list(re.finditer(pattern, text, flags))[:50]
        except re.error as exc:
            return {"error": f"{exc}"}
        matches = [
            {"match": m[0], "start": m.start(), "end": m.end(), "groups": list(m.groups())}
            for m in found
        ]
        return {"pattern": pattern, "count": len(matches), "matches": matches}


def _declare_numbers(tool: Callable[..., Any]) -> None:
    @tool()
    def calculate(expression: str) -> str:
        """Calculate sums, differences, products and quotients."""
        if not re.fullmatch(r"[-+*/%().\d\s]{1,200}", expression) or "**" in expression:
            return "Error: numbers, parentheses and + - * / % are allowed"
        try:
            result = eval(expression, {"__builtins__": {}})
        except (ArithmeticError, SyntaxError, TypeError) as exc:
            return f"Error: {exc}"
        return f"{expression} = {result}"

    @tool()
    def get_server_time() -> str:
        """Return the time here, in UTC."""
        return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"

    @tool()
    def random_number(min_val: int = 1, max_val: int = 100) -> str:
        """Return a number between the two."""
        if min_val >= max_val:
            return "Error: min_val has to be below max_val"
        return f"{random.randint(min_val, max_val)}"

    @tool()
    def uuid_generate(count: int = 1, version: int = 4) -> dict:
        """Make UUIDs.

        Args:
            count: how many, up to 100.
            version: 1 or 4.
        """
        makers = {1: uuid.uuid1, 4: uuid.uuid4}
        if version not in makers or not 1 <= count <= 100:
            return {"error": "version is 1 or 4, count 1 to 100"}
        uuids = [str(makers[version]()) for _ in range(count)]
        return {"version": version, "count": count, "uuids": uuids}

    @tool()
    def password_generate(
        length: int = 20,
        use_uppercase: bool = True,
        use_digits: bool = True,
        use_symbols: bool = True,
    ) -> dict:
        """Make a password."""
        if not 8 <= length <= 128:
            return {"error": "length has to be 8 to 128"}
        kinds = [string.ascii_lowercase]
        kinds += [string.ascii_uppercase] if use_uppercase else []
        kinds += [string.digits] if use_digits else []
        kinds += ["!#$%&*+-.:;=?@_"] if use_symbols else []
        characters = [secrets.choice(kind) for kind in kinds]
        while len(characters) < length:
            characters.append(secrets.choice("".join(kinds)))
        secrets.SystemRandom().shuffle(characters)
        return {"length": length, "password": "".join(characters)}


def _declare_units(tool: Callable[..., Any]) -> None:
    @tool()
    def convert_units(value: float, from_unit: str, to_unit: str) -> dict:
        """Convert lengths, weights and temperatures (C, F, K)."""
        base = {"value": value, "from": from_unit, "to": to_unit}
        scales = {"C": (1.0, 273.15), "F": (5 / 9, 273.15 - 160 / 9), "K": (1.0, 0.0)}
        if from_unit in scales and to_unit in scales:
            (factor, zero), (other, other_zero) = scales[from_unit], scales[to_unit]
            result = (value * factor + zero - other_zero) / other
            return {**base, "result": round(result, 6), "category": "temperature"}
        for category, table in ("length", METERS), ("weight", GRAMS):
            if from_unit in table and to_unit in table:
                result = value * table[from_unit] / table[to_unit]
                return {**base, "result": round(result, 6), "category": category}
        return {"error": f"{from_unit} isn't converted to {to_unit}"}


def _declare_network(
    tool: Callable[..., Any], check_url: Callable[[str], str], forecasts: str
) -> None:
    @tool(thread=True)
    def fetch_url(url: str, method: str = "GET", max_bytes: int = MAX_BYTES) -> dict:
        """Fetch a page of the public network.

        Args:
            url: its address, with http or https.
            method: GET or HEAD.
            max_bytes: the rest of the body is left out.
        """
        if method.upper() not in ("GET", "HEAD"):
            return {"error": "method is GET or HEAD"}
        try:
            request = urllib.request.Request(check_url(url), method=method.upper())
            with OPENER.open(request, timeout=10) as response:
                body = response.read(max_bytes + 1)
        except (URLError, ValueError) as exc:
            return {"error": f"{exc}"}
        return {
            "url": response.url,
            "status": response.status,
            "headers": dict(response.headers),
            "bytes_returned": min(len(body), max_bytes),
            "truncated": len(body) > max_bytes,
            "body": body[:max_bytes].decode(errors="replace"),
        }

    @tool(thread=True)
    def weather(latitude: float, longitude: float) -> dict:
        """Return the weather at a place."""
        if not (math.fabs(latitude) <= 90 and math.fabs(longitude) <= 180):
            return {"error": "there is no such place"}
        query = f"latitude={latitude}&longitude={longitude}&current=temperature_2m"
        try:
            with OPENER.open(f"{forecasts}/v1/forecast?{query}", timeout=10) as response:
                current = json.load(response)["current"]
        except (URLError, ValueError, KeyError) as exc:
            return {"error": f"{exc}"}
        return {
            "latitude": latitude,
            "longitude": longitude,
            "temperature": current.get("temperature_2m"),
        }


def _declare_notes(server: Server, tool: Callable[..., Any], notes: Notes) -> None:
    def or_error(note: dict[str, Any], number: int) -> dict[str, Any]:
        return note or {"error": f"there is no note {number}"}

    @tool(thread=True)
    def note_add(title: str, body: str = "") -> dict:
        """Add a note."""
        try:
            return notes.add(title, body)
        except ValueError as exc:
            return {"error": f"{exc}"}

    @tool(thread=True)
    def note_list(limit: int = 50, search: str | None = None) -> dict:
        """List notes, newest first, or those with a text."""
        found = notes.find(limit, search)
        return {"count": len(found), "total": notes.count(), "notes": found}

    @tool(thread=True)
    def note_get(note_id: int) -> dict:
        """Return a note."""
        return or_error(notes.get(note_id), note_id)

    @tool(thread=True)
    def note_update(note_id: int, title: str | None = None, body: str | None = None) -> dict:
        """Change the title or the body of a note, or both."""
        try:
            return or_error(notes.update(note_id, title, body), note_id)
        except ValueError as exc:
            return {"error": f"{exc}"}

    @tool(thread=True)
    def note_delete(note_id: int) -> dict:
        """Delete a note."""
        return {"deleted": notes.delete(note_id), "id": note_id}

    @server.resource("resource://notes/all", thread=True)
    def all_notes() -> dict:
        """All notes, newest first."""
        return {"notes": notes.find(500, None)}

    @server.resource("resource://notes/{note_id}", thread=True)
    def one_note(note_id: str) -> dict:
        """One note."""
        if not note_id.isdecimal():
            return {"error": f"{note_id} isn't a number"}
        return or_error(notes.get(int(note_id)), int(note_id))


def _declare_prompts(server: Server) -> None:
    @server.prompt()
    def summarize_text(text: str, style: str = "concise") -> str:
        """Ask for a summary."""
        return f"Write a {style} summary of this text:\n\n{text}"

    @server.prompt()
    def code_review(code: str, language: str = "python") -> str:
        """Ask for a review."""
        return f"Review this {language} code:\n\n{code}"

    @server.prompt()
    def explain_error(error_message: str, context: str = "") -> str:
        """Ask what an error means."""
        return f"Explain this error: {error_message}\n{context}".rstrip()
