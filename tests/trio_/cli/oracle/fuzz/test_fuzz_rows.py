"""`mcp-trio fuzz --rows`, what counts as a call, and `--call-timeout`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.cli import main
from mcp_trio.cli.oracle.fuzz import _fuzz
from mcp_trio.oracle.fuzz._http import UrlTarget
from mcp_trio.oracle.fuzz.client import _source
from mcp_trio.oracle.fuzz.client._client_campaign import ClientCampaign
from tests.trio_.cli.oracle.fuzz import test_fuzz
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, MemoryHttpServer
from tests.trio_.oracle.fuzz.memory_target import OLD, MemoryTarget, answers, same_each_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytest.importorskip("hypothesis")

fuzz = test_fuzz.fuzz  # the fixture
OPEN: list[Any] = ["open", OLD, "whole", "all"]
PING: list[Any] = [OPEN, ["request", "ping", {}, "int"]]
NAP: list[Any] = [OPEN, ["call", "nap", {}, []], ["wait"]]
INVENTED = {"name": "mcp-trio-fuzz-none", "arguments": {}}
UNKNOWN: list[Any] = [OPEN, ["request", "tools/call", INVENTED, "int"], ["wait"]]


def has_tool(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a server with one tool sends. Calls of others are errors."""
    reply = {"jsonrpc": "2.0", "id": message.get("id")}
    params = message.get("params", {})
    for response in answers(message):
        if message["method"] == "initialize":
            response["result"]["capabilities"] = {"tools": {}}
        elif message["method"] == "tools/list":
            tool = {"name": "nap", "inputSchema": {"type": "object"}}
            response = {**reply, "result": {"tools": [tool]}}
        elif message["method"] == "tools/call" and params.get("name") == "nap":
            text = {"type": "text", "text": "done"}
            response = {**reply, "result": {"content": [text]}}
        elif message["method"] == "tools/call":
            response = {**reply, "error": {"code": -32602, "message": "unknown tool"}}
        yield response


def is_silent(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a server sends whose tool never answers."""
    params = message.get("params", {})
    if message.get("method") != "tools/call" or params.get("name") != "nap":
        yield from has_tool(message)


def reasons(out: str) -> dict[str, str]:
    """Return the reasons that `--rows` prints, by row."""
    found = {}
    for line in out.splitlines():
        head = line.rpartition("]: ")[0]
        if head:
            found[head.rpartition("[")[2]] = line[:12].strip()
    return found


@pytest.mark.parametrize(("words", "reason"), [((), "tools"), (("--allow-all",), "not drawn")])
def test_rows_of_calls_are_unseen_because_no_tool_may_be_called(
    fuzz: test_fuzz.Fuzz, words: tuple[str, ...], reason: str
) -> None:
    """Calls of tools that don't exist are drawn in every run, and are no reason for the others."""
    fuzz.target = MemoryTarget(same_each_time(has_tool))
    fuzz.store(UNKNOWN)
    run = fuzz("--rows", *words)
    found = reasons(run.out)
    assert {found[each] for each in ("TOOL-10", "TOOL-12", "TOOL-13", "TOOL-15")} == {reason}
    assert found["SHL-11"] == "transport"
    assert found["PAGE-1"] == "target"
    assert "RPC-7" not in found
    assert f"{len(found)} of " in run.out
    assert "rows about a server had no opportunity: " in run.out


def test_rows_are_printed_only_if_they_are_asked_for(fuzz: test_fuzz.Fuzz) -> None:
    assert reasons(fuzz().out) == {}


def test_rows_over_http(fuzz: test_fuzz.Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows about stdio have another transport, and those about HTTP don't."""

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        for each in has_tool(message) if message else ():
            return HttpResponse(body=json.dumps(each).encode())
        return HttpResponse(202)

    def target(given: Any, options: Any, nursery: Any) -> UrlTarget:
        found = UrlTarget("http://127.0.0.1:1/mcp", nursery)
        found._connector = MemoryHttpServer(nursery, respond)  # type: ignore[assignment]
        return found

    monkeypatch.setattr(_fuzz, "_fuzz_target", target)
    run = fuzz("--rows", server=("http://127.0.0.1:1/mcp",))
    found = reasons(run.out)
    assert (found["STDIO-2"], found["TOOL-13"], found["PAGE-1"]) == ("transport", "tools", "target")
    assert "transport" not in {found.get(each) for each in ("HTTP-1", "HTTP-6", "SHL-11")}
    assert "rows about a server had no opportunity: " in run.out


def test_rows_about_a_client(
    fuzz: test_fuzz.Fuzz, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are printed with no reason that only servers can have."""

    async def probe_client(*given: Any) -> _source.ClientOffers:
        return _source.ClientOffers(name="small 1", revisions=[OLD], servers={(OLD,): ["ping"]})

    async def run(self: ClientCampaign, stored: Any = ()) -> None:
        self.cases = self.messages = 1
        self.opportunities["RPC-7"] = 1

    monkeypatch.setattr(_source, "probe_client", probe_client)
    monkeypatch.setattr(ClientCampaign, "run", run)
    words = ["--cases", "1", "--output", str(fuzz.folder / "found"), "--rows"]
    assert main(["fuzz", "--client", *words, "--", "client", "{server}"]) == 0
    out = capsys.readouterr().out
    found = reasons(out)
    assert "RPC-7" not in found
    assert {"revision", "target"} <= set(found.values())
    assert "tools" not in found.values()
    assert f"{len(found)} of " in out
    assert "rows about a client had no opportunity: " in out


@pytest.mark.parametrize(
    ("server", "cases", "status"),
    [
        (has_tool, [NAP], 0),
        (has_tool, [UNKNOWN], 4),
        (is_silent, [NAP, UNKNOWN], 4),
        (is_silent, [PING], 4),
    ],
)
def test_run_in_which_no_allowed_tool_has_answered_has_judged_nothing(
    fuzz: test_fuzz.Fuzz, server: Any, cases: list[Any], status: int
) -> None:
    """The error for a tool that doesn't exist says nothing about the tool that was allowed."""
    fuzz.target = MemoryTarget(same_each_time(server))
    fuzz.store(*cases)
    run = fuzz("--allow-all")
    assert run.status == status
    message = "nothing was judged: 1 tool was allowed, and no call was answered"
    assert (message in run.err) is (status == 4)


@pytest.mark.parametrize(("words", "slow"), [((), 0), (("--call-timeout", "1"), 1)])
def test_call_timeout_is_how_long_a_call_may_take(
    fuzz: test_fuzz.Fuzz, words: tuple[str, ...], slow: int
) -> None:
    fuzz.target = MemoryTarget(same_each_time(has_tool), times={"tools/call": 5.0})
    fuzz.store(NAP)
    fuzz("--allow-all", *words)
    assert fuzz.report["slow"] == ({"tools/call nap": 1} if slow else {})


@pytest.mark.parametrize(("words", "shown"), [((), False), (("--call-timeout", "3"), True)])
def test_written_test_has_the_call_timeout(
    fuzz: test_fuzz.Fuzz, words: tuple[str, ...], shown: bool
) -> None:
    fuzz.target = MemoryTarget(test_fuzz.TWICE)
    assert fuzz(*words, "--no-shrink").status == 1
    assert (", call_timeout=3.0)" in fuzz.tests) is shown
    assert ("call_timeout" in fuzz.tests) is shown
