"""Options of a client's connection, and the configuration that follows from them.

Invalid options are reported before a process is started or a connection opened for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import LocalProtocolError
from mcp_core._keywords import check_keywords
from mcp_core._limits import CLIENT_LIMITS, Limits
from mcp_core._version import __version__
from mcp_core.protocol.input_requests._kinds import FormSchema, check_response, form_schema
from mcp_core.protocol.messages._events import Peer
from mcp_core.protocol.revisions._config import PROBE_TIMEOUT, Config
from mcp_core.protocol.revisions._dialects import ALL
from mcp_core.protocol.revisions._methods import TASKS, Method

from ._calls import CheckOutput, check_mode

__all__ = [
    "NETWORK_INITIALIZE_TIMEOUT",
    "CallbackOptions",
    "ClientConfigOptions",
    "ElicitAnswer",
    "Place",
    "answer_form",
    "callback_capabilities",
    "check_level",
    "client_config",
    "roots_result",
]

# Seconds; the default of `initialize_timeout` for a server at a URL. It runs already, so it needs
# less time than a process that starts.
NETWORK_INITIALIZE_TIMEOUT: Final = 30.0


class _Path(Protocol):
    """A path of `pathlib`, which the core doesn't import."""

    def as_uri(self) -> str: ...


Place: TypeAlias = t.Root | str | _Path

ElicitAnswer: TypeAlias = t.ElicitResult | Mapping[str, t.ElicitValue] | None

SampleAnswer: TypeAlias = t.CreateMessageResult | None

OnElicit: TypeAlias = Callable[[t.ElicitParams], Awaitable[ElicitAnswer] | ElicitAnswer]

OnSample: TypeAlias = Callable[[t.CreateMessageParams], Awaitable[SampleAnswer] | SampleAnswer]

OnRoots: TypeAlias = (
    Collection[Place] | Callable[[], Awaitable[Collection[Place]] | Collection[Place]]
)

# What a callback for a request of an extension returns: its result, None for an empty one.
ExtensionAnswer: TypeAlias = Struct | Mapping[str, Any] | None

OnRequest: TypeAlias = Callable[[dict[str, Any]], Awaitable[ExtensionAnswer] | ExtensionAnswer]

OnNotification: TypeAlias = Callable[[dict[str, Any]], object]

Fill: TypeAlias = Callable[[str, FormSchema], Awaitable[ElicitAnswer] | ElicitAnswer]


class CallbackOptions(TypedDict, total=False):
    """A client's options for the server's requests: elicitation, sampling and roots.

    A callback is an `async def`, or a plain function, which must not block. Each call of one runs
    in a task of its own, and several may run at the same time.

    Keys:
        on_elicit: responds to a question to the user (client/elicitation; since 2025-06-18). It
            gets the `types.ElicitParams`. It returns what the user filled in as a dict, to which
            the form's defaults are added; None if the user dismissed the form; or a
            `types.ElicitResult`, for example to decline. `answer_form` makes an `on_elicit` of a
            function that fills in forms.
        on_sample: runs the model (client/sampling). It gets the `types.CreateMessageParams`, and
            returns the `types.CreateMessageResult`, or None if the user rejects the request.
        on_roots: the places that the server may work in (client/roots): absolute paths of
            `pathlib`, URIs that begin with `file://`, or `types.Root`. Or a function without
            arguments that returns them. A server of a revision before 2026-07-28 may request them
            after the first call: see `AbstractClient.roots_requested`.
        elicitation: the declared elicitation capability; by default forms only. With
            `types.ElicitationCapability(form={}, url={})` the server may also ask the user to visit
            a web page. The callback sees that from `mode` and `url`; only the user decides whether
            to open the page.
        sampling: the declared sampling capability; by default without tools and context. With
            `types.SamplingCapability(tools={})` `on_sample` may get tools for the model to use.
    """

    on_elicit: OnElicit | None
    on_sample: OnSample | None
    on_roots: OnRoots | None
    elicitation: t.ElicitationCapability | None
    sampling: t.SamplingCapability | None


