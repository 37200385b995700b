"""Elicitation: answers from `--answer`, from a user at a terminal, or none."""

from __future__ import annotations

import io
import re
import signal
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.types import ElicitParams, ElicitResult
from mcp_trio.cli._elicitation_answers import ElicitationAnswers
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target
from tests.harness.world.command import (
    Hosted,
    ServerFile,
    Terminal,
    run,
)

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = ["2026-07-28", "2025-11-25"]
SEATS = {
    "count": {"type": "integer", "minimum": 1, "maximum": 8},
    "where": {"type": "string", "enum": ["aisle", "window"], "default": "aisle"},
    "extras": {"type": "array", "items": {"enum": ["tea", "milk"]}},
    "note": {"type": "string", "default": "too long", "maxLength": 3},
}


@pytest.fixture(scope="module")
def asking(hosted: Hosted) -> tuple[str, ...]:
    return hosted("""
        from typing import Annotated, Literal

        import msgspec

        app = mcp_trio.Server("asking")

        class Seats(msgspec.Struct):
            count: Annotated[int, msgspec.Meta(ge=1, le=8, title="Seats", description="How many?")]
            where: Literal["aisle", "window"] = "aisle"

        @app.resource("seats://booked")
        @app.prompt
        @app.tool
        async def book(context: mcp_trio.Context) -> str:
            "Books seats."
            await context.progress(1, 3, "looking")
            answer = await context.elicit("Seats on KL 1234", Seats)
            if answer.action != "accept":
                return answer.action
            await context.progress(2, 3, "booking")
            return f"{answer.data.count} at the {answer.data.where}"

        @app.tool
        async def rebook(context: mcp_trio.Context) -> str:
            "Books twice."
            found = [await context.elicit(f"Flight {number}", Seats) for number in (1, 2)]
            return ", ".join(
                str(answer.data.count) if answer.action == "accept" else answer.action
                for answer in found
            )

        @app.tool
        async def delete(context: mcp_trio.Context) -> str:
            "Has to be sure."
            form = {"type": "object", "properties": {}}
            return (await context.elicit("Delete everything?", form)).action

        @app.tool
        async def log_in(context: mcp_trio.Context) -> str:
            "Sends to a page."
            return (await context.elicit_url("Log in", "https://example.com/login?a=1")).action

        @app.tool
        async def look_around(context: mcp_trio.Context) -> list[str]:
            "Tells where it may work."
            return [root.uri for root in await context.roots()]

        @app.tool
        async def think(context: mcp_trio.Context) -> str:
            "Asks a model."
            return (await context.sample("Why?", max_tokens=9)).model
    """)


# -- `--answer` --------------------------------------------------------------------------------


def answer_form_with(
    given: list[str], fields: dict[str, Any], required: list[str]
) -> tuple[ElicitResult, str, bool]:
    """Answer a form. Return the result, what was printed, and whether the answers were invalid."""
    printed = io.BytesIO()
    answers = ElicitationAnswers("server", given, Screen(io.TextIOWrapper(printed)))
    schema = {"type": "object", "properties": fields, "required": required}
    on_elicit = answers.client_options.get("on_elicit")
    assert on_elicit is not None
    answer = on_elicit(ElicitParams(message="Fill\x1b this in", requested_schema=schema))
    assert isinstance(answer, ElicitResult)
    return answer, printed.getvalue().decode(), answers.answers_invalid


GIVEN: list[tuple[list[str], dict[str, Any]]] = [
    (["count=2"], {"count": 2, "where": "aisle"}),
    (
        ["count=2", "where=2", "extras=milk,1", "note==x"],
        {"count": 2, "where": "window", "extras": ["milk", "tea"], "note": "=x"},
    ),
    (["count=2", "note="], {"count": 2, "where": "aisle", "note": ""}),
    (["count=2", "count=3"], {"count": 3, "where": "aisle"}),
    (['{"count": 2.0, "extras": ["tea"]}'], {"count": 2.0, "where": "aisle", "extras": ["tea"]}),
    (['{"count": 2, "more": "a"}'], {"count": 2, "where": "aisle", "more": "a"}),
]


@pytest.mark.parametrize(("given", "content"), GIVEN)
def test_answer_option_is_read_as_if_typed(given: list[str], content: dict[str, Any]) -> None:
    answer, printed, misused = answer_form_with(given, SEATS, ["count"])
    assert answer == ElicitResult(action="accept", content=content)
    assert (printed, misused) == ("", False)


UNFIT = [
    (["count=9"], "--answer count=9: 9 is more than 8"),
    (["count=two"], "--answer count=two: two is not an integer, such as 3"),
    (["count=1", "where=roof"], "--answer where=roof: roof is not one of the choices"),
    (
        ["coun=1"],
        "the form has no argument coun; it takes count, where, extras, note. Did you mean count?",
    ),
    (["note=a"], "the form needs count: add --answer count=..."),
    (['{"note": "a"}'], "the form needs count: add --answer count=..."),
    (['{"count": 0}'], "--answer: count is less than 1"),
    (['{"count": null}'], "--answer: count is no number"),
    (['{"count": 1, "extras": [1]}'], "--answer: extras has something that is none of the choices"),
]


