"""The pages of `docs/`: their code runs, their transcripts are true, and the files that they name
exist.
"""

from __future__ import annotations

import asyncio
import importlib
import re
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.testing import hostile
from tests.examples.pages import EXAMPLES, PAGES, ROOT, WITH_CODE, code, read, run
from tests.layering.rules import PUBLIC

if TYPE_CHECKING:
    from pathlib import Path

HOWTO = "docs/howto/"


@pytest.fixture(scope="module", autouse=True)
def _modules_are_imported() -> None:
    """Import once for all pages what their code imports; a framework takes half a second."""
    for page in WITH_CODE:
        names = re.findall(r"(?m)^(?:from|import) ([\w.]+)", "\n".join(code(page, "python")))
        for name in {*names} - {path.stem for path in EXAMPLES.glob("*.py")}:
            importlib.import_module(name)
    importlib.import_module("mcp_core.trace.judge")  # `connect_judged` does it on first use


@pytest.fixture(autouse=True)
def examples_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.mark.parametrize("page", WITH_CODE)
def test_page_with_code_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)  # a page may write files
    run(page)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith(HOWTO)])
def test_howto_page_has_task_and_errors(page: str) -> None:
    text = read(page)
    assert text.count("\n**Task:** ") == 1
    assert "\n## Errors\n" in text


def test_index_lists_every_page() -> None:
    listed = set(re.findall(r"\]\(([\w/-]+\.md)\)", read("docs/index.md")))
    pages = {page.removeprefix("docs/") for page in PAGES if not page.startswith("docs/project/")}
    assert listed == pages - {"README.md", "index.md"}


@pytest.mark.parametrize("page", ["docs/howto/testing.md", "CHANGELOG.md"])
def test_number_of_attacks_is_that_of_the_tables(page: str) -> None:
    tables = [getattr(hostile, name) for name in hostile.__all__ if name.endswith("_ATTACKS")]
    assert re.findall(r"(\d+) (?:bounded )?attacks\b", read(page)) == [str(sum(map(len, tables)))]


def test_security_page_names_the_tests_that_play_its_attacks() -> None:
    played = set(re.findall(r"`([\w/]+/test_\w+\.py)`", read("docs/explanation/security.md")))
    tests = ROOT / "tests"
    assert {name for name in played if not (tests / name).exists()} == set()
    attacks = {path.relative_to(tests).as_posix() for path in tests.glob("security/test_attacks_*")}
    assert attacks - played == set()


def test_reference_has_a_page_for_every_public_package() -> None:
    described = [
        name
        for page in PAGES
        for name in re.findall(r"^\.\. public:: (\S+)", read(page), re.MULTILINE)
    ]
    drivers = {"mcp_trio", "mcp_trio.host", "mcp_asyncio_shim"}
    testing = {f"mcp_trio.testing{each}" for each in ("", ".hostile", ".invariants", ".strategies")}
    assert set(described) == PUBLIC | drivers | testing


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md"])
def test_page_names_existing_files_only(page: str) -> None:
    folder = (ROOT / page).parent
    text = read(page)
    linked = {folder / path for path in re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", text)}
    named = {
        ROOT / path
        for path in re.findall(
            r"`((?:mcp_\w+|tests|examples|benchmarks|fuzz|docs|\.ci)/[\w/.-]*)`", text
        )
    }
    assert [str(path) for path in sorted(linked | named) if not path.exists()] == []


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "tests/README.md"])
def test_page_links_to_existing_headings_only(page: str) -> None:
    folder = (ROOT / page).parent
    for path, heading in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", read(page)):
        target = (folder / path).resolve() if path else ROOT / page
        titles = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
        assert heading in {
            re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles
        }


# -- HTTP -----------------------------------------------------------------------------------------


def test_asgi_apps_of_page_respond() -> None:
    """The page's application is called directly, as an ASGI server would call it."""
    names = run(HOWTO + "asgi.md")
    sent: list[Any] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "OPTIONS",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
    }

    async def receive() -> dict[str, Any]:
        if sent:
            await trio.sleep_forever()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    trio.run(names["app"], scope, receive, send)
    assert sent[0]["status"] == 204
    assert names["outer"].routes[0].app is names["inner"]


def test_asgi_page_lifespans_start_the_mounted_apps() -> None:
    names = run(HOWTO + "asgi.md")

    async def enter(outer: Any, *inner: Any) -> None:
        async with outer.router.lifespan_context(outer):
            for app in inner:
                with pytest.raises(RuntimeError, match="runs already"):
                    await app.lifespan().__aenter__()

    asyncio.run(enter(names["together"], names["inner"]))
    trio.run(enter, names["several"], names["app"], names["protected"])


@pytest.mark.requirement("CUST-2")
def test_websocket_page_documents_transport() -> None:
    """Connection, framing, cancellation, and each close code that is sent, are documented; the code
    runs.
    """
    from mcp_core.http.wire._websocket import CODES

    page = HOWTO + "websockets.md"
    run(page)
    section = read(page).partition("## The protocol\n")[2].partition("\n## ")[0]
    subjects = dict(re.findall(r"^- \*(\w+)\.\* (?s:(.*?))(?=^- \*|\Z)", section, re.MULTILINE))
    assert list(subjects) == ["Connection", "Framing", "Cancellation", "Closing"]
    assert {int(number) for number in re.findall(r"\b1\d{3}\b", subjects["Closing"])} == set(
        CODES.values()
    )


# -- Input, authorization, the core ---------------------------------------------------------------


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_tools_of_asking_page_work_in_both_eras(version: str) -> None:
    import mcp_trio

    names = run(HOWTO + "asking-the-user.md")
    fill = mcp_trio.answer_form(lambda message, form: {"count": 2})

    async def main() -> None:
        async with mcp_trio.connect(names["server"], versions=[version], on_elicit=fill) as client:
            for tool, text in (("book", "2 at the aisle on KL 1234"), ("rebook", "2 on KL 1234")):
                assert (await client.call_tool(tool, {"flight": "KL 1234"})).text == text

    trio.run(main)


def test_protected_server_of_page_is_the_example() -> None:
    example = without_blank_lines(
        (EXAMPLES / "protected.py").read_text("utf-8").partition('"""\n')[2]
    )
    assert without_blank_lines(code(HOWTO + "authorization.md", "python")[0]) == example


def test_loop_of_page_is_the_example() -> None:
    example = without_blank_lines(
        (EXAMPLES / "blocking_loop.py").read_text("utf-8").partition('"""\n')[2]
    )
    assert without_blank_lines(code(HOWTO + "embedding-the-core.md", "python")[0]) == example


def without_blank_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