class ClientConfigOptions(CallbackOptions, total=False):
    """Options of a client's connection: everything in `CallbackOptions`, and these.

    Keys:
        versions: revisions of MCP to use; default all. The newest that both sides support is
            negotiated; with a single one there is no choice.
        known_peer: the `peer` of an earlier client of the same server. Its revision is used at
            once, which saves a probe; a server that refuses its handshake is probed all the same.
            Ignored if that revision isn't among `versions`. A `HandshakeCache` has one for each
            server that needs a handshake.
        info: the client's name and version; default this library's.
        extensions: capabilities beyond MCP, by identifier, each with its settings. Declared as the
            capability `extensions` in 2026-07-28, and as `experimental`, which every revision has.
        tasks: True to declare that the server may run a tool call as a task (2026-07-28, the
            extension `io.modelcontextprotocol/tasks`); default True. `call_tool` then
            follows the task to its end.
        host_tasks: True to let a server of 2025-11-25 run its requests for sampling and elicitation
            as tasks of this client: it then asks for the outcome later. Default False: the server
            waits for the response.
        probe_timeout: seconds to wait for a response to the probe, before the handshake of earlier
            revisions is tried; default 15.
        initialize_timeout: seconds to wait for that handshake; default no limit, because a process
            may start slowly.
        keep_alive: seconds of silence after which a ping is sent; after as many more the connection
            is closed. Default never.
        on_log: called with each of the server's log messages. An `async def` is awaited in a task,
            one message after the other; one that still runs when the client is closed is cancelled.
            Its exceptions are reported and end nothing.
        on_elicitation_complete: called when the server says that the user has finished a URL
            elicitation, or a page that an error of code -32042 named (2025-11-25 only). It may
            be an `async def`, and exceptions are handled, as for `on_log`.
        log_level: the least severe log message to receive; `AbstractClient.set_log_level` changes
            it. Default "info" if there is an `on_log`, else no level is sent.
        on_request: by method, a callback for each request of an extension in `extensions`, which a
            server may send until 2025-11-25. It gets the params as a dict, and returns the result:
            a dict, a Struct, or None for an empty one. It may be an `async def`. An `McpError` of
            it is the error that the server gets.
        on_notification: by method, a callback for each notification of an extension in
            `extensions`. It gets the params as a dict. It may be an `async def`, and exceptions are
            handled, as for `on_log`.
        limits: upper bounds on what the server can use; default `CLIENT_LIMITS`, with messages of
            at most 32 MiB.
        cache: True (the default) to reuse results for as long as the server declares them fresh
            (2026-07-28).
        max_listing: bytes of memory that all pages of one listing may take, estimated; default 48
            MiB. If the server offers a further page after that, the call fails.
        check_output: the default for the call's option of that name: "error" (the default), "warn"
            or "off".
    """

    versions: Iterable[str]
    known_peer: Peer | None
    info: t.Implementation | None
    extensions: Mapping[str, Mapping[str, Any]] | None
    tasks: bool
    host_tasks: bool
    probe_timeout: float
    initialize_timeout: float | None
    keep_alive: float | None
    on_log: Callable[[t.LoggingMessageParams], object] | None
    on_elicitation_complete: Callable[[t.ElicitationCompleteParams], object] | None
    log_level: t.LoggingLevel | None
    on_request: Mapping[str, OnRequest]
    on_notification: Mapping[str, OnNotification]
    limits: Limits
    cache: bool
    max_listing: int
    check_output: CheckOutput


def client_config(
    options: ClientConfigOptions, kind: type[ClientConfigOptions] = ClientConfigOptions
) -> Config:
    """Return the configuration of a client with `options`.

    `kind` is the `TypedDict` of all options that the driver has.

    Raises:
        ValueError: an unknown version, log level or `check_output`, an invalid identifier of an
            extension, tasks among the extensions, seconds or bytes out of range, a declared
            capability without a callback, an invalid root, or a callback for a method of MCP, or
            without an extension.
        TypeError: an option is unknown, the roots are a single string, or what `on_request` or
            `on_notification` has for a method isn't callable.
    """
    check_keywords(options, kind, "connect()")
    extensions = options.get("extensions")
    declared = (
        {name: dict(settings) for name, settings in extensions.items()} if extensions else None
    )
    if declared and TASKS[-1] in declared:
        raise ValueError(f"the option tasks declares {TASKS[-1]}, not extensions")
    capabilities = replace(
        callback_capabilities(options), extensions=declared, experimental=declared
    )
    if options.get("tasks", True):
        # Not `experimental`, which every revision has: earlier ones have tasks of their own.
        capabilities = replace(capabilities, extensions={**(declared or {}), TASKS[-1]: {}})
    if options.get("host_tasks", False):
        capabilities = replace(capabilities, tasks=_hosted_tasks(capabilities))
    level = options.get("log_level")
    if level is not None:
        check_level(level)
    if "check_output" in options:
        check_mode(options["check_output"])
    limits = options.get("limits", CLIENT_LIMITS)
    max_listing = options.get("max_listing", limits.listing)
    if max_listing < 0:
        raise ValueError(f"max_listing is a number of bytes, not {max_listing!r}")
    return Config(
        options.get("info") or t.Implementation(name="mcp-trio", version=__version__),
        capabilities,
        versions=options.get("versions", ALL),
        probe_timeout=options.get("probe_timeout", PROBE_TIMEOUT),
        initialize_timeout=options.get("initialize_timeout"),
        keep_alive=options.get("keep_alive"),
        methods=_extension_methods(options),
        limits=replace(limits, listing=max_listing),
    )


