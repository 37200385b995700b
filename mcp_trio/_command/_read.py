"""`mcp-trio read`: one resource, as it is, on stdout or into a file.

Rules of this file:

1. Whoever pipes or saves a resource gets its very bytes: text as UTF-8, a blob decoded, nothing in between or behind.
2. A terminal gets text only. Of a blob it is told how large it is and how to get it.
3. The list of resources is asked for only when the server has refused: it may be long, and it need not name them all.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from contextlib import suppress
from typing import TYPE_CHECKING

from mcp_core import McpTrioError, PeerError, RemoteProtocolError
from mcp_core.registry import DeclarationError, UriMatcher, UriTemplate

from ._content import summary
from ._names import did_you_mean
from ._problem import ANSWERED_ERROR, Problem
from ._progress import progress_on
from ._screen import Screen, as_document
from ._talk import cure_of, declared_by, talk
from ._uri import check_uri

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mcp_core.types import ReadResourceResult, ResourceContents
    from mcp_trio import Client

    from ._talk import Target

__all__ = ["read"]


def read(target: Target, uri: str, *, output: Path | None, as_json: bool) -> int:
    """Read a resource and show it, or write it to `output`; returns the exit status.

    Raises:
        Problem: `uri` is none, the conversation went wrong, the server has no such resource, or `output` cannot be written.
    """
    check_uri(uri)

    async def body(client: Client) -> int:
        result = await _result(client, uri, target)
        _put(result, uri, target.stderr, output=output, as_json=as_json)
        return 0

    return talk(target, body)


async def _result(client: Client, uri: str, target: Target) -> ReadResourceResult:
    if declared_by(client).resources is None:
        raise Problem(f"the server has no resources, so it has no {uri}")
    try:
        with progress_on(target.stderr, uri) as progress:
            return await client.read_resource(uri, **target.call_options(progress))
    except PeerError as exc:
        hint = did_you_mean(uri, await _others(client, uri, target.timeout))
        raise Problem(
            f"the server answered with an error: {exc}{cure_of(exc)}{hint and '.'}{hint}", ANSWERED_ERROR
        ) from exc


async def _others(client: Client, uri: str, timeout: float) -> list[str]:
    """The URIs and templates of the server if `uri` is not among them."""
    uris: list[str] = []
    templates: list[str] = []
    # There is an error to be told already: what goes wrong here is not worth another one.
    with suppress(McpTrioError):
        uris = [resource.uri for resource in await client.list_resources(timeout=timeout)]
        templates = [found.uri_template for found in await client.list_resource_templates(timeout=timeout)]
    if uri in uris or _fits(uri, templates):
        return []
    return [*uris, *templates]


def _fits(uri: str, templates: Iterable[str]) -> bool:
    for template in templates:
        with suppress(DeclarationError):
            if UriMatcher(UriTemplate(template)).match(uri) is not None:
                return True
    return False


# --- The contents --------------------------------------------------------------------------------------------------------


def _put(result: ReadResourceResult, uri: str, stderr: Screen, *, output: Path | None, as_json: bool) -> None:
    contents, stdout = result.contents, Screen(sys.stdout)
    if len(contents) != 1:
        names = ", ".join(found.uri for found in contents)
        stderr.say(
            f"mcp-trio: {uri} has {f'{len(contents)} contents: {names}' if contents else 'no contents'}"
        )
    if output is None and stdout.terminal and not as_json:
        for found in contents:
            stdout.show(_shown(found))
        return
    data = as_document(result) if as_json else b"".join(map(_bytes_of, contents))
    if output is None:
        stdout.write(data)
        return
    try:
        output.write_bytes(data)
    except OSError as exc:
        raise Problem(f"{output} cannot be written: {exc.strerror}; give --output another file") from exc


def _shown(found: ResourceContents) -> str:
    if found.blob is None:
        return found.text or ""
    return summary(found.uri, found.mime_type, found.blob, "--output FILE saves them")


def _bytes_of(found: ResourceContents) -> bytes:
    if found.blob is None:
        return (found.text or "").encode()
    try:
        return b64decode(found.blob, validate=True)
    except ValueError as exc:
        raise RemoteProtocolError(f"the blob of {found.uri} is not base64 ({exc})") from None
