"""Middlewares that many servers need: `Timing`, `RateLimit` and `MaskErrors`.

1. They have no clock and no log: they use the runtime's.
2. They see each run of a handler. In 2026-07-28 one that asks its user runs again with the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from mcp_core._errors import Fault, McpError, ToolError, single
from mcp_core._limits import Buckets, Rate
from mcp_core.protocol.input_requests._rounds import NeedInput
from mcp_core.protocol.messages._rejection import rate_limited
from mcp_core.registry import Context, Proceed, ResourceNotFound, UrlElicitationRequired
from mcp_core.registry._context import collector_of
from mcp_core.types import InputRequiredResult

if TYPE_CHECKING:
    from ._runtime import Runtime

__all__ = ["MaskErrors", "Outcome", "RateLimit", "Timing"]

# What became of one run of a handler.
Outcome: TypeAlias = Literal["completed", "failed", "input required", "cancelled"]

# Exceptions whose texts are meant for clients. An entry for one of their bases isn't for them.
_MEANT_FOR_CLIENTS: Final = (ToolError, McpError)


class Timing:
    """A middleware that reports how long each request took::

        def observe(context: Context, seconds: float, outcome: Outcome) -> None:
            log.info("%s took %.3f s: %s", context.method, seconds, outcome)

        server.middleware(Timing(observe))

    It measures what is declared after it: the middlewares inside of it, and the handler.

    Args:
        report: called when a request has ended, with its context, the seconds that it took, and
            "completed"; "failed" for an exception or a tool's result with `isError`; "input
            required" if it asks the user and runs again (2026-07-28); or "cancelled". It must not
            wait. What it raises is logged, and changes nothing. A label of a metric should come
            from what the server declares, such as `context.method`: a client can invent any number
            of names in `context.params`.

    Raises:
        TypeError: `report` can't be called.
    """

    def __init__(self, report: Callable[[Context[Any], float, Outcome], object]) -> None:
        if not callable(report):
            raise TypeError(f"report is a function of context, seconds and outcome, not {report!r}")
        self._report = report

    def __repr__(self) -> str:
        return f"Timing({self._report!r})"

    async def __call__(self, context: Context[Any], proceed: Proceed) -> Any:
        """Run the request of `context` by `proceed`, and report it."""
        runtime = _runtime_of(context)
        began = runtime.monotonic()
        outcome: Outcome = "cancelled"
        try:
            result = await proceed()
            outcome = "completed"
            if isinstance(result, InputRequiredResult):
                outcome = "input required"
            elif getattr(result, "is_error", None) is True:
                outcome = "failed"
            return result
        except NeedInput:
            outcome = "input required"
            raise
        except Exception:
            outcome = "failed"
            raise
        finally:
            seconds = runtime.monotonic() - began
            try:
                self._report(context, seconds, outcome)
            except Exception as exc:  # noqa: BLE001 - a report must not end a request
                runtime.report_hook("the report of a Timing", exc)


class RateLimit:
    """A middleware that limits how many requests each client may make::

        server.middleware(RateLimit(Rate(per_second=5, burst=20)))

    A request above the limit gets the error of `Limits.tool_calls`, which names the seconds after
    which to try again. `ToolOptions` has a `rate` for a single tool. A worker counts for itself: N
    workers allow N times as many.

    Args:
        rate: the rate.
        key: returns the name under which a request is counted; an empty one isn't. By default
            that is the principal, or without authorization the network of the client's address;
            clients over stdio and in memory aren't told apart, and count together. The last
            10,000 names are remembered.

    Raises:
        TypeError: `rate` isn't a `Rate`.
    """

    def __init__(self, rate: Rate, *, key: Callable[[Context[Any]], str] | None = None) -> None:
        if not isinstance(rate, Rate):
            raise TypeError(f"a Rate is needed, such as Rate(per_second=5, burst=20), not {rate!r}")
        self._rate = rate
        self._key = key
        self._buckets = Buckets(rate)

    def __repr__(self) -> str:
        return f"RateLimit({self._rate!r})"

    async def __call__(self, context: Context[Any], proceed: Proceed) -> Any:
        """Run the request of `context` by `proceed`, unless there were too many.

        Raises:
            McpError: there were too many.
        """
        key = _client_key(context) if self._key is None else self._key(context)
        if key or self._key is None:
            now = _runtime_of(context).shared_clock()
            wait = self._buckets.get(key).take(now)
            if wait:
                dialect = context.peer.dialect
                rejection = rate_limited(wait, dialect)
                raise McpError(dialect.codes[rejection.fault], rejection.message, rejection.data)
        return await proceed()


class MaskErrors:
    """A middleware that replaces the texts of exceptions::

        server.middleware(MaskErrors({
            TimeoutError: "The database did not answer. Try again in a minute.",
            PermissionError: "This file may not be read.",
        }))

    Without it, a client never sees the text of an exception other than `ToolError`, `McpError` and
    `ResourceNotFound`: it gets a reference into the log. This says more, for the exceptions of
    libraries, or less, for a `ToolError` that a library raises.

    An exception of the classes, or of classes below them, becomes a `ToolError` for a tool, and
    else an `McpError` with the code for internal errors, of the text and a reference. The log has
    the exception under that reference. The nearest class counts. `ToolError` and `McpError`, which
    keeps its code, need an entry of their own; `ResourceNotFound` and `UrlElicitationRequired` are
    left as they are.

    Args:
        texts: by class of exceptions: the text for the client, and for its model.

    Raises:
        TypeError: a key isn't a class of exceptions, or a text isn't a string.
        ValueError: a text is empty.
    """

    def __init__(self, texts: Mapping[type[Exception], str]) -> None:
        entries: Mapping[Any, Any] = texts
        for cls, text in entries.items():
            if not (isinstance(cls, type) and issubclass(cls, Exception)):
                raise TypeError(f"a class of exceptions is needed, not {cls!r}")
            if not isinstance(text, str):
                raise TypeError(f"the text for {cls.__name__} is a string, not {text!r}")
            if not text:
                raise ValueError(f"the text for {cls.__name__} is empty")
        self._texts = dict(texts)

    def __repr__(self) -> str:
        return f"MaskErrors({', '.join(cls.__name__ for cls in self._texts)})"

    async def __call__(self, context: Context[Any], proceed: Proceed) -> Any:
        """Run the request of `context` by `proceed`. Replace an exception that has an entry.

        Raises:
            ToolError, McpError: it has the text of an entry.
        """
        try:
            return await proceed()
        except Exception as exc:
            error = single(exc)
            text = self._text_for(error)
            if text is None:
                raise
            runtime = _runtime_of(context)
            reference = runtime.reference()
            runtime.report(collector_of(context).request, reference, exc)
            masked = f"{text} (reference {reference})"
            if isinstance(error, McpError):
                raise McpError(error.code, masked) from exc
            if context.method == "tools/call":
                raise ToolError(masked) from exc
            raise McpError(context.peer.dialect.codes[Fault.INTERNAL], masked) from exc

    def _text_for(self, error: BaseException) -> str | None:
        if isinstance(error, ResourceNotFound | UrlElicitationRequired):
            return None
        for cls in type(error).__mro__:
            if cls in self._texts:
                return self._texts[cls]
            if cls in _MEANT_FOR_CLIENTS:
                return None
        return None


def _runtime_of(context: Context[Any]) -> Runtime:
    return cast("Runtime", collector_of(context).host.runtime)


def _client_key(context: Context[Any]) -> str:
    if not context.client_address:
        return f"principal {context.principal}" if context.principal else ""
    from mcp_core.http.server._quotas import client_key  # on first use: stdio needs no HTTP

    return client_key(context.principal, context.client_address)
