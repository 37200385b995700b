"""mcp-server-fetch: a tool and a prompt that fetch a page, on the SDK's low-level server.

Lines that had to change:

1. `inputSchema=Fetch.model_json_schema()`, and `Fetch(**arguments)` in `call_tool`, are the fields
   of `Fetch` as parameters, with the same `Annotated[..., Field(...)]`. The signature is the
   schema.
2. `list_prompts` and `get_prompt(name, arguments)` are one function with `@server.prompt`.
3. `raise McpError(ErrorData(code=INTERNAL_ERROR, message=text))` is `raise ToolError(text)`, which
   the model reads. For a missing URL nothing is needed: the server refuses it.
4. `[TextContent(type="text", text=text)]` is `text`.

`AnyUrl`, `Field(default=5000, gt=0, lt=1000000)` inside of `Annotated`, and the HTTP client, which
works on both event loops, stay.
"""

import html
import re
from typing import Annotated
from urllib.parse import urljoin
from urllib.robotparser import RobotFileParser

import httpx2
from pydantic import AnyUrl, Field

from mcp_core import ToolError
from mcp_core.registry import Server
from mcp_core.types import GetPromptResult, PromptMessage, TextContent, ToolAnnotations

__all__ = ["make_server"]

AUTONOMOUS = "ported-fetch/1.0 (Autonomous)"
MANUAL = "ported-fetch/1.0 (Manual)"


async def _get(url: str, agent: str) -> httpx2.Response:
    try:
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=True) as client:
            return await client.get(url, headers={"User-Agent": agent}, timeout=30)
    except httpx2.HTTPError as exc:
        raise ToolError(f"{url} cannot be fetched: {exc!r}") from exc


async def _check_robots(url: str, agent: str) -> None:
    robots = await _get(urljoin(url, "/robots.txt"), agent)
    if robots.status_code in (401, 403):
        raise ToolError(f"{robots.url} may not be read; the user can fetch the page by the prompt")
    parser = RobotFileParser()
    parser.parse(robots.text.splitlines() if robots.is_success else [])
    if not parser.can_fetch(agent, url):
        raise ToolError(f"{robots.url} forbids it; the user can fetch the page by the prompt")


async def _fetch(url: str, agent: str, *, raw: bool = False) -> tuple[str, str]:
    """Return a page's text, and what to say before it."""
    response = await _get(url, agent)
    if response.is_error:
        raise ToolError(f"{url} has the status {response.status_code}")
    kind = response.headers.get("content-type", "")
    if raw or "html" not in kind:
        return response.text, f"The content has the type {kind or 'unknown'}:\n"
    body = re.sub(r"(?is)<(script|style).*?</\1>", "", response.text)
    return html.unescape(re.sub(r"<[^>]*>", "", body)).strip(), ""


def make_server(*, ignore_robots_txt: bool = False) -> Server:
    """Return the server."""
    server = Server("mcp-fetch")
    annotations = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=True)

    @server.tool(name="fetch", annotations=annotations)
    async def fetch(
        url: Annotated[AnyUrl, Field(description="the page's address")],
        max_length: Annotated[
            int, Field(default=5000, description="characters to return", gt=0, lt=1000000)
        ],
        start_index: Annotated[int, Field(default=0, description="the first character", ge=0)],
        raw: Annotated[bool, Field(default=False, description="return HTML as it is")],
    ) -> str:
        """Fetch a page as text."""
        if not ignore_robots_txt:
            await _check_robots(str(url), AUTONOMOUS)
        content, prefix = await _fetch(str(url), AUTONOMOUS, raw=raw)
        part = content[start_index : start_index + max_length]
        if not part:
            return f"{prefix}{url} has no more content"
        rest = len(content) - start_index - len(part)
        more = f"\n\n{rest} characters follow, from start_index {start_index + len(part)}"
        return f"{prefix}{url}:\n{part}{more if rest else ''}"

    @server.prompt(name="fetch")
    async def fetch_manually(url: Annotated[str, "the page's address"]) -> GetPromptResult:
        """Fetch a page as text."""
        try:
            content, prefix = await _fetch(url, MANUAL)
            description = f"The content of {url}"
        except ToolError as exc:
            content, prefix = str(exc), ""
            description = f"{url} cannot be fetched"
        message = PromptMessage(role="user", content=TextContent(prefix + content))
        return GetPromptResult(description=description, messages=[message])

    return server
