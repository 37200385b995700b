"""The texts of the fuzzer's function: a peer's are escaped, since a terminal gets them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ConnectFailed
from mcp_trio.oracle.fuzz import _echo, _probe
from mcp_trio.oracle.fuzz._http import HttpSession, UrlTarget
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign import _campaign
from mcp_trio.testing import _faults
from mcp_trio.testing._fuzzing import fuzz_server

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "\x1b]0;x\x07\u202e"  # sets a terminal's title, and turns the text around
SHOWN = r"\u001b]0;x\u0007\u202e"


class LostCampaign:
    """A run whose server ends, after an error on its stderr."""

    side = "server"
    found = SimpleNamespace(ignored={})
    findings: tuple[Any, ...] = ()
    is_lost = True
    notes = (f"an error: {TITLE}", "it has ended\n  its stderr: no")

    def __init__(self, *args: object, **options: object) -> None:
        pass

    async def run(self) -> None:
        pass


async def test_fuzz_server_escapes_names_and_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of the server and of the baseline in the warning, and stderr in the error."""

    async def probe(target: object) -> Offers:
        return Offers(name=f"new{TITLE} 1")

    async def begin(echo: object) -> None:
        pass

    monkeypatch.setattr(_campaign, "Campaign", LostCampaign)
    monkeypatch.setattr(_probe, "probe", probe)
    monkeypatch.setattr(_echo.Echo, "begin", begin)
    baseline = tmp_path / "report.json"
    report = {"version": 2, "seed": 1, "server": f"old{TITLE} 1", "findings": []}
    baseline.write_text(json.dumps(report))
    with (
        pytest.warns(UserWarning, match="the baseline") as warned,
        pytest.raises(ConnectFailed) as failure,
    ):
        await fuzz_server("http://127.0.0.1:1/mcp", tmp_path / "a", baseline=baseline)
    (warning,) = warned
    assert str(warning.message) == (
        f"the baseline: it is of old{SHOWN} 1, and this is new{SHOWN} 1"
    )
    assert str(failure.value) == (
        f"the conversation with the server ended: an error: {SHOWN}; it has ended\n  its stderr: no"
    )


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        (
            {"last_status": 307, "_location": b"\x9b2J"},
            r" (HTTP status 307: it redirects to \u009b2J",
        ),
        ({"_error": f"not HTTP: {TITLE}"}, f" (not HTTP: {SHOWN})"),
    ],
)
async def test_description_of_a_server_at_a_url_is_escaped(
    attributes: dict[str, Any], says: str
) -> None:
    async with trio.open_nursery() as nursery:
        session = HttpSession(UrlTarget("http://127.0.0.1:1/mcp", nursery), keep=False)
        nursery.cancel_scope.cancel()
    for name, value in attributes.items():
        setattr(session, name, value)
    assert session.describe().startswith(says)


@pytest.mark.parametrize("code", [TITLE, "\u202e" * 10_000])
def test_error_of_a_server_that_shows_nothing_is_escaped_and_cut(code: str) -> None:
    answer = {"error": {"code": code, "message": TITLE}}
    session: Any = SimpleNamespace(requests=[SimpleNamespace(method="initialize", answer=answer)])
    text = _faults._describe_silence(session)
    assert text.isprintable()
    assert len(text) < 4_000
