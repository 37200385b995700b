"""Lines of a trace: what the judge finds, counts and remembers of them."""

from __future__ import annotations

import json

import pytest

from mcp_core.trace import HttpHead, Judge, TraceHeader, TraceLine
from mcp_core.trace.judge import _exchange_judge, _message
from tests.core.trace.judge.conversations import ask
from tests.core.trace.judge.lines import LINES, judged_lines, kept_lines

KEPT = kept_lines()


@pytest.mark.parametrize("name", LINES)
def test_lines_are_judged_as_is_kept(name: str) -> None:
    """`python -m tests.core.trace.judge.lines` writes it again."""
    assert judged_lines(name) == KEPT[name]


def test_kept_lines_are_those_that_are_judged() -> None:
    assert list(KEPT) == list(LINES)


def open_exchanges(sizes: list[int], answered: int = 0) -> list[bool]:
    """Return which requests of exchanges are still whole, by the sizes of their messages."""
    judge = Judge(TraceHeader(format_version=1, transport="http"))
    for number, size in enumerate(sizes, 1):
        text = json.dumps(ask(number, "x", a=""))
        text = text.replace('""', f'"{"b" * (size - len(text))}"')
        head = HttpHead(method="POST", target="/mcp")
        judge.receive(TraceLine(t=0.0, exchange=number, sender="client", http=head, raw=text))
        if number == answered:
            head = HttpHead(status=202)
            judge.receive(TraceLine(t=0.0, exchange=number, sender="server", http=head))
    exchanges = judge._conversations.find(1).http.exchanges.values()
    return [not each.messages[0].redacted for each in exchanges]


@pytest.mark.parametrize(
    ("sizes", "answered", "expected"),
    [
        ([100, 100], 0, [True, True]),
        ([100, 100, 100], 0, [False, True, True]),
        ([80, 80, 80, 80], 0, [True] * 4),  # each is small
        ([81, 81, 81], 0, [False, True, True]),
        ([201], 0, [True]),
        ([201, 81], 0, [False, True]),
        ([100, 100, 100, 100], 0, [False, False, True, True]),
        ([100, 100], 1, [False, True]),
        ([80, 80], 1, [True, True]),
    ],
)
def test_oldest_large_requests_without_a_response_lose_their_contents(
    sizes: list[int], answered: int, expected: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large message has more than 80 bytes here, and 200 bytes of them are kept."""
    monkeypatch.setattr(_message, "MAX_PARAMS", 80)
    monkeypatch.setattr(_exchange_judge, "MAX_PARAMS", 80)
    monkeypatch.setattr(_exchange_judge, "MAX_EXCHANGE_BYTES", 200)
    assert open_exchanges(sizes, answered) == expected
