"""`mcp-trio diff --breaking`: the verdicts about the lists of two recordings."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.contract import Contract, InvalidContract, offers_of_lists
from mcp_trio.cli import main
from mcp_trio.cli.oracle import _breaking
from tests.core.trace.judge.conversations import C, S, ask, result
from tests.core.trace.replay.traces import HANDSHAKE
from tests.trio_.cli.oracle.test_diff import written

if TYPE_CHECKING:
    from pathlib import Path


def trace(path: Path, name: str, *tools: Any) -> str:
    said = [*HANDSHAKE, C(ask(2, "tools/list")), S(result(2, tools=list(tools)))]
    return written(path, name, said)


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def contract(revisions: list[str], *names: str) -> Contract:
    offers = offers_of_lists({"tools": [tool(name) for name in names]})
    return Contract(offers=dict.fromkeys(revisions, offers))


def test_gone_tool_breaks_and_new_one_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = trace(tmp_path, "a", tool("one")), trace(tmp_path, "b", tool("one"), tool("two"))
    assert main(["diff", "--breaking", old, new]) == 0
    assert capsys.readouterr().out == "compatible  tool two: is new\nchanges: 1 compatible\n"
    assert main(["diff", "--breaking", new, old]) == 1
    assert capsys.readouterr().out == "breaking    tool two: is gone\nchanges: 1 breaking\n"


def test_revision_of_one_trace_only_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace has the revisions that its clients asked for. A common one is compared."""

    old = contract(["2026-07-28", "2025-06-18"], "one", "two")
    new = contract(["2025-11-25", "2026-07-28"], "one")
    contracts = iter([old, new, new, old])
    monkeypatch.setattr(_breaking, "_contract", lambda trace: next(contracts))
    words = ["diff", "--breaking", *(trace(tmp_path, name) for name in "ab")]
    assert main(words) == 1
    assert capsys.readouterr().out == "breaking    tool two: is gone\nchanges: 1 breaking\n"
    assert main(words) == 0


def test_unclear_change_fails_unless_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = trace(tmp_path, "a", tool("one", a={"pattern": "a"}))
    new = trace(tmp_path, "b", tool("one", a={"pattern": "b"}))
    assert main(["diff", "--breaking", "--json", old, new]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["compared"]) == ("unclear", ["tools"])
    assert main(["diff", "--breaking", "--allow-unclear", old, new]) == 0


def test_traces_of_different_revisions_name_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    contracts = iter([contract([name], "one") for name in ("2025-11-25", "2026-07-28")])
    monkeypatch.setattr(_breaking, "_contract", lambda trace: next(contracts))
    old, new = (trace(tmp_path, name) for name in "ab")
    assert main(["diff", "--breaking", old, new]) == 4
    assert (
        f"nothing was compared: the lists are of different revisions, 2025-11-25 in {old},"
        f" 2026-07-28 in {new}: record both with one --revision"
    ) in capsys.readouterr().err


def test_traces_without_a_common_list_are_status_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = trace(tmp_path, "a", tool("one")), written(tmp_path, "b", HANDSHAKE)
    assert main(["diff", "--breaking", old, new]) == 4
    out, err = capsys.readouterr()
    assert out == ""  # which would look like a comparison
    assert "nothing was compared: no list was read to its end in both" in err


@pytest.mark.parametrize("words", [["--breaking", "--meta"], ["--allow-unclear"]])
def test_options_that_do_not_fit_are_status_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["diff", *words, "a", "b"])
    assert ended.value.code == 2


def test_contract_that_cannot_be_made_is_status_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(trace: object) -> Contract:
        raise InvalidContract("there are too many tools")

    monkeypatch.setattr(_breaking, "_contract", refuse)
    assert main(["diff", "--breaking", trace(tmp_path, "a"), trace(tmp_path, "b")]) == 4
    assert "there are too many tools" in capsys.readouterr().err


def test_contract_of_a_trace_has_the_first_name_of_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [
        SimpleNamespace(server=name, revision=revision, lists={}, capabilities={}, instructions="")
        for name, revision in [("", "2025-03-26"), ("one", "2025-06-18"), ("two", "2025-11-25")]
    ]
    monkeypatch.setattr(_breaking, "recorded_offers", lambda trace: found)
    made = _breaking._contract(None)  # type: ignore[arg-type]
    assert (made.server, list(made.offers)) == ("one", ["2025-03-26", "2025-06-18", "2025-11-25"])
    found.clear()
    assert _breaking._contract(None).server == ""  # type: ignore[arg-type]
