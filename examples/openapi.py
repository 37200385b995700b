"""Serve the operations of an OpenAPI 3.1 document as tools.

OPENAPI=petstore.json API_TOKEN=... mcp-trio run examples/openapi.py
"""

import json
import os
import re
import sys
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from mcp_core import ToolError
from mcp_core.registry import Server
from mcp_core.types import ToolAnnotations


class NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none: another address must not get the token."""


def call(base: str, path: str, method: str, places: dict[str, str], /, **arguments: Any) -> str:
    sent: dict[str, dict[str, str]] = {"path": {}, "query": {}, "header": {}}
    for name, value in arguments.items():
        if name in places:
            sent[places[name]][name] = value if isinstance(value, str) else json.dumps(value)
    for name, text in sent["path"].items():
        if text in ("", ".", ".."):
            raise ToolError(f"{name}={text!r} would lead to another path")
        path = path.replace(f"{{{name}}}", quote(text, safe=""))
    headers = sent["header"] | {"Content-Type": "application/json"}
    if token := os.environ.get("API_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    body = json.dumps(arguments["body"]).encode() if "body" in arguments else None
    url = f"{base}{path}?{urlencode(sent['query'])}"
    try:
        request = Request(url, body, headers, method=method.upper())  # noqa: S310 - of the document
        with build_opener(NoRedirects).open(request, timeout=30) as response:
            return str(response.read(1024 * 1024), errors="replace")  # a longer one is cut off
    except HTTPError as exc:
        raise ToolError(f"status {exc.code}: {str(exc.read(1000), errors='replace')}") from exc


def read(path: str) -> Any:
    """Return a document whose schemas are where a tool's schema has them."""
    text = json.dumps(json.loads(Path(path).read_text("utf-8")))
    if outside := re.search(r'"\$ref": "(?!#/)[^"]*"', text):
        raise ValueError(f"{outside[0]} is in another document: put it into this one")
    return json.loads(text.replace('"#/components/schemas/', '"#/$defs/'))


def definitions(part: Any, schemas: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    for name in set(re.findall(r'"#/\$defs/([^"/]+)', json.dumps(part))) - found.keys():
        found[name] = schemas[name]
        definitions(schemas[name], schemas, found)
    return found


def add_operation(server: Server, document: Any, base: str, path: str, method: str) -> None:
    def resolve(part: Any) -> Any:
        keys = part["$ref"].removeprefix("#/").split("/") if "$ref" in part else ()
        return reduce(getitem, keys, document) if keys else part

    operation, shared = document["paths"][path][method], document["paths"][path]
    listed = map(resolve, [*shared.get("parameters", ()), *operation.get("parameters", ())])
    parameters = {each["name"]: each for each in listed if each["in"] != "cookie"}
    properties = {name: each.get("schema", {}) for name, each in parameters.items()}
    required = [name for name, each in parameters.items() if each.get("required")]
    if body := resolve(operation.get("requestBody", {})):
        if "application/json" not in body["content"]:
            print(f"left out {method} {path}: its body isn't JSON", file=sys.stderr)
            return
        properties["body"] = body["content"]["application/json"].get("schema", {})
        required += ["body"] if body.get("required") else []
    schema: Any = {"type": "object", "properties": properties, "required": required}
    schema["$defs"] = definitions(schema, document.get("components", {}).get("schemas", {}), {})
    name = operation.get("operationId", f"{method}{path}")
    server.add_tool(
        partial(call, base, path, method, {name: each["in"] for name, each in parameters.items()}),
        name=re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_"),
        description=operation.get("description") or operation.get("summary"),
        input_schema=schema | {"additionalProperties": False},
        annotations=ToolAnnotations(read_only_hint=method == "get"),
        thread=True,
    )


def make_server(document: Any) -> Server:
    url = next((each["url"] for each in document.get("servers", ())), "")
    if not re.match("https?://[^{]+$", url):
        raise ValueError(f"the document's first server is {url!r}: write its whole http(s) URL")
    server = Server(document["info"]["title"], document["info"]["version"])
    for path, item in document.get("paths", {}).items():
        for method in sorted(item.keys() & {"get", "put", "post", "patch", "delete"}):
            add_operation(server, document, url.rstrip("/"), path, method)
    return server


if "OPENAPI" in os.environ:
    server = make_server(read(os.environ["OPENAPI"]))
