"""`mcp-trio doctor` in memory: the steps of a program, and what a failed negotiation says."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import AuthRequired, ConnectFailed, RemoteProtocolError
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target
from mcp_trio.cli.use import _doctor
from mcp_trio.cli.use._doctor import Examination, Skipped, StepOutcome
from tests.trio_.cli.in_memory import AnsweringServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.trio_.cli.in_memory import MemoryCommand

URL = Target(server="http://x/mcp", timeout=5, stderr=Screen(None))
PROGRAM = Target(server=(sys.executable,), stderr=Screen(None))
SCHEMA = {"type": "object"}
TOOL = {"name": "a", "inputSchema": SCHEMA}
TOOLS = {"tools/list": {"tools": [TOOL, {"name": "b", "inputSchema": SCHEMA}]}}
REFUSED = {"error": {"code": -32000, "message": "no"}}
SKIPPED = f"""\
ok         name           {sys.executable} is a program
skipped    connection     the negotiation starts the program
skipped    TLS            stdin and stdout do not use it
skipped    authorization  stdin and stdout need no token
"""
GREETED = "ok         negotiation    played 1, revision 2025-06-18\n"


def doctor(command: MemoryCommand, *words: str, terminal: bool = False) -> tuple[int, str, str]:
    return command("doctor", *words, "--", sys.executable, target=None, terminal=terminal)


@pytest.mark.parametrize(
    ("capabilities", "answers", "status", "lists"),
    [
        ({"tools": {}}, TOOLS, 0, "ok         lists          2 tools\n"),
        (
            {"tools": {}, "resources": {}, "prompts": {}},
            {
                "tools/list": {"tools": []},
                "resources/list": {"resources": [{"uri": "a:b", "name": "n"}]},
                "prompts/list": {"prompts": []},
            },
            0,
            ("ok         lists          0 tools, 1 resource, 0 resource templates, 0 prompts\n"),
        ),
        ({}, {}, 0, "ok         lists          the server offers nothing\n"),
        (
            {"tools": {}},
            {"tools/list": REFUSED},
            1,
            "failed     lists          the server answered with an error: no (-32000)\n",
        ),
        (
            {"tools": {}, "prompts": {}},
            {**TOOLS, "prompts/list": REFUSED},
            1,
            "failed     lists          prompts: the server answered with an error: no (-32000)\n",
        ),
        (
            {"tools": {}},
            {"tools/list": {"tools": [TOOL, {"name": 5}]}},
            1,
            (
                "failed     lists          tools: tools[1] was left out: Expected `str`, got `int`"
                " (at tools[1].name)\n"
            ),
        ),
    ],
)
def test_doctor_prints_each_step_of_a_program(
    capabilities: Any, answers: Any, status: int, lists: str, in_memory: MemoryCommand
) -> None:
    in_memory.server = AnsweringServer(capabilities, answers)
    found, out, _ = doctor(in_memory)
    assert (found, out) == (status, SKIPPED + GREETED + lists)


def test_doctor_json_and_styles(in_memory: MemoryCommand) -> None:
    """The document has every step, a terminal a colour for each state."""
    in_memory.server = AnsweringServer({"tools": {}}, TOOLS)
    status, out, _ = doctor(in_memory, "--json")
    steps = json.loads(out)["steps"]
    assert [each["step"] for each in steps] == [each.name for each in _doctor.STEPS]
    assert steps[-1] == {"step": "lists", "state": "ok", "text": "2 tools"}
    assert status == 0
    _, out, _ = doctor(in_memory, terminal=True)
    assert "^[32mok         ^[0mlists          2 tools\n" in out
    assert "^[2mskipped    ^[0mTLS " in out
    in_memory.server = AnsweringServer({"tools": {}}, {"tools/list": REFUSED})
    assert "^[1;31mfailed     ^[0mlists " in doctor(in_memory, terminal=True)[1]


def test_doctor_server_that_does_not_answer_fails_the_negotiation(
    in_memory: MemoryCommand,
) -> None:
    """The steps that need it aren't tried, and the exit status is the one of no connection."""
    silent = {"initialize": "silent", "server/discover": "silent"}
    in_memory.server = AnsweringServer({}, silent)
    status, out, err = doctor(in_memory, "--timeout", "2")
    assert status == 3
    assert out.startswith(SKIPPED + "failed     negotiation    ")
    assert out.endswith("\nnot tried  lists\n")
    assert "did not answer within 2 s. Is that an MCP server on stdin and stdout?" in out
    assert err == ""