@pytest.mark.parametrize(("given", "complaint"), UNFIT)
def test_answer_option_invalid_cancels_with_reason(given: list[str], complaint: str) -> None:
    answer, printed, misused = answer_form_with(given, SEATS, ["count"])
    assert answer == ElicitResult(action="cancel")
    assert (printed, misused) == (f"mcp-trio: {complaint}\n", True)


NO_ANSWERS = [
    (["count"], "'count' is not an answer: write --answer KEY=VALUE"),
    (["=2"], "'=2' is not an answer"),
    (["{count: 2}"], "'{count: 2}' is not JSON"),
    (['{"a": NaN}'], "is not JSON: NaN is not a JSON number"),
    (['{"a": "\\ud800"}'], "cannot be sent: one of its"),
    (
        ["count=2", "{}"],
        "KEY=VALUE, all for one form, or a JSON object for each form, but not both",
    ),
]


@pytest.mark.parametrize(("given", "complaint"), NO_ANSWERS)
def test_answer_option_malformed_is_rejected_at_start(given: list[str], complaint: str) -> None:
    with pytest.raises(CliError) as caught:
        ElicitationAnswers("server", given, Screen(None))
    assert complaint in str(caught.value)


def test_user_without_terminal_and_answers_declares_nothing() -> None:
    assert ElicitationAnswers("server", [], Screen(None)).client_options == {}
    assert not ElicitationAnswers("server", ["a=1"], Screen(None)).at_terminal


SCRIPTS = [
    (("call", "book"), ("--answer", "count=2"), "2 at the aisle\n", 0),
    (("read", "seats://booked"), ("--answer", "count=2"), "2 at the aisle", 0),
    (("prompt", "book"), ("--answer", "count=2"), "user:\n  2 at the aisle\n", 0),
    (("call", "book"), ("--answer", "count=3", "--answer", "where=window"), "3 at the window\n", 0),
    (("call", "book"), ("--answer", "count=9"), "cancel\n", 2),
    (("call", "rebook"), ("--answer", '{"count": 1}', "--answer", '{"count": 2}'), "1, 2\n", 0),
    (("call", "rebook"), ("--answer", "count=1"), "1, cancel\n", 2),
    (("call", "delete"), ("--answer", "{}"), "accept\n", 0),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("words", "options", "output", "status"), SCRIPTS)
def test_answer_options_fill_in_forms_in_order(
    asking: tuple[str, ...],
    words: tuple[str, ...],
    options: tuple[str, ...],
    output: str,
    status: int,
    version: str,
) -> None:
    result = run(*words, *options, "--revision", version, *asking)
    assert (result.returncode, result.stdout) == (status, output), result.stderr
    assert "Traceback" not in result.stderr
    if words == ("call", "rebook") and status:
        assert (
            "mcp-trio: no --answer is left for this form of the server: Flight 2\n" in result.stderr
        )


UNASKED = [
    (
        ("call", "book"),
        '"elicitation":{}',
        "run this command in a terminal, or add --answer KEY=VALUE",
    ),
    (("read", "seats://booked"), '"elicitation":{}', "--answer KEY=VALUE"),
    (("call", "log_in", "--answer", "a=b"), '"url":{}', "run this command in a terminal"),
    (("call", "look_around"), '"roots":{}', "it asks where it may work: add --root PATH"),
    (
        ("call", "think"),
        '"sampling":{}',
        "it asks for a language model, which this command does not have",
    ),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("words", "lacking", "cure"), UNASKED)
def test_missing_client_capability_is_explained_with_cure(
    asking: tuple[str, ...], words: tuple[str, ...], lacking: str, cure: str, version: str
) -> None:
    result = run(*words, "--revision", version, *asking)
    assert (result.returncode, result.stdout) == (1, "")
    assert lacking in result.stderr
    assert result.stderr.endswith(f"{cure}\n")


@pytest.mark.parametrize("version", VERSIONS)
def test_root_options_are_sent_as_roots(
    asking: tuple[str, ...], tmp_path: Path, version: str
) -> None:
    place = tmp_path / "a place"
    place.mkdir()
    given = ("--root", str(place), "--root", str(place / ".."))
    result = run("call", "look_around", "--json", *given, "--revision", version, *asking)
    assert result.returncode == 0
    for root in place, tmp_path:
        assert f'"{root.as_uri()}"' in result.stdout


# A server that requests the roots a little after the handshake, as server-everything does.
LATE = """
    import json, sys, threading

    roots = None

    def send(**members):
        print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        if method == "initialize":
            info = {"name": "late", "version": "1"}
            revision = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            send(id=id, result=revision | {"serverInfo": info})
        elif method == "notifications/initialized":
            ask = {"id": "r", "method": "roots/list"}
            threading.Timer(0.3, send, kwargs=ask).start()
        elif method == "tools/list":
            send(id=id, result={"tools": [{"name": "roots", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call":
            send(id=id, result={"content": [{"type": "text", "text": json.dumps(roots)}]})
        elif id == "r":
            roots = message["result"]["roots"]
"""