def _extension_methods(options: ClientConfigOptions) -> Iterable[Method]:
    """Return the rows of the methods in `on_request` and `on_notification`.

    Raises:
        ValueError, TypeError: as for `client_config`.
    """
    requests = options.get("on_request") or {}
    notifications = options.get("on_notification") or {}
    if not requests and not notifications:
        return ()
    for option, callbacks in (("on_request", requests), ("on_notification", notifications)):
        for name, callback in callbacks.items():
            if not callable(callback):
                raise TypeError(f"{option}: {name!r} has {callback!r}, which isn't a function")
    # On first use: few clients know an extension.
    from mcp_core.protocol.connection._extension_methods import client_methods

    return client_methods(requests, notifications, options.get("extensions") or ())


def check_level(level: str) -> None:
    """Check that a log level exists.

    Raises:
        ValueError: it doesn't.
    """
    if level not in t.LOGGING_LEVELS:
        raise ValueError(
            f"there is no log level {level!r}; there are {', '.join(t.LOGGING_LEVELS)}"
        )


# -- Callbacks ---------------------------------------------------------------------------------


def callback_capabilities(options: CallbackOptions) -> t.ClientCapabilities:
    """Return the capabilities to declare: a client declares only what it has a callback for.

    Raises:
        ValueError: a capability is declared without its callback, or an entry of `on_roots` is no
            `file://` URI.
        TypeError: `on_roots` is one string.
    """
    on_elicit = options.get("on_elicit")
    on_sample = options.get("on_sample")
    on_roots = options.get("on_roots")
    elicitation = options.get("elicitation")
    sampling = options.get("sampling")
    if elicitation is not None and on_elicit is None:
        raise ValueError("elicitation needs on_elicit to answer what is asked then")
    if sampling is not None and on_sample is None:
        raise ValueError("sampling needs on_sample to answer what is asked then")
    if on_roots is not None and not callable(on_roots):
        _check_roots(on_roots)
    return t.ClientCapabilities(
        elicitation=elicitation or (None if on_elicit is None else t.ElicitationCapability()),
        sampling=sampling or (None if on_sample is None else t.SamplingCapability()),
        roots=None if on_roots is None else t.RootsCapability(list_changed=True),
    )


def _hosted_tasks(capabilities: t.ClientCapabilities) -> t.TasksCapability:
    """Return the capability of a client that runs requests of the server as tasks.

    Raises:
        ValueError: there is no callback for any such request.
    """
    elicitation = t.ElicitationTasks(create={}) if capabilities.elicitation is not None else None
    sampling = t.SamplingTasks(create_message={}) if capabilities.sampling is not None else None
    if elicitation is None and sampling is None:
        raise ValueError("host_tasks needs on_elicit or on_sample to answer what is asked then")
    return t.TasksCapability(
        list={}, cancel={}, requests=t.TaskRequests(elicitation=elicitation, sampling=sampling)
    )


def roots_result(places: Collection[Place] | t.Result) -> t.Result:
    """Return the result of `roots/list` for `places`; one that is a result already is unchanged.

    The URIs aren't checked.
    """
    if isinstance(places, t.Result):
        return places
    return t.ListRootsResult(roots=[_root(place) for place in places])


def _root(place: Place) -> t.Root:
    if isinstance(place, t.Root):
        return place
    return t.Root(uri=place if isinstance(place, str) else place.as_uri())


def _check_roots(places: Collection[Place]) -> None:
    if isinstance(places, str):
        raise TypeError("on_roots is several places, not one string")
    try:
        check_response(t.ListRootsRequest(), roots_result(places))
    except LocalProtocolError as exc:
        raise ValueError(str(exc)) from None


def answer_form(fill: Fill) -> OnElicit:
    """Make an `on_elicit` from a function that fills in forms.

    Pass it on: `connect(server, on_elicit=answer_form(fill))`.

    `fill(message, form)` gets the text for the user and the `FormSchema`: `properties` are its
    fields by name, and `required` names those that must be filled in. It returns the values as a
    dict, None if the user dismissed the form, or a `types.ElicitResult`; or an awaitable of one of
    these. Fields that it leaves out get their defaults. A request to visit a page is declined.
    """

    def on_elicit(params: t.ElicitParams) -> Awaitable[ElicitAnswer] | ElicitAnswer:
        if params.mode == "url":
            return t.ElicitResult(action="decline")
        return fill(params.message, form_schema(t.ElicitRequest(params)))

    return on_elicit
