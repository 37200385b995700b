"""`client_config`: the configuration for a client's options, and which options are invalid."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core import ALL, CLIENT_LIMITS, DIALECTS, Role, __version__
from mcp_core import types as t
from mcp_core.client._options import (
    answer_form,
    callback_capabilities,
    check_level,
    roots_result,
)
from mcp_core.drivers import ClientConfigOptions, client_config
from mcp_core.http.wire._mcp_headers import check_headers
from tests.harness.forms import SEATS_SCHEMA
from tests.harness.jsonrpc import (
    A,
    B,
    C,
    D,
    E,
)

URLS = t.ElicitationCapability(form={}, url={})

TASKS = "io.modelcontextprotocol/tasks"


def test_client_config_without_options_has_defaults() -> None:
    config = client_config({})
    assert config.capabilities == t.ClientCapabilities(extensions={TASKS: {}})
    assert config.info == t.Implementation(name="mcp-trio", version=__version__)
    assert (config.versions, config.probe_timeout, config.initialize_timeout) == (
        list(ALL),
        15.0,
        None,
    )
    assert config.keep_alive is None
    assert config.limits == CLIENT_LIMITS


def test_client_config_takes_every_option() -> None:
    """A callback declares its capability. Extensions are experimental for the earlier revisions."""
    info = t.Implementation(name="mine", version="3")
    options: ClientConfigOptions = {
        "versions": [E, A],
        "info": info,
        "extensions": {"com.example/x": {"a": 1}},
        "probe_timeout": 1.0,
        "initialize_timeout": 2.0,
        "keep_alive": 3.0,
        "log_level": "error",
        "max_listing": 4,
        "on_elicit": lambda params: None,
    }
    config = client_config(options)
    assert (config.info, config.versions) == (info, [E, A])
    assert (config.probe_timeout, config.initialize_timeout, config.keep_alive) == (1.0, 2.0, 3.0)
    assert config.limits == replace(CLIENT_LIMITS, listing=4)
    extensions = {"com.example/x": {"a": 1}}
    assert config.capabilities == t.ClientCapabilities(
        elicitation=t.ElicitationCapability(),
        extensions={**extensions, TASKS: {}},
        experimental=extensions,
    )


@pytest.mark.requirement("TX-1", "TX-22")
@pytest.mark.parametrize("extensions", [None, {"com.example/x": {"a": 1}}])
@pytest.mark.parametrize("tasks", [True, False, None])
def test_client_config_tasks_declares_extension_in_newest_revision(
    extensions: Any, tasks: bool | None
) -> None:
    """Only `tasks=False` leaves it out, and only 2026-07-28 has the extension."""
    options: ClientConfigOptions = {"extensions": extensions}
    if tasks is not None:
        options["tasks"] = tasks
    config = client_config(options)
    own = extensions or {}
    declared = own | ({} if tasks is False else {TASKS: {}})
    for version in ALL:
        sent = json.loads(DIALECTS[version].encode(config.capabilities))
        assert sent.get("extensions", {}) == (declared if version == E else {})
        assert sent.get("experimental", {}) == own
        assert "tasks" not in sent
    stamp = b"{%b}" % config.dialect_configs[Role.CLIENT][DIALECTS[E]].request_meta_members
    capabilities = json.loads(stamp)["io.modelcontextprotocol/clientCapabilities"]
    assert capabilities.get("extensions", {}) == declared


def test_client_config_tasks_among_extensions_raises() -> None:
    with pytest.raises(ValueError, match=f"the option tasks declares {TASKS}"):
        client_config({"extensions": {TASKS: {}}})


@pytest.mark.requirement("SAMP-1", "ELIC-1", "ELIC-2", "ROOT-1")
@pytest.mark.parametrize(
    ("versions", "declared"),
    [
        ((A, B), {"sampling": {}, "roots": {"listChanged": True}}),
        ((C,), {"sampling": {}, "roots": {"listChanged": True}, "elicitation": {}}),
        (
            (D,),
            {
                "sampling": {"tools": {}},
                "roots": {"listChanged": True},
                "elicitation": {"form": {}, "url": {}},
            },
        ),
        (
            (E,),
            {
                "sampling": {"tools": {}},
                "roots": {},
                "elicitation": {"form": {}, "url": {}},
                "extensions": {TASKS: {}},
            },
        ),
    ],
)
def test_client_config_capabilities_fit_each_revision(
    versions: tuple[str, ...], declared: Any
) -> None:
    options: ClientConfigOptions = {
        "on_elicit": lambda params: None,
        "on_sample": lambda params: None,
        "on_roots": [],
        "elicitation": t.ElicitationCapability(form={}, url={}),
        "sampling": t.SamplingCapability(tools={}),
    }
    capabilities = client_config(options).capabilities
    for version in versions:
        assert json.loads(DIALECTS[version].encode(capabilities)) == declared


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"versions": ["2020-01-01"]}, ValueError, "not a revision"),
        ({"log_level": "loud"}, ValueError, "there is no log level 'loud'; there are debug, info"),
        ({"extensions": {"x": {}}}, ValueError, "not an extension identifier"),
        ({"keep_alive": 0}, ValueError, "keep_alive is a number of seconds above 0, or None"),
        ({"initialize_timeout": -1}, ValueError, "initialize_timeout is .* above 0, or None"),
        ({"probe_timeout": 0}, ValueError, "probe_timeout is a number of seconds above 0, not 0"),
        ({"probe_timeout": float("nan")}, ValueError, "seconds above 0, not nan"),
        ({"check_output": "loud"}, ValueError, "check_output"),
        ({"host_tasks": True}, ValueError, "host_tasks needs on_elicit or on_sample"),
        ({"host_tasks": True, "on_roots": []}, ValueError, "host_tasks needs on_elicit"),
        ({"on_request": {"a/b": 5}, "extensions": {"a.b/c": {}}}, TypeError, "'a/b' has 5, which"),
        ({"on_notification": {"a/b": 5}}, TypeError, "on_notification: 'a/b' has 5, which isn't"),
        ({"on_request": {"a/b": print}}, ValueError, "extension"),
        ({"on_notification": {"a/b": print}}, ValueError, "extension"),
        ({"max_listing": -1}, ValueError, "max_listing is a number of bytes, not -1"),
        ({"sampling": t.SamplingCapability()}, ValueError, "needs on_sample"),
        ({"on_roots": ["nowhere"]}, ValueError, "file://"),
        ({"on_roots": "file:///"}, TypeError, "several places"),
    ],
)
def test_client_config_invalid_option_raises(
    options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        client_config(options)


def test_check_level_unknown_raises() -> None:
    for level in t.LOGGING_LEVELS:
        check_level(level)
    with pytest.raises(ValueError, match="no log level"):
        check_level("INFO")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("Authorization", "Bearer x", None),
        ("x_!#$%&'*+.^`|~-1", "", None),
        ("X", "a b\tc", None),
        ("X", "größe", None),
        ("", "x", "is not a valid header name"),
        ("a b", "x", "is not a valid header name"),
        ("a:b", "x", "is not a valid header name"),
        ("ä", "x", "is not a valid header name"),
        ("a\n", "x", "is not a valid header name"),
        ("X", "a\r\nb", "characters that no header"),
        ("X", "a\nb", "characters that no header"),
        ("X", "a\n", "characters that no header"),
        ("X", "a\0", "characters that no header"),
        ("X", " a", "characters that no header"),
        ("X", "a\t", "characters that no header"),
        ("X", "\u20ac", "characters that no header"),
        ("Host", "x", "set by the protocol"),
        ("Content-Length", "1", "set by the protocol"),
        ("transfer-encoding", "chunked", "set by the protocol"),
        ("Accept", "x", "set by the protocol"),
        ("MCP-Session-Id", "x", "set by the protocol"),
        ("Mcp-Param-Region", "x", "set by the protocol"),
    ],
)
def test_check_headers_invalid_raises(name: str, value: str, problem: str | None) -> None:
    if problem is None:
        check_headers({name: value})
    else:
        with pytest.raises(ValueError, match=problem):
            check_headers({name: value})


def test_check_headers_repeated_name_raises() -> None:
    with pytest.raises(ValueError, match="given twice"):
        check_headers({"X-A": "1", "x-a": "2"})


# -- Capabilities of callbacks ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        ({}, {}),
        (
            {
                "on_elicit": None,
                "on_sample": None,
                "on_roots": None,
                "elicitation": None,
                "sampling": None,
            },
            {},
        ),
        ({"on_elicit": print}, {"elicitation": t.ElicitationCapability()}),
        ({"on_elicit": print, "elicitation": URLS}, {"elicitation": URLS}),
        ({"on_sample": print}, {"sampling": t.SamplingCapability()}),
        (
            {"on_sample": print, "sampling": t.SamplingCapability(tools={})},
            {"sampling": t.SamplingCapability(tools={})},
        ),
        ({"on_roots": []}, {"roots": t.RootsCapability(list_changed=True)}),
        ({"on_roots": list}, {"roots": t.RootsCapability(list_changed=True)}),
    ],
)
def test_callback_capabilities_follow_callbacks(options: Any, declared: Any) -> None:
    assert callback_capabilities(options) == t.ClientCapabilities(**declared)


@pytest.mark.requirement("ROOT-3")
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"elicitation": URLS}, ValueError, "elicitation needs on_elicit"),
        (
            {"sampling": t.SamplingCapability(), "on_elicit": print},
            ValueError,
            "sampling needs on_sample",
        ),
        ({"on_roots": ["http://x/"]}, ValueError, "no file:// URI"),
        ({"on_roots": ["/home"]}, ValueError, "no file:// URI"),
        ({"on_roots": [PurePosixPath("relative")]}, ValueError, "relative"),
        ({"on_roots": [t.Root("file:///a"), t.Root("x:/")]}, ValueError, "no file:// URI"),
        ({"on_roots": "file:///home"}, TypeError, "several places"),
    ],
)
def test_callback_capabilities_invalid_option_raises(
    options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        callback_capabilities(options)


@pytest.mark.parametrize(
    ("callbacks", "requests"),
    [
        (["on_elicit"], {"elicitation": {"create": {}}}),
        (["on_sample"], {"sampling": {"createMessage": {}}}),
        (
            ["on_elicit", "on_sample"],
            {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}},
        ),
    ],
)
def test_client_config_host_tasks_declares_requests_with_callbacks(
    callbacks: list[str], requests: Any
) -> None:
    options: Any = {"host_tasks": True, **dict.fromkeys(callbacks, print)}
    declared = json.loads(DIALECTS[D].encode(client_config(options).capabilities))
    assert declared["tasks"] == {"list": {}, "cancel": {}, "requests": requests}
    options["host_tasks"] = False
    assert client_config(options).capabilities.tasks is None


def test_client_config_callbacks_of_extension_are_methods() -> None:
    """Either kind of callback alone has rows; there are none without callbacks."""
    options: Any = {"extensions": {"a.b/c": {}}}
    assert list(client_config(options).methods) == []
    rows: list[tuple[dict[str, Any], list[str]]] = [
        ({"on_request": {"a/b": print}}, ["a/b"]),
        ({"on_notification": {"a/c": print}}, ["a/c"]),
        ({"on_request": {"a/b": print}, "on_notification": {"a/c": print}}, ["a/b", "a/c"]),
    ]
    for more, names in rows:
        assert list(client_config(options | more).methods) == names


def test_client_config_max_listing_may_be_0() -> None:
    assert client_config({"max_listing": 0}).limits.listing == 0
    limits = replace(CLIENT_LIMITS, listing=7, in_flight=8)
    assert client_config({"limits": limits}).limits == limits
    changed = replace(limits, listing=0)
    assert client_config({"limits": limits, "max_listing": 0}).limits == changed


def test_roots_result_takes_uris_paths_and_results() -> None:
    root = t.Root("file:///c", "c")
    made = roots_result(["file:///a", PurePosixPath("/b"), root])
    assert made == t.ListRootsResult(roots=[t.Root("file:///a"), t.Root("file:///b"), root])
    assert roots_result(made) is made


def test_answer_form_fills_in_forms_and_declines_pages() -> None:
    asked: list[Any] = []

    def fill(message: str, form: Any) -> dict[str, Any]:
        asked.append((message, list(form.properties), form.required))
        return {"count": 2}

    on_elicit = answer_form(fill)
    page = t.ElicitParams(message="Pay.", mode="url", url="https://a.test", elicitation_id="e")
    assert on_elicit(page) == t.ElicitResult(action="decline")
    assert asked == []
    for mode in None, "form":
        form = t.ElicitParams(message="How many?", mode=mode, requested_schema=SEATS_SCHEMA)
        assert on_elicit(form) == {"count": 2}
    assert [(text, names) for text, names, _ in asked] == [("How many?", ["count", "where"])] * 2