def test_root_option_waits_until_server_has_requested_roots(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(textwrap.dedent(LATE))
    target = ("--revision", "2025-11-25", "--", sys.executable, "-S", str(server))
    result = run("call", "roots", "--root", str(tmp_path), *target)
    assert result.stdout == f'[{{"uri": "{tmp_path.as_uri()}"}}]\n'
    assert result.stderr == ""
    assert run("call", "roots", *target).stdout == "null\n"  # without the option it does not wait


def test_required_url_elicitation_names_page(server: ServerFile) -> None:
    target = server("""
        from mcp_core.registry import UrlElicitationRequired

        app = mcp_trio.Server("careful")

        @app.tool
        def pay() -> str:
            "Wants a login first."
            raise UrlElicitationRequired("Log in first", "https://example.com/login", "1")
    """)
    with Terminal("call", "pay", "--revision", "2025-11-25", *target) as terminal:
        seen = " ".join(terminal.rest().split())
    assert terminal.status == 1
    assert "; open https://example.com/login in a browser if you trust it, and try again" in seen


# -- At a terminal -----------------------------------------------------------------------------


@pytest.mark.requirement("ELIC-11", "ELIC-22")
@pytest.mark.parametrize("version", VERSIONS)
def test_user_at_terminal_fills_in_form(
    hosted: Hosted, asking: tuple[str, ...], version: str
) -> None:
    """A wrong value is asked for again, and the progress bar gives way to the questions."""
    target = hosted.as_child(asking)
    with Terminal("call", "book", "--revision", version, *target, NO_COLOR="1") as terminal:
        seen = terminal.type("many\n", behind="integer, 1 to 8: ")
        seen += terminal.type("3\n", behind="integer, 1 to 8: ")
        seen += terminal.type("\n", behind="number or name [aisle]: ")
        seen += terminal.type("2\n", behind="to change it: ")
        seen += terminal.type("window\n", behind="number or name [aisle]: ")
        seen += terminal.type("yes\n", behind="to change it: ")
        seen += terminal.rest()
    assert terminal.status == 0
    # The path of the interpreter decides where the line is folded and coloured anew.
    asking_line = re.sub(r"\^\[[0-9;?]*[a-zA-Z]", "", seen.partition(" asks:")[0])
    assert "-m mcp_trio run" in " ".join(asking_line.split())
    assert "  | Seats on KL 1234\n" in seen
    assert "many\n  many is not an integer, such as 3\n  integer, 1 to 8: 3\n" in seen
    assert "  2  ^[1mwhere^[0m: aisle\n" in seen
    assert "  2  ^[1mwhere^[0m: window\n" in seen
    assert (
        "looking" in seen.partition(" asks:")[0]
    )  # the progress bar, shown again after the last answer
    assert "booking" in seen.partition("change it: yes")[2]
    assert "3 at the window\n" in seen


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("typed", "action"), [("!\n", "decline"), ("\x04", "cancel")])
def test_user_at_terminal_declines_or_cancels(
    asking: tuple[str, ...], version: str, typed: str, action: str
) -> None:
    with Terminal("call", "book", "--revision", version, *asking) as terminal:
        terminal.type(typed, behind="integer, 1 to 8: ")
        assert terminal.rest().endswith(f"{action}\n")
    assert terminal.status == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_user_at_terminal_is_asked_to_open_page(asking: tuple[str, ...], version: str) -> None:
    with Terminal(
        "call", "log_in", "--revision", version, *asking, NO_COLOR="1", COLUMNS="120"
    ) as terminal:
        seen = terminal.type(
            "\n",
            behind="page at example.com? yes, or no to decline (Ctrl+D cancels): ",
        )
        assert "  https://^[1mexample.com^[0m/login?a=1\n" in seen
        terminal.type("yes\n", behind="Will you open the page at example.com? ")
        assert terminal.rest().endswith("accept\n")


def test_answer_option_is_used_before_terminal(asking: tuple[str, ...]) -> None:
    with Terminal("call", "rebook", "--answer", "count=1", *asking) as terminal:
        seen = terminal.type("!\n", behind="integer, 1 to 8: ")
        assert terminal.rest().endswith("1, decline\n")
    assert "Flight 1" not in seen
    assert "Flight 2" in seen


@pytest.mark.parametrize("version", VERSIONS)
def test_ctrl_c_during_question_exits_with_130(asking: tuple[str, ...], version: str) -> None:
    with Terminal("call", "delete", "--revision", version, *asking) as terminal:
        terminal.type("ye", behind="Do you agree? ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.rest().endswith("ye\n")
    assert terminal.status == 130


def test_call_with_user_present_has_no_maximum_time() -> None:
    def nothing(*_: object) -> None:
        raise AssertionError("there is no progress")

    answers = ElicitationAnswers("server", [], Screen(None))
    target = Target(server=("server",), timeout=5, answers=answers)
    assert target.call_options(nothing) == {"timeout": 5, "progress": nothing}
    answers.at_terminal = True
    assert target.call_options(nothing) == {"timeout": 5, "max_timeout": None, "progress": nothing}
