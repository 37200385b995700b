"""The pictures of `docs/images/`: each file is what `docs.pictures` draws, and a page shows it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from benchmarks import compared
from docs.pictures import PICTURES, _chart, _states
from docs.pictures._recorder import CLIENT, SERVER, Recorder, Step, describe
from docs.pictures._svg import PANEL, TINT, WIDTH, text_width
from mcp_core import Connection, Role, State
from mcp_core.host import SERVER_TRANSITIONS, ServerEvent
from mcp_core.protocol.connection._state import LIFECYCLE, REQUEST, RequestAction, RequestPhase
from mcp_core.protocol.revisions._methods import Step as LifecycleStep
from mcp_core.registry import Server
from mcp_core.tasks import TRANSITIONS
from tests.examples.pages import PAGES, ROOT, read

IMAGES: Final = ROOT / "docs" / "images"
SVG: Final = "{http://www.w3.org/2000/svg}"
SHOWN: Final = {
    (page, path): alt
    for page in [*PAGES, "benchmarks/README.md"]
    for alt, path in re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", read(page))
}


def file_text(name: str) -> str:
    return (IMAGES / name).read_text("utf-8")


@pytest.mark.parametrize(
    "name",
    [
        # It records what crosses between a client and a server's process.
        pytest.param(name, marks=pytest.mark.process) if name == "stdio.svg" else name
        for name in PICTURES
    ],
)
def test_picture_file_is_what_is_drawn(name: str) -> None:
    """If this fails after a change that was meant, run `python -m docs.pictures`."""
    assert file_text(name) == PICTURES[name]()


def test_images_folder_has_known_files_only() -> None:
    assert {path.name for path in IMAGES.iterdir()} == {*PICTURES, "favicon.svg"}


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_shown_on_a_page(name: str) -> None:
    assert any(path.endswith(f"images/{name}") for _, path in SHOWN)


@pytest.mark.parametrize(("page", "path"), SHOWN)
def test_image_on_page_has_a_text_alternative(page: str, path: str) -> None:
    assert len(SHOWN[page, path].split()) >= 8


@pytest.mark.parametrize("name", PICTURES)
def test_picture_needs_no_other_file_and_no_script(name: str) -> None:
    root = ET.fromstring(file_text(name))
    assert {element.tag for element in root.iter()} <= {
        SVG + tag for tag in ("svg", "title", "rect", "path", "text")
    }
    text = file_text(name).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"href|url\(|style|//| on\w+=", text)


@pytest.mark.parametrize("name", PICTURES)
def test_texts_of_picture_stay_inside_it(name: str) -> None:
    root = ET.fromstring(file_text(name))
    for element in root.iter(f"{SVG}text"):
        text, x = element.text or "", float(element.get("x", ""))
        width = text_width(text, float(element.get("font-size", "")))
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "")] * width
        assert 4 <= left <= left + width <= WIDTH - 4, text
        assert 4 <= float(element.get("y", "")) <= float(root.get("height", "")) - 4, text


def luminance(color: str) -> float:
    """Return the relative luminance of `#rrggbb` (WCAG 2.2)."""
    channels = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("background", [PANEL, TINT])
def test_texts_of_picture_have_contrast(name: str, background: str) -> None:
    root = ET.fromstring(file_text(name))
    for color in {element.get("fill", "") for element in root.iter(f"{SVG}text")}:
        assert (luminance(background) + 0.05) / (luminance(color) + 0.05) >= 4.5, color


# -- State machines -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["connection-states.svg", "request-phases.svg"])
def test_state_diagram_has_every_state_and_step_of_its_table(name: str) -> None:
    texts = [element.text for element in ET.fromstring(file_text(name)).iter(f"{SVG}text")]
    table = LIFECYCLE if name == "connection-states.svg" else REQUEST
    for state, row in table.items():
        assert state.name in texts
        assert {step.value for step in row} <= set(texts)


def test_task_diagram_has_every_status_and_action_of_its_table() -> None:
    svg = ET.fromstring(file_text("task-statuses.svg"))
    texts = Counter(element.text for element in svg.iter(f"{SVG}text"))
    actions = Counter(action.__name__ for row in TRANSITIONS.values() for action in row)
    assert texts == actions + Counter(list(TRANSITIONS))


def test_server_diagram_has_every_state_and_event_of_its_table() -> None:
    """An event that each state in the frame has, with the same target, is drawn once."""
    svg = ET.fromstring(file_text("server-states.svg"))
    texts = Counter(element.text for element in svg.iter(f"{SVG}text"))
    rows = [
        {(event.value, target) for event, target in SERVER_TRANSITIONS[state].items()}
        for state in _states._WANTED
    ]
    common = set.intersection(*rows)
    events = Counter(event.value for row in SERVER_TRANSITIONS.values() for event in row)
    for event, _ in common:
        events[event] -= len(rows) - 1
    assert texts == events + Counter(list(SERVER_TRANSITIONS))


def test_server_transition_without_a_place_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {ServerEvent.LOGGED_IN: "ready"}
    monkeypatch.setattr(_states, "SERVER_TRANSITIONS", {**SERVER_TRANSITIONS, "disabled": row})
    with pytest.raises(ValueError, match=r"disabled.*ready"):
        _states.draw_server()


def test_server_event_that_one_state_lacks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {**SERVER_TRANSITIONS["ready"]}
    del row[ServerEvent.DISABLED]
    monkeypatch.setattr(_states, "SERVER_TRANSITIONS", {**SERVER_TRANSITIONS, "ready": row})
    with pytest.raises(ValueError, match="targets"):
        _states.draw_server()


def test_transition_without_a_place_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {**LIFECYCLE, State.CLOSED: {LifecycleStep.INITIALIZE: State.OPENING}}
    monkeypatch.setattr(_states, "LIFECYCLE", table)
    with pytest.raises(ValueError, match=r"CLOSED.*OPENING"):
        _states.draw_lifecycle()


def test_place_without_a_transition_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {RequestAction.REPORT: RequestPhase.OPEN}
    monkeypatch.setattr(_states, "REQUEST", {**REQUEST, RequestPhase.OPEN: row})
    with pytest.raises(ValueError, match="STREAMING"):
        _states.draw_request()


def test_shutdown_of_a_server_leads_to_closing() -> None:
    """The dashed arrow is in no table."""
    connection = Connection(Role.SERVER, Server("forecast").config())
    connection.shutdown()
    assert connection.state is State.CLOSING


# -- Conversations --------------------------------------------------------------------------------

GET: Final = Step("request", CLIENT, SERVER, "GET")
OK: Final = Step("response", SERVER, CLIENT, "200 OK")
EVENT: Final = Step("event", SERVER, CLIENT, "result", stream=1)


def test_event_of_stream_during_a_request_is_recorded_after_it() -> None:
    recorder = Recorder()
    recorder.request_begins()
    recorder.stream_event(EVENT)
    recorder.request_ends(GET, OK)
    recorder.stream_event(EVENT)
    assert recorder.steps == [GET, OK, EVENT, EVENT]


def test_end_of_stream_after_leaving_is_not_recorded() -> None:
    recorder = Recorder()
    recorder.leave()
    recorder.stream_event(EVENT._replace(kind="end"))
    assert recorder.steps == []


async def test_step_that_does_not_come_is_an_error(autojump_clock: object) -> None:
    with pytest.raises(TimeoutError, match="no step 'GET'"):
        await Recorder().until("GET")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b'{"method":"ping","id":1}', ("ping", "")),
        (b'{"id":1,"result":{}}', ("result", "")),
        (b'{"id":1,"result":{"action":"accept"}}', ("result: accept", "")),
        (b'{"id":1,"error":{"code":-32601}}', ("error -32601", "")),
        (
            b'{"id":1,"result":{"resultType":"input_required","requestState":"x"}}',
            ("result: input_required", "requestState"),
        ),
    ],
)
def test_message_is_described_by_method_or_outcome(
    message: bytes, expected: tuple[str, str]
) -> None:
    assert describe(message) == expected


# -- Benchmarks -----------------------------------------------------------------------------------


def test_chart_has_a_bar_for_each_figure_of_its_rows() -> None:
    data = compared.read()
    svg = ET.fromstring(file_text("benchmarks.svg"))
    texts = Counter(element.text or "" for element in svg.iter(f"{SVG}text"))
    bars = [bar for group in _chart.groups_of(data) for bar in group.bars]
    assert {"mcp-trio", "SDK, low level", "FastMCP"} <= {bar.name for bar in bars}
    assert not Counter(bar.text for bar in bars) - texts


def test_chart_longer_bar_is_higher_figure() -> None:
    """A group has a scale of its own."""
    boxes = iter(ET.fromstring(file_text("benchmarks.svg")).iter(f"{SVG}rect"))
    widths = [float(box.get("width", "")) for box in boxes if box.get("height") == "14"]
    for group in _chart.groups_of(compared.read()):
        drawn = [widths.pop(0) for _ in group.bars]
        values = [bar.value for bar in group.bars]
        by_width = sorted(range(len(values)), key=lambda at: (drawn[at], values[at]))
        assert [values[at] for at in by_width] == sorted(values)
    assert not widths