def examination_of(target: Target, **more: Any) -> tuple[Examination, list[StepOutcome]]:
    reported: list[StepOutcome] = []
    found = Examination(
        target=target, report=reported.append, direct=target, hide=lambda text: text, **more
    )
    return found, reported


@pytest.mark.parametrize(("length", "shown"), [(4000, 4000), (4001, None)])
def test_doctor_outcome_is_shortened_and_kept(length: int, shown: int | None) -> None:
    examination, reported = examination_of(PROGRAM)
    examination.note("name", "ok", "t" * length)
    (outcome,) = reported
    assert examination.outcomes == {"name": outcome}
    assert (len(outcome.text) == shown) is (shown is not None)


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        (PROGRAM, None),
        (replace(PROGRAM, file="no.py"), None),
        (Target(server=("no-such",), stderr=Screen(None)), "there is no program no-such on PATH"),
        (Target(server=("./no",), stderr=Screen(None)), "no is not a program; is the path right"),
        (
            replace(PROGRAM, server=("sh",), env=(("PATH", "/nowhere"),)),
            "there is no program sh on PATH; is it installed?",
        ),
        (Target(server=("sh",), stderr=Screen(None)), None),
    ],
)
def test_doctor_name_of_a_program_is_found_as_it_would_be_started(
    target: Target, complaint: str | None
) -> None:
    if complaint is None:
        assert _doctor._find_program(target).startswith(target.file or target.server[0])
        return
    with pytest.raises(CliError) as caught:
        _doctor._find_program(target)
    assert complaint in str(caught.value)


