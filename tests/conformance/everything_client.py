"""The client for the official conformance suite (`@modelcontextprotocol/conformance`).

The suite starts `python everything_client.py URL` once per scenario and checks what arrives at URL.

Rules of this file:

1. It is written like any user's client, with public names only.
2. A scenario says what a user wants. What the suite checks is done by the library.
3. The environment names the scenario and the newest revision to use. An unknown scenario is an
   error, so that it cannot pass by doing nothing.
4. If `MCP_TRIO_TRACE` names a file, the conversation is recorded there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener, urlopen

import trio

import mcp_trio
from mcp_core import ALL
from mcp_core.auth import EnterpriseManaged, JwtBearer
from mcp_core.types import CreateMessageParams, CreateMessageResult, ElicitParams, TextContent
from mcp_trio import Client, ClientProfile, LoginConfig, McpTrioError, MemoryStorage, Secret

Scenario = Callable[[Client], Awaitable[object]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    """Register the function that plays a scenario on an open client."""

    def declare(play: Scenario) -> Scenario:
        SCENARIOS[name] = play
        return play

    return declare


# -- Connections and tools -------------------------------------------------------------------------


@scenario("initialize")
@scenario("request-metadata")
async def connect_only(client: Client) -> None:
    """Do nothing: these servers declare nothing."""


@scenario("json-schema-ref-no-deref")
async def list_tools(client: Client) -> None:
    await client.list_tools()


@scenario("tools_call")
async def add_numbers(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


@scenario("sse-retry")
async def call_with_reconnect(client: Client) -> None:
    await client.call_tool("test_reconnection")


@scenario("json-schema-2020-12-preservation")
async def echo_schema(client: Client) -> None:
    (tool,) = [
        tool for tool in await client.list_tools() if tool.name == "json_schema_2020_12_tool"
    ]
    await client.call_tool("json_schema_echo", {"schema": tool.input_schema})


# -- Input requests --------------------------------------------------------------------------------


@scenario("elicitation-sep1034-client-defaults")
async def elicit_defaults(client: Client) -> None:
    await client.call_tool("test_client_elicitation_defaults")


@scenario("sep-2322-client-request-state")
async def retry_with_state(client: Client) -> None:
    for name in "echo_state", "unrelated", "no_state", "no_result_type":
        await client.call_tool(f"test_mrtr_{name}")


def fill_in(params: ElicitParams) -> dict[str, Any]:
    """Answer a form: confirm the field `confirmed`, and keep all defaults."""
    fields = params.requested_schema["properties"] if params.requested_schema else {}
    return {name: True for name in fields if name == "confirmed"}


def model(params: CreateMessageParams) -> CreateMessageResult:
    return CreateMessageResult(
        role="assistant", content=TextContent("Hello!"), model="a-simple-one"
    )


# -- Headers ---------------------------------------------------------------------------------------


@scenario("http-standard-headers")
async def use_everything(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {})
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


@scenario("http-custom-headers")
async def call_given_tools(client: Client) -> None:
    await client.list_tools()
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


@scenario("http-invalid-tool-headers")
async def call_all_tools(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, dict.fromkeys(tool.input_schema["properties"], "here"))


# -- Authorization ---------------------------------------------------------------------------------

AUTH: Final = "auth/"
REDIRECT_URI: Final = "http://localhost:3000/callback"


async def use(client: Client) -> None:
    """List and call tools. After a denied operation the next one is tried, then the error is
    raised.

    All authorization scenarios are about the login, so any operations will do.
    """
    denial: McpTrioError | None = None
    for operation in client.list_tools, lambda: client.call_tool("test-tool", {}):
        try:
            await operation()
        except McpTrioError as exc:
            denial = exc
    if denial is not None:
        raise denial


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: object) -> None:
        return None


def redirect_of(url: str) -> str:
    """Open the page of a user who agrees, and return the URL that it redirects to."""
    try:
        build_opener(_NoRedirect).open(url, timeout=10)
    except HTTPError as exc:
        return str(exc.headers["location"])
    raise ValueError("the page does not redirect")


async def browse(url: str) -> str:
    return await trio.to_thread.run_sync(redirect_of, url)


def issuer_of(url: str) -> str:
    """Return the authorization server of the suite, which a user would have to know."""
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
    with urlopen(place, timeout=10) as reply:
        return str(json.load(reply)["authorization_servers"][0])


def login_for(name: str, url: str, given: dict[str, Any]) -> LoginConfig:
    """Return the login configuration that a scenario gives."""
    options: dict[str, Any] = {
        "redirect_uri": REDIRECT_URI,
        "client_metadata_url": "https://conformance-test.local/client-metadata.json",
        "client_id": given.get("client_id"),
    }
    if "client_secret" in given:
        options["client_secret"] = Secret(given["client_secret"])
    if "private_key_pem" in given:
        options["private_key"] = Secret(given["private_key_pem"])
        options["signing_algorithm"] = given["signing_algorithm"]
    if "client-credentials" in name:
        options["grant"] = "client_credentials"
    elif "enterprise" in name:
        options["grant"] = EnterpriseManaged(
            lambda: str(given["idp_id_token"]), given["idp_token_endpoint"], given["idp_client_id"]
        )
    elif "wif" in name:
        options["grant"] = JwtBearer(lambda: str(given["valid_jwt"]))
    if not {"client_secret", "private_key_pem", "valid_jwt", "idp_id_token"}.isdisjoint(given):
        options["issuer"] = issuer_of(url)
    return LoginConfig(profile=ClientProfile(**options), storage=MemoryStorage(), browse=browse)


AUTHORIZATION: Final = """
    metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd
    scope-from-www-authenticate scope-from-scopes-supported scope-omitted-when-undefined
    scope-step-up scope-retry-limit token-endpoint-auth-basic token-endpoint-auth-post
    token-endpoint-auth-none pre-registration resource-mismatch offline-access-scope
    offline-access-not-supported authorization-server-migration iss-supported iss-not-advertised
    iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized metadata-issuer-mismatch
    2025-03-26-oauth-metadata-backcompat 2025-03-26-oauth-endpoint-fallback client-credentials-jwt
    client-credentials-basic enterprise-managed-authorization dpop dpop-nonce wif-jwt-bearer
""".split()
for each in AUTHORIZATION:
    scenario(AUTH + each)(use)

# --------------------------------------------------------------------------------------------------


async def main(url: str, name: str, versions: list[str]) -> None:
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    trace = os.environ.get("MCP_TRIO_TRACE")
    async with mcp_trio.connect(
        url,
        auth=login_for(name, url, given) if name.startswith(AUTH) else False,
        versions=versions,
        on_elicit=fill_in,
        on_sample=model,
        on_roots=["file:///home/ada"],
        record=mcp_trio.Recording(path=trace, with_secrets=True) if trace else None,
    ) as client:
        await SCENARIOS[name](client)


if __name__ == "__main__":
    name, newest = (
        os.environ["MCP_CONFORMANCE_SCENARIO"],
        os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"],
    )
    if name not in SCENARIOS:
        sys.exit(f"unknown scenario: {name}")
    trio.run(main, sys.argv[1], name, [version for version in ALL if version <= newest])
