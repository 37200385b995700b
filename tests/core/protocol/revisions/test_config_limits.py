"""The configuration: limits, and what it implies for each role and revision."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from mcp_core import ALL, CLIENT_LIMITS, DIALECTS, Config, Limits, Method, Rate, Role
from mcp_core import types as t
from tests.harness.jsonrpc import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    META_CAPABILITIES,
    META_CLIENT,
    META_SERVER,
    META_VERSION,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    STATEFUL,
    VERSIONS,
    A,
    B,
    D,
    E,
    client_config,
    server_config,
)

SERVER, CLIENT = Role.SERVER, Role.CLIENT


class AddParams(Struct):
    a: int


ADD = Method("acme/add", SERVER, AddParams, t.EmptyResult)
ASK = Method("acme/ask", CLIENT, AddParams, t.EmptyResult)
NEWS = Method("notifications/acme/news", None, t.NotificationParams)


@pytest.mark.requirement("DEC-9")
def test_limits_have_documented_defaults() -> None:
    """These figures stand in the documentation, so a change of one is a change for users."""
    limits = Limits()
    assert (limits.message, limits.id, limits.method, limits.batch) == (
        4 * 1024 * 1024,
        256,
        256,
        100,
    )
    assert (limits.in_flight, limits.waiting, limits.queued, limits.pause) == (
        256,
        256,
        1024 * 1024,
        5.0,
    )
    assert limits.listing == 48 * 1024 * 1024
    assert Limits(message=32 * 1024 * 1024, waiting=0) == CLIENT_LIMITS


@pytest.mark.parametrize(
    ("capabilities", "limits", "expected"),
    [
        (CLIENT_CAPABILITIES, None, CLIENT_LIMITS),
        (SERVER_CAPABILITIES, None, Limits()),
        (CLIENT_CAPABILITIES, Limits(batch=1), Limits(batch=1)),
        (SERVER_CAPABILITIES, Limits(batch=1), Limits(batch=1)),
    ],
)
def test_config_limits_default_by_role(
    capabilities: Any, limits: Limits | None, expected: Limits
) -> None:
    assert Config(CLIENT_INFO, capabilities, limits=limits).limits == expected


@pytest.mark.parametrize(
    ("versions", "stateful", "stateless"),
    [(ALL, [*reversed(STATEFUL)], [E]), ([A, D], [D, A], []), ([E], [], [E]), (iter([B]), [B], [])],
)
def test_config_dialects_are_sorted_newest_first(
    versions: Any, stateful: list[str], stateless: list[str]
) -> None:
    config = Config(SERVER_INFO, SERVER_CAPABILITIES, versions=versions)
    assert [dialect.version for dialect in config.stateful] == stateful
    assert [dialect.version for dialect in config.stateless] == stateless
    assert config.versions == [*stateless, *stateful]
    assert config.by_version == {version: DIALECTS[version] for version in config.versions}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"versions": ()}, "at least one"),
        ({"versions": ("1999-01-01",)}, "1999-01-01"),
        (
            {"methods": [Method("tools/call", SERVER, AddParams, t.EmptyResult)]},
            "tools/call is a method of MCP",
        ),
        # Names are reserved with any configured revisions.
        (
            {
                "methods": [Method("server/discover", SERVER, AddParams, t.EmptyResult)],
                "versions": (A,),
            },
            "discover",
        ),
    ],
)
def test_config_invalid_arguments_rejected(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Config(SERVER_INFO, SERVER_CAPABILITIES, **options)


def test_config_repr_shows_name_and_revisions() -> None:
    assert repr(server_config(A, E)) == "<Config server 2 [2026-07-28, 2024-11-05]>"


def test_config_dialect_config_is_computed_once() -> None:
    config = server_config()
    assert (
        config.dialect_configs[SERVER][DIALECTS[D]] is config.dialect_configs[SERVER][DIALECTS[D]]
    )
    assert (
        config.dialect_configs[SERVER][DIALECTS[D]]
        is not config.dialect_configs[CLIENT][DIALECTS[D]]
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_config_received_methods_need_declared_capabilities(version: str) -> None:
    dialect = DIALECTS[version]
    everything = server_config(version).dialect_configs[SERVER][dialect]
    assert everything.receives.keys() >= {"tools/call", "prompts/get", "resources/read"}
    assert everything.sends == dialect.receives[CLIENT]
    nothing = server_config(version, capabilities=t.ServerCapabilities()).dialect_configs[SERVER][
        dialect
    ]
    assert not nothing.receives.keys() & {"tools/call", "prompts/get", "resources/read"}
    assert nothing.sends == everything.sends  # depends on the capabilities of the peer


@pytest.mark.parametrize("version", VERSIONS)
def test_config_custom_methods_follow_their_direction(version: str) -> None:
    config = server_config(version, methods=[ADD, ASK, NEWS])
    terms = config.dialect_configs[SERVER][DIALECTS[version]]
    ours = {"acme/add", "acme/ask", "notifications/acme/news"}
    assert terms.receives.keys() & ours == {"acme/add", "notifications/acme/news"}
    assert terms.sends.keys() & ours == {"acme/ask", "notifications/acme/news"}
    assert config.methods == {"acme/add": ADD, "acme/ask": ASK, "notifications/acme/news": NEWS}
    assert config.receivable[SERVER].keys() & ours == {"acme/add", "notifications/acme/news"}


def test_config_received_methods_cover_all_revisions() -> None:
    assert {"initialize", "server/discover"} <= server_config().receivable[SERVER].keys()
    assert "server/discover" not in server_config(*STATEFUL).receivable[SERVER]
    assert "initialize" not in server_config(E).receivable[SERVER]
    assert "sampling/createMessage" in client_config().receivable[CLIENT]


@pytest.mark.requirement("META-6", "META-7", "META-10", "RPC-30", "STDIO-9")
@pytest.mark.parametrize("version", VERSIONS)
def test_config_constant_members_per_revision(version: str) -> None:
    """Members that each message repeats are encoded once, in the revisions that have them."""
    dialect = DIALECTS[version]
    server = server_config(version).dialect_configs[SERVER][dialect]
    client = client_config(version).dialect_configs[CLIENT][dialect]
    if dialect.stateful:
        assert (
            server.result_members,
            server.result_type_member,
            server.result_meta_member,
            server.result_meta,
        ) == (
            b"",
            b"",
            b"",
            {},
        )
        assert (client.request_meta_members, client.result_members) == (b"", b"")
        return
    assert json.loads(b"{%b}" % server.result_members[:-1]) == {
        "resultType": "complete",
        "_meta": {META_SERVER: {"name": "server", "version": "2"}},
    }
    assert (server.result_type_member, server.result_meta_member[-1:]) == (
        b'"resultType":"complete",',
        b",",
    )
    assert server.result_type_member + server.result_meta_member == server.result_members
    assert server.request_meta_members == b""
    assert json.loads(b"{%b}" % client.request_meta_members) == {
        META_VERSION: version,
        # The revision has no notifications of changed roots.
        META_CAPABILITIES: {"roots": {}, "sampling": {}, "elicitation": {}},
        META_CLIENT: {"name": "client", "version": "1"},
    }


@pytest.mark.parametrize(
    ("path", "declared"),
    [((), True), (("tools",), True), (("tools", "list_changed"), True), (("tasks",), False)],
)
def test_config_declares_own_capabilities(path: tuple[str, ...], declared: bool) -> None:
    assert server_config().declares(path) is declared


def test_config_default_timeouts() -> None:
    config = Config(CLIENT_INFO, CLIENT_CAPABILITIES)
    assert (config.probe_timeout, config.initialize_timeout) == (15.0, None)
    assert (config.keep_alive, config.cache, config.instructions) == (None, None, None)
    assert config.declared is None


@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize("long_lived", [True, False])
def test_config_for_http_has_what_a_request_can_keep(handshake: bool, long_lived: bool) -> None:
    """A request can't be left unread or pinged; without a handshake or a stream more is left out.

    The configuration of which it is a copy stays as it is.
    """
    rate = Rate(per_second=1, burst=1)
    config = server_config(limits=Limits(pause=3, tool_calls=rate), keep_alive=5)
    found = config.for_http(handshake=handshake, long_lived=long_lived)
    assert (found.limits.pause, found.keep_alive) == (0, None)
    assert found.limits.tool_calls == (rate if handshake else None)
    assert len(found.stateful) == (len(STATEFUL) if handshake else 0)
    assert found.listens is long_lived
    assert ("subscriptions/listen" in found.receivable[SERVER]) is long_lived
    assert found.declares(("tools", "list_changed")) is long_lived
    assert found.declares(("resources", "subscribe")) is long_lived
    assert found.declares(("tools",))
    assert (config.limits.pause, config.keep_alive, config.listens) == (3, 5, True)
    assert config.declares(("tools", "list_changed"))
    assert len(config.stateful) == len(STATEFUL)


def test_config_for_http_has_handshake_and_stream_by_default() -> None:
    found = server_config().for_http()
    assert found.listens
    assert len(found.stateful) == len(STATEFUL)


@pytest.mark.requirement("VER-12")
@pytest.mark.parametrize(
    ("identifier", "legal"),
    [
        ("com.example/thing", True),
        ("io.modelcontextprotocol/tasks", True),
        ("com.example/a.b_c-d", True),
        ("thing", False),
        ("com.example/", False),
        ("/thing", False),
        ("com..example/thing", False),
        ("1com/thing", False),
        ("com.example/-thing", False),
        ("", False),
    ],
)
def test_config_extension_identifier_follows_grammar(identifier: str, legal: bool) -> None:
    capabilities = t.ServerCapabilities(extensions={identifier: {}})
    if legal:
        config = server_config(capabilities=capabilities)
        assert config.declares(("extensions", identifier))
        assert config.declares_tasks is (identifier == "io.modelcontextprotocol/tasks")
    else:
        with pytest.raises(ValueError, match="not an extension identifier"):
            server_config(capabilities=capabilities)


@pytest.mark.requirement("META-3")
def test_config_meta_keys_match_specification() -> None:
    defined = {
        f"io.modelcontextprotocol/{name}"
        for name in ("protocolVersion", "clientCapabilities", "clientInfo", "serverInfo")
    }
    for dialect in DIALECTS.values():
        server = server_config().dialect_configs[SERVER][dialect]
        client = client_config().dialect_configs[CLIENT][dialect]
        keys = {
            *server.result_meta,
            *msgspec.json.decode(b"{" + client.request_meta_members + b"}"),
        }
        assert keys == (set() if dialect.stateful else defined)
