"""`mcp-trio listen` in memory: what it subscribes to, and each line that it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.trio_.cli.in_memory import AnsweringServer

if TYPE_CHECKING:
    from tests.trio_.cli.in_memory import MemoryCommand

CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
}


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


NOTES = [
    note("tools/list_changed"),
    note("resources/list_changed"),
    note("resources/updated", uri="a:b"),
]
LOST = "mcp-trio: the server closed the connection; its stderr, if any, is above\n"


@pytest.mark.parametrize(
    ("words", "out", "listening", "unsupported"),
    [
        (["a:b"], "a:b\n", "a:b", ""),
        (["a:b", "--tools"], "tools\na:b\n", "tools, a:b", ""),
        (["a:b", "--resources"], "resources\na:b\n", "resources, a:b", ""),
        (["a:b", "--prompts", "--tools"], "tools\na:b\n", "tools, a:b", "prompts"),
        (
            ["a:b", "a:b", "--tools", "--json"],
            (
                '{"method":"notifications/tools/list_changed"}\n'
                '{"method":"notifications/resources/updated","params":{"uri":"a:b"}}\n'
            ),
            "tools, a:b",
            "",
        ),
    ],
)
def test_listen_prints_a_line_for_each_change_it_subscribed_to(
    words: list[str], out: str, listening: str, unsupported: str, in_memory: MemoryCommand
) -> None:
    method = "resources/subscribe"
    server = AnsweringServer(CAPABILITIES, {method: {}}, notes={method: NOTES}, last=method)
    in_memory.server = server
    without = f"mcp-trio: the server sends no notifications about {unsupported}\n"
    err = f"mcp-trio: listening to {listening}\n{without if unsupported else ''}{LOST}"
    assert in_memory("listen", *words) == (3, out, err)
    assert server.requests[3:] == [(method, {"uri": "a:b"})]


@pytest.mark.parametrize(
    ("words", "listening", "unsupported"),
    [
        ([], "tools, resources", "prompts"),
        (["--resources"], "resources", ""),
        (["--tools"], "tools", ""),
    ],
)
def test_listen_without_words_subscribes_to_all_lists(
    words: list[str], listening: str, unsupported: str, in_memory: MemoryCommand
) -> None:
    in_memory.server = AnsweringServer(CAPABILITIES, {}, last="notifications/initialized")
    without = f"mcp-trio: the server sends no notifications about {unsupported}\n"
    err = f"mcp-trio: listening to {listening}\n{without if unsupported else ''}{LOST}"
    assert in_memory("listen", *words) == (3, "", err)


def test_listen_to_another_word_than_a_uri_starts_no_server(in_memory: MemoryCommand) -> None:
    for word, complaint in [("b", "'b' is not a URI: "), ("a:{b}", "a:{b} is a template: ")]:
        status, out, err = in_memory("listen", word)
        assert (status, out) == (2, "")
        assert err.startswith(f"mcp-trio: {complaint}")
    assert in_memory.launches == []
