"""Who answers when a server asks: a person at the terminal, what was given by `--answer`, or nobody."""

from __future__ import annotations

import io
import signal
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.types import ElicitParams, ElicitResult
from mcp_trio._command._problem import Problem
from mcp_trio._command._screen import Screen
from mcp_trio._command._talk import Target
from mcp_trio._command._user import User
from tests.trio_.command.program import ServerFile, Terminal, run

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = ["2026-07-28", "2025-11-25"]
SEATS = {
    "count": {"type": "integer", "minimum": 1, "maximum": 8},
    "where": {"type": "string", "enum": ["aisle", "window"], "default": "aisle"},
    "extras": {"type": "array", "items": {"enum": ["tea", "milk"]}},
    "note": {"type": "string", "default": "too long", "maxLength": 3},
}


@pytest.fixture
def asking(server: ServerFile) -> tuple[str, ...]:
    return server("""
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
            return ", ".join(str(answer.data.count) if answer.action == "accept" else answer.action for answer in found)

        @app.tool
        async def delete(context: mcp_trio.Context) -> str:
            "Has to be sure."
            return (await context.elicit("Delete everything?", {"type": "object", "properties": {}})).action

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


# -- What was given beforehand ------------------------------------------------------------------------------------------------


def answered(given: list[str], fields: dict[str, Any], required: list[str]) -> tuple[ElicitResult, str, bool]:
    """What a form is answered with, what is said about it, and whether that is a misuse."""
    said = io.BytesIO()
    user = User("server", given, Screen(io.TextIOWrapper(said)))
    schema = {"type": "object", "properties": fields, "required": required}
    on_elicit = user.options.get("on_elicit")
    assert on_elicit is not None
    answer = on_elicit(ElicitParams(message="Fill\x1b this in", requested_schema=schema))
    assert isinstance(answer, ElicitResult)
    return answer, said.getvalue().decode(), user.misused


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
def test_a_form_is_filled_in_as_if_typed(given: list[str], content: dict[str, Any]) -> None:
    answer, said, misused = answered(given, SEATS, ["count"])
    assert answer == ElicitResult(action="accept", content=content)
    assert (said, misused) == ("", False)


UNFIT = [
    (["count=9"], "--answer count=9: 9 is more than 8"),
    (["count=two"], "--answer count=two: two is no integer; one is 3"),
    (["count=1", "where=roof"], "--answer where=roof: roof is none of the choices"),
    (["coun=1"], "the form has no argument coun; it takes count, where, extras, note. Did you mean count?"),
    (["note=a"], "the form needs count: add --answer count=..."),
    (['{"note": "a"}'], "the form needs count: add --answer count=..."),
    (['{"count": 0}'], "--answer: count is less than 1"),
    (['{"count": null}'], "--answer: count is no number"),
    (['{"count": 1, "extras": [1]}'], "--answer: extras has something that is none of the choices"),
]


@pytest.mark.parametrize(("given", "complaint"), UNFIT)
def test_what_does_not_fit_is_said_and_cancels(given: list[str], complaint: str) -> None:
    answer, said, misused = answered(given, SEATS, ["count"])
    assert answer == ElicitResult(action="cancel")
    assert (said, misused) == (f"mcp-trio: {complaint}\n", True)


NO_ANSWERS = [
    (["count"], "'count' is no answer: write --answer KEY=VALUE"),
    (["=2"], "'=2' is no answer"),
    (["{count: 2}"], "'{count: 2}' is not JSON"),
    (['{"a": NaN}'], "is not JSON: NaN is no JSON number"),
    (['{"a": "\\ud800"}'], "is no text that can be sent"),
    (["count=2", "{}"], "KEY=VALUE, all for one form, or a JSON object for each form, but not both"),
]


@pytest.mark.parametrize(("given", "complaint"), NO_ANSWERS)
def test_what_is_no_answer_is_refused_at_once(given: list[str], complaint: str) -> None:
    with pytest.raises(Problem) as caught:
        User("server", given, Screen(None))
    assert complaint in str(caught.value)


def test_nothing_is_offered_where_nobody_can_answer() -> None:
    assert User("server", [], Screen(None)).options == {}
    assert not User("server", ["a=1"], Screen(None)).present


SCRIPTS = [
    (("call", "book"), ("--answer", "count=2"), "2 at the aisle\n", 0),
    (("read", "seats://booked"), ("--answer", "count=2"), "2 at the aisle", 0),
    (("prompt", "book"), ("--answer", "count=2"), "user:\n2 at the aisle\n", 0),
    (("call", "book"), ("--answer", "count=3", "--answer", "where=window"), "3 at the window\n", 0),
    (("call", "book"), ("--answer", "count=9"), "cancel\n", 2),
    (("call", "rebook"), ("--answer", '{"count": 1}', "--answer", '{"count": 2}'), "1, 2\n", 0),
    (("call", "rebook"), ("--answer", "count=1"), "1, cancel\n", 2),
    (("call", "delete"), ("--answer", "{}"), "accept\n", 0),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("words", "options", "output", "status"), SCRIPTS)
def test_scripts_answer(
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
        assert "mcp-trio: there is no --answer left for what the server asks: Flight 2\n" in result.stderr


UNASKED = [
    (
        ("call", "book"),
        '"elicitation":{}',
        "run this at a terminal, or with --answer KEY=VALUE",
    ),
    (("read", "seats://booked"), '"elicitation":{}', "--answer KEY=VALUE"),
    (("call", "log_in", "--answer", "a=b"), '"url":{}', "run this at a terminal"),
    (("call", "look_around"), '"roots":{}', "--root PATH tells it where to work"),
    (("call", "think"), '"sampling":{}', "it asks for a language model, and this command has none"),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("words", "lacking", "cure"), UNASKED)
def test_what_cannot_be_asked_is_said_with_its_cure(
    asking: tuple[str, ...], words: tuple[str, ...], lacking: str, cure: str, version: str
) -> None:
    result = run(*words, "--revision", version, *asking)
    assert (result.returncode, result.stdout) == (1, "")
    assert lacking in result.stderr
    assert result.stderr.endswith(f"{cure}\n")


@pytest.mark.parametrize("version", VERSIONS)
def test_roots_are_told(asking: tuple[str, ...], tmp_path: Path, version: str) -> None:
    place = tmp_path / "a place"
    place.mkdir()
    given = ("--root", str(place), "--root", str(place / ".."))
    result = run("call", "look_around", "--json", *given, "--revision", version, *asking)
    assert result.returncode == 0
    for root in place, tmp_path:
        assert f'"{root.as_uri()}"' in result.stdout


def test_a_page_that_has_to_be_visited_first_is_named(server: ServerFile) -> None:
    target = server("""
        from mcp_core.registry import UrlElicitationRequired

        app = mcp_trio.Server("careful")

        @app.tool
        def pay() -> str:
            "Wants a login first."
            raise UrlElicitationRequired("Log in first", "https://example.com/login", "1")
    """)
    with Terminal("call", "pay", "--revision", "2025-11-25", *target) as terminal:
        seen = terminal.rest().replace("\n", " ")
    assert terminal.status == 1
    assert "; open https://example.com/login in a browser if you trust it, and try again" in seen


# -- At a terminal ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("ELIC-11", "ELIC-22")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_person_fills_in_a_form(asking: tuple[str, ...], version: str) -> None:
    with Terminal("call", "book", "--revision", version, *asking, NO_COLOR="1") as terminal:
        seen = terminal.type("many\n", behind="integer, 1 to 8: ")
        seen += terminal.type("3\n", behind="integer, 1 to 8: ")
        seen += terminal.type("\n", behind="number or name [aisle]: ")
        seen += terminal.type("2\n", behind="to change it: ")
        seen += terminal.type("window\n", behind="number or name [aisle]: ")
        seen += terminal.type("yes\n", behind="to change it: ")
        seen += terminal.rest()
    assert terminal.status == 0
    assert "mcp_trio run " in seen.partition(" asks:")[0]
    assert "  Seats on KL 1234\n" in seen
    assert "many\n  many is no integer; one is 3\n  integer, 1 to 8: 3\n" in seen
    assert "  2  ^[1mwhere^[0m: aisle\n" in seen
    assert "  2  ^[1mwhere^[0m: window\n" in seen
    assert "looking" in seen.partition(" asks:")[0]  # the bar, which is back after the last answer
    assert "booking" in seen.partition("change it: yes")[2]
    assert "3 at the window\n" in seen


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("typed", "action"), [("!\n", "decline"), ("\x04", "cancel")])
def test_a_person_turns_away(asking: tuple[str, ...], version: str, typed: str, action: str) -> None:
    with Terminal("call", "book", "--revision", version, *asking) as terminal:
        terminal.type(typed, behind="integer, 1 to 8: ")
        assert terminal.rest().endswith(f"{action}\n")
    assert terminal.status == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_person_is_asked_about_a_page(asking: tuple[str, ...], version: str) -> None:
    with Terminal("call", "log_in", "--revision", version, *asking, NO_COLOR="1") as terminal:
        seen = terminal.type("\n", behind="Do you go there? yes, or no to decline (Ctrl+D cancels): ")
        assert "  https://^[1mexample.com^[0m/login?a=1\n" in seen
        terminal.type("yes\n", behind="Do you go there? ")
        assert terminal.rest().endswith("accept\n")


def test_what_was_given_comes_before_the_person(asking: tuple[str, ...]) -> None:
    with Terminal("call", "rebook", "--answer", "count=1", *asking) as terminal:
        seen = terminal.type("!\n", behind="integer, 1 to 8: ")
        assert terminal.rest().endswith("1, decline\n")
    assert "Flight 1" not in seen
    assert "Flight 2" in seen


@pytest.mark.parametrize("version", VERSIONS)
def test_ctrl_c_at_a_question(asking: tuple[str, ...], version: str) -> None:
    with Terminal("call", "delete", "--revision", version, *asking) as terminal:
        terminal.type("ye", behind="Do you agree? ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.rest().endswith("ye\n")
    assert terminal.status == 130


def test_who_is_asked_has_all_the_time_in_the_world() -> None:
    def nothing(*_: object) -> None:
        raise AssertionError("there is no progress")

    user = User("server", [], Screen(None))
    target = Target(server=("server",), timeout=5, user=user)
    assert target.call_options(nothing) == {"timeout": 5, "progress": nothing}
    user.present = True
    assert target.call_options(nothing) == {"timeout": 5, "max_timeout": None, "progress": nothing}
