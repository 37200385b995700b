"""Requests of an extension, which a handler sends to its client until 2025-11-25."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_core._errors import CallTimeout
from mcp_core.protocol.connection._extension_methods import check_extension_request
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

from ._input_requests import NestedRequests, internal_error

if TYPE_CHECKING:
    from msgspec import Struct

    from ._input_requests import NestedRequestSender

__all__ = ["ExtensionRequest"]

T = TypeVar("T")


class ExtensionRequest(NestedRequests[T]):
    """One request of an extension, from a handler that awaits the response.

    Args:
        sender: the client's request, on whose behalf it is sent.
        method: the method.
        params: its params, None for none.
        returns: the type of the result.
        seconds: how long to wait for the response, None for no limit.
    """

    def __init__(
        self,
        sender: NestedRequestSender,
        method: str,
        params: Struct | Mapping[str, Any] | None,
        returns: type[T],
        seconds: float | None,
    ) -> None:
        super().__init__(sender)
        self.seconds = seconds
        self._method = method
        self._params = params
        self._returns = returns

    def _make_requests(self) -> Mapping[str, tuple[str, Struct | Mapping[str, Any] | None]]:
        sender = self._sender
        check_extension_request(self._method, sender.peer, sender.host.conn.config)
        return {"": (self._method, self._params)}

    def _make_result(self, responses: Mapping[str, Any]) -> T:
        if not responses:
            raise CallTimeout(f"the client has not answered {self._method} for {self.seconds:g} s")
        try:
            return reader(self._returns)(encode(responses[""]))
        except InvalidPayload as exc:
            text = f"the client's result of {self._method} does not fit: {exc}"
            raise internal_error(self._sender.peer, text) from None
