"""`mcp-trio read`: read a resource to stdout or into a file.

1. A pipe or file gets exactly the resource's bytes: text as UTF-8, a blob decoded, nothing
   added.
2. A terminal gets text only. A blob is described by a line with its size.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from mcp_core import McpTrioError, PeerError
from mcp_core.urls import InvalidUriTemplate, UriMatcher, UriTemplate
from mcp_trio.cli._errors import SERVER_ERROR, CliError, check_uri, join_names, suggestion
from mcp_trio.cli._options import add_output, add_session_options
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._progress import show_progress
from mcp_trio.cli._screen import Screen, describe_blob, encode_document
from mcp_trio.cli._session import (
    allow_undeclared,
    describe_error,
    is_unknown_method,
    report_undeclared,
    run_session,
    server_capabilities,
)
from mcp_trio.cli._target import parse_server_command

from ._output import STDOUT, bytes_of_contents, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from mcp_core.types import ReadResourceResult, ResourceContents
    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import Target

__all__ = ["parse", "read"]


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "read",
        description="Reads a resource of a server and writes it to stdout, unchanged. A"
        " terminal gets text\n"
        "only, and a line that describes other content.",
        example="mcp-trio read weather://Lima/today weather.py",
        URI="the URI of the resource; `mcp-trio inspect` lists resources and templates",
    )
    add_output(parser, "write to FILE instead of stdout, and replace it if it exists")
    add_session_options(parser)
    found, target = parse_server_command(parser, words)
    return partial(read, target, found.uri, output=found.output, as_json=found.json)


def read(target: Target, uri: str, *, output: Path | None, as_json: bool) -> int:
    """Read a resource, write it to stdout or `output`, and return the exit status.

    Raises:
        CliError: `uri` is invalid, the connection failed, the server has no such resource, or
            `output` cannot be written.
    """
    check_uri(uri)

    async def body(client: Client) -> int:
        result = await _read_resource(client, uri, target)
        _write_contents(result, uri, target.stderr, output=output, as_json=as_json)
        return 0

    return run_session(target, body)


async def _read_resource(client: Client, uri: str, target: Target) -> ReadResourceResult:
    undeclared = server_capabilities(client).resources is None
    absent = CliError(f"the server has no resources, so it has no {uri}")
    if undeclared and not allow_undeclared(client, "resources"):
        raise absent
    try:
        with show_progress(target.stderr, uri) as progress:
            result = await client.read_resource(uri, **target.call_options(progress))
    except PeerError as exc:
        if undeclared and is_unknown_method(client, exc):
            raise absent from exc
        if undeclared:
            report_undeclared(target, "resources")
        # List the resources only after an error: the list may be long, and need not be complete.
        hint = suggestion(uri, await _known_uris(client, uri, target.timeout))
        raise CliError(describe_error(exc, hint), SERVER_ERROR) from exc
    if undeclared:
        report_undeclared(target, "resources")
    return result


async def _known_uris(client: Client, uri: str, timeout: float) -> list[str]:
    """Return the URIs and templates that the server lists; empty if `uri` is one of them."""
    uris: list[str] = []
    templates: list[str] = []
    # There is an error to show already. A second one would only hide it.
    with suppress(McpTrioError):
        uris = [resource.uri for resource in await client.list_resources(timeout=timeout)]
        templates = [
            found.uri_template for found in await client.list_resource_templates(timeout=timeout)
        ]
    if uri in uris or _matches_template(uri, templates):
        return []
    return [*uris, *templates]


def _matches_template(uri: str, templates: Iterable[str]) -> bool:
    """Return True if one of the templates matches `uri`. An invalid template matches nothing."""
    for template in templates:
        with suppress(InvalidUriTemplate):
            if UriMatcher(UriTemplate(template)).match(uri) is not None:
                return True
    return False


# --- Output ---------------------------------------------------------------------------------------


def _write_contents(
    result: ReadResourceResult, uri: str, stderr: Screen, *, output: Path | None, as_json: bool
) -> None:
    contents = result.contents
    output = None if output == STDOUT else output
    stdout = Screen(sys.stdout)
    if len(contents) != 1:
        names = join_names([found.uri for found in contents])
        stderr.write_line(
            f"mcp-trio: {uri} has"
            f" {f'{len(contents)} contents: {names}' if contents else 'no contents'}"
        )
    if output is None and stdout.terminal and not as_json:
        for found in contents:
            stdout.write_text(_terminal_text(found))
        return
    data = encode_document(result) if as_json else b"".join(map(bytes_of_contents, contents))
    if output is None:
        stdout.write_bytes(data)
    else:
        write_file(output, data)


def _terminal_text(found: ResourceContents) -> str:
    if found.blob is None:
        return found.text or ""
    return describe_blob(found.uri, found.mime_type, found.blob, "--output FILE saves them")