def test_doctor_program_of_the_current_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./it` isn't looked for on PATH, where it would be missing."""
    program = tmp_path / "it"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    target = Target(server=("./it",), stderr=Screen(None))
    assert _doctor._find_program(target) == "./it is a program"
    assert _doctor._find_program(replace(target, cwd=tmp_path)) == f"{program} is a program"


def test_doctor_path_of_a_program_begins_at_its_directory(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "it"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    target = Target(server=("bin/it",), cwd=tmp_path, stderr=Screen(None))
    assert _doctor._find_program(target) == f"{program} is a program"
    with pytest.raises(CliError, match="is not a program"):
        _doctor._find_program(replace(target, cwd=tmp_path / "bin"))


@pytest.mark.parametrize(
    ("addresses", "text"),
    [
        (["x"], "x is an address"),
        (["1.2.3.4"], "x is 1.2.3.4"),
        (["1", "2", "3", "4"], "x is 1, 2, 3, 4"),
        (["1", "2", "3", "4", "5"], "x is 1, 2, 3, 4 and 1 more"),
    ],
)
def test_doctor_name_of_a_host_has_four_addresses_at_most(
    addresses: list[str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_up(host: str, port: int) -> list[str]:
        assert (host, port) == ("x", 80)
        return addresses

    monkeypatch.setattr(_doctor, "look_up", look_up)
    monkeypatch.setattr(Examination, "proxy_of", lambda self, url: None)
    assert _doctor._find_name(examination_of(URL)[0]) == text
    monkeypatch.setattr(Examination, "proxy_of", lambda self, url: "http://proxy")
    assert _doctor._find_name(examination_of(URL)[0]) == "the proxy of this system looks up x"


@pytest.mark.parametrize(
    ("server", "url", "is_websocket"),
    [
        ("http://x/mcp", "http://x/mcp", False),
        ("wss://x/mcp", "https://x/mcp", True),
        (("a",), None, False),
    ],
)
def test_doctor_url_has_the_scheme_of_its_connection(
    server: Any, url: str | None, is_websocket: bool
) -> None:
    examination, _ = examination_of(Target(server=server, stderr=Screen(None)))
    found = examination.url
    shown = None if found is None else f"{found.scheme}://{found.host}/mcp"
    assert (shown, examination.is_websocket) == (url, is_websocket)


@pytest.mark.parametrize(
    ("step", "server", "why"),
    [
        (_doctor._connect, ("a",), "the negotiation starts the program"),
        (_doctor._start_tls, ("a",), "stdin and stdout do not use it"),
        (_doctor._start_tls, "http://x", "the URL is not encrypted"),
        (_doctor._find_login, ("a",), "stdin and stdout need no token"),
        (
            _doctor._find_login,
            "ws://x",
            "over a WebSocket, the server publishes nothing about tokens",
        ),
    ],
)
def test_doctor_step_that_a_server_does_not_have_is_skipped(
    step: Callable[[Examination], str], server: Any, why: str
) -> None:
    with pytest.raises(Skipped) as caught:
        step(examination_of(Target(server=server, stderr=Screen(None)))[0])
    assert str(caught.value) == why


@pytest.mark.parametrize(("timeout", "seconds"), [(5.0, "5"), (60.0, "10")])
def test_doctor_step_takes_ten_seconds_at_most(
    timeout: float, seconds: str, in_memory: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trio, "run", in_memory.run_with_jumping_clock)
    examination, _ = examination_of(replace(URL, timeout=timeout))
    with pytest.raises(CliError) as caught:
        examination.run(trio.sleep_forever)
    assert str(caught.value) == (f"nothing answered within {seconds} s; is a firewall in between?")

    async def answer() -> int:
        return 5

    assert examination.run(answer) == 5


# -- A failed negotiation --------------------------------------------------------------------------


def trying(outcomes: dict[str, CliError | None], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let each URL answer as `outcomes` says, others not at all. Return the targets."""
    tried: list[Any] = []

    def try_it(target: Target) -> CliError | None:
        tried.append(target)
        return outcomes.get(str(target.server), CliError("no"))

    monkeypatch.setattr(_doctor, "_try_without_token", try_it)
    return tried


def failed(status: object) -> CliError:
    """Return the error of a connection that an HTTP status ended."""
    error = CliError("no")
    error.__cause__ = ConnectFailed("no")
    error.__cause__.__cause__ = RemoteProtocolError("no", data={"status": status})
    return error


def needs_login(challenge: str) -> CliError:
    error = CliError("no")
    error.__cause__ = AuthRequired("no", challenge=challenge)
    return error


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (None, "An MCP server answers at http://x/b/sse: use that URL"),
        (
            needs_login("Bearer resource_metadata=a"),
            "An MCP server that requires a login answers at http://x/b/sse: use that URL",
        ),
        (
            needs_login("Bearer"),
            "Something that requires a login answers at http://x/b/sse: is it the server?",
        ),
        (CliError("no"), None),
    ],
)
def test_doctor_names_another_url_that_answers(
    outcome: CliError | None, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual paths below the given one, beside it and at the root, each once."""
    tried = trying({"http://x/b/sse": outcome}, monkeypatch)
    target = replace(URL, server="http://x/b/mcp", headers=(("x-a", "b"),))
    examination, _ = examination_of(target)
    assert _doctor._find_endpoint(examination, failed(404)) == text
    paths = [str(each.server).removeprefix("http://x") for each in tried]
    every = ["/b/mcp/mcp", "/b/mcp/sse", "/b/sse", "/mcp", "/sse"]
    assert paths == (every if text is None else every[:3])
    assert {(each.headers, each.timeout <= 5) for each in tried} == {((), True)}


def test_doctor_looks_elsewhere_after_some_statuses_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing or something else is served, and not after a failure of a server."""
    trying({"http://x/sse": None}, monkeypatch)
    examination, _ = examination_of(URL)
    found = {
        status
        for status in range(100, 600)
        if _doctor._find_endpoint(examination, failed(status)) is not None
    }
    assert found == {200, 400, 404, 405, 406, 410, 415, 501}
    no_status = failed(404)
    assert no_status.__cause__ is not None
    no_status.__cause__.__cause__ = RemoteProtocolError("no")
    assert _doctor._find_endpoint(examination, no_status) is not None
    assert _doctor._find_endpoint(examination, CliError("no")) is None
    websocket, _ = examination_of(replace(URL, server="ws://x/mcp"))
    assert _doctor._find_endpoint(websocket, failed(404)) is None


@pytest.mark.parametrize(
    ("text", "joined"),
    [("no", "no. More"), ("no.", "no. More"), ("no?", "no? More"), ("(no)", "(no) More")],
)
def test_doctor_sentences_are_joined(text: str, joined: str) -> None:
    assert _doctor._joined(text, "More") == joined


def test_doctor_shows_what_a_program_wrote_in_place_of_messages() -> None:
    """The first line that isn't JSON, unless the error is about it already."""
    heard = _doctor._StrayOutput()
    for direction, line in [
        ("sent", b"sent\n"),
        ("received", b' {"a": 1}\n'),
        ("received", b" [1]\n"),
        ("received", b"Listening on 80 \xff\n"),
        ("received", b"second\n"),
    ]:
        heard(direction, line)
    assert heard.line == "Listening on 80 \ufffd"
    examination, _ = examination_of(PROGRAM)
    text = str(_doctor._with_cure(examination, CliError("no"), heard))
    assert text.startswith("no. It wrote 'Listening on 80 \ufffd' to stdout, which is for messages")
    known = CliError("'Listening' is not an MCP message")
    assert str(_doctor._with_cure(examination, known, heard)) == str(known)
    heard.line = "l" * 101
    assert "l" * 101 not in str(_doctor._with_cure(examination, CliError("no"), heard))
    nothing = _doctor._with_cure(examination, CliError("no"), _doctor._StrayOutput())
    assert isinstance(nothing, CliError)
    assert (str(nothing), nothing.status) == ("no", 3)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("failed", "the server requires a token: see the line above about authorization"),
        ("ok", "no"),
    ],
)
def test_doctor_required_token_is_explained_once(
    state: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trying({}, monkeypatch)
    examination, _ = examination_of(URL)
    examination.note("authorization", state)
    found = _doctor._with_cure(examination, needs_login(""), _doctor._StrayOutput())
    assert str(found) == text


@pytest.mark.parametrize(
    ("second", "tried", "server", "kept"),
    [
        (None, 2, "http://x/mcp", False),
        (failed(500), 2, "http://x/mcp", False),
        (failed(404), 2, "http://x", True),
    ],
)
def test_doctor_examines_the_usual_path_if_it_answers(
    second: CliError | None,
    tried: int,
    server: str,
    kept: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The later steps use the URL that answered."""
    first = failed(404)
    targets = trying({"http://x": first, "http://x/mcp": second}, monkeypatch)
    examination, _ = examination_of(replace(URL, server="http://x"))
    assert _doctor._ask_without_token(examination) is (first if kept else second)
    assert len(targets) == tried
    assert (examination.direct.server, examination.target.server) == (server, server)


def test_doctor_path_that_answers_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a status without a server makes it try the usual path."""
    examination, _ = examination_of(replace(URL, server="http://x"))
    refused = failed(500)
    targets = trying({"http://x": refused}, monkeypatch)
    assert _doctor._ask_without_token(examination) is refused
    trying({"http://x": None}, monkeypatch)
    assert _doctor._ask_without_token(examination) is None
    assert len(targets) == 1
    trying({"http://x": refused}, monkeypatch)
    with pytest.raises(Skipped, match="the response does not say whether a token is needed"):
        _doctor._find_login(examination)
    trying({"http://x": None}, monkeypatch)
    assert _doctor._find_login(examination) == "no token is needed to connect"
