"""Fetch what servers publish about authorization, without a login and without a token."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_core.auth import Authorizer, ClientProfile, Fetch, FetchFailed

from ._fetch import fetch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.auth import Flow, HttpResponse, LoginServer

__all__ = ["find_login", "run_fetches"]

T = TypeVar("T")


async def run_fetches(flow: Flow[T], perform: Callable[[Fetch], Awaitable[HttpResponse]]) -> T:
    """Run a flow whose steps are all `Fetch`, and return its result.

    Args:
        flow: the flow.
        perform: sends a step's request, or raises `FetchFailed`.

    Raises:
        AuthorizationFailed: the flow has failed.
    """
    reply: Any = None
    failure: FetchFailed | None = None
    while True:
        try:
            step = flow.send(reply) if failure is None else flow.throw(failure)
        except StopIteration as stop:
            found: T = stop.value
            return found
        assert isinstance(step, Fetch)
        reply = failure = None
        try:
            reply = await perform(step)
        except FetchFailed as exc:
            failure = exc


async def find_login(url: str, challenge: str, server_address: str | None) -> LoginServer:
    """Return where a user would log in for the MCP server at `url`. No login is begun.

    URLs that servers name are fetched from the addresses that a login may fetch them from.

    Args:
        url: the MCP server's URL.
        challenge: the `WWW-Authenticate` header of its 401, "" if it has none.
        server_address: the IP address at which it was reached, None if a proxy connects.

    Raises:
        AuthorizationFailed: the metadata must not be used, or a login with it would fail.
    """
    authorizer = Authorizer(url, ClientProfile(), entropy=os.urandom, wall_time=time.time)
    authorizer.set_server_address(server_address)

    async def perform(step: Fetch) -> HttpResponse:
        target = step.request.url
        return await fetch(
            step.request,
            allow=lambda address: authorizer.may_fetch(target, address, step.named_by),
            allow_name=lambda name: authorizer.may_fetch_by_proxy(target, name),
        )

    return await run_fetches(authorizer.find_login(challenge), perform)
