"""A case is built from its drawn numbers: its beginning, its phrases and its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.draw import _cases
from mcp_trio.oracle.fuzz.draw._choices import WITH_HANDSHAKE, CaseChoices
from tests.harness.jsonrpc import C, D, E
from tests.trio_.oracle.fuzz.draw.every_draw import EachDraw

PING: Any = ("request", "ping", {}, "int")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that builds a case of numbers, and returns it with how many each was one of.

    Phrases are one step that names them. The numbers that follow the given ones are 0.
    """
    monkeypatch.setattr(_cases, "st", SimpleNamespace(composite=lambda build: lambda: build))
    monkeypatch.setattr(_cases, "Drawing", lambda draw: draw)

    def phrases(draw: Any, choices: Any, revision: str, most: int, **options: Any) -> list[Any]:
        return [(f"phrases {most}", revision, options), PING]

    monkeypatch.setattr(_cases, "some_phrases", phrases)
    monkeypatch.setattr(_cases, "second_client", lambda *_: [("second",)])

    def build(*numbers: int, revisions: Any = (E, D, C), **members: Any) -> tuple[Any, list[int]]:
        choices = CaseChoices(Offers(revisions=list(revisions)), ())
        for name, value in members.items():
            setattr(choices, name, value)
        draw = EachDraw(numbers)
        building: Any = _cases.cases(choices)
        return building(draw), draw.counts

    return build


@pytest.mark.parametrize(
    ("revisions", "number", "revision", "offers"),
    [
        ((E, D, C), 0, E, "none"),  # one case in seven
        ((E, D, C), 1, D, "all"),
        ((E, D, C), 2, E, "all"),
        ((E, D, C), 4, C, "all"),  # one case in five is of an older revision
        ((E, D, C), 7, D, "none"),
        ((E, D, C), 9, C, "all"),
        ((E, D, C), 14, C, "all"),  # the server's requests are rare there anyway
        ((E, D), 4, E, "all"),
        ((E, D), 14, E, "none"),
        ((D,), 3, D, "all"),
    ],
)
def test_number_of_a_case_decides_its_revision_and_what_the_client_offers(
    built: Any, revisions: Any, number: int, revision: str, offers: str
) -> None:
    [opening, phrases, _], counts = built(number, *[1] * 3, revisions=revisions)
    assert opening == ("open", revision, "whole", offers)
    assert phrases == ("phrases 4", revision, {})
    assert counts == [210, *([200] if revision != E else []), 800, 7]


@pytest.mark.parametrize(
    ("stress", "http", "numbers", "counts", "phrases"),
    [
        (False, False, [0, 1, 0], [210, 800, 7], "phrases 6"),
        (False, True, [0, 1, 0], [210, 300, 7], "phrases 6"),
        (True, False, [0, 1, 0], [210, 800, 4], "phrases 6"),
        (True, False, [0, 1, 1], [210, 800, 4], "phrases 4"),
        (False, True, [0, 1, 1, 0], [210, 300, 7, 4], "second"),
        (False, True, [0, 1, 1, 1], [210, 300, 7, 4], "phrases 4"),
        (False, True, [0, 0, 1, 0], [210, 300, 7], "phrases 4"),  # it ends in order
    ],
)
def test_case_has_damage_or_a_second_client_or_neither(
    built: Any, stress: bool, http: bool, numbers: list[int], counts: list[int], phrases: str
) -> None:
    """A client with damage offers everything. The case that ends in order has one client."""
    case, found = built(*numbers, stress=stress, http=http)
    assert (case[1][0], found) == (phrases, counts)
    is_damaged = phrases == "phrases 6"
    assert case[0] == ("open", E, "whole", "all" if is_damaged else "none")
    assert not is_damaged or case[1][2] == {"is_damaged": True}
    assert (case[-1] == ("disconnect",)) == (numbers[1] == 0)


@pytest.mark.parametrize(
    ("special", "numbers", "counts", "how"),
    [
        (["half"], [0, 0, 0, 0], [210, 12, 1], None),
        ([], [0, 0, 0], [210, 200, 1], None),
        ([], [1, 1, 1, 1, 1], [210, 200, 200, 800, 7], "whole"),
        (["half"], [1, 1, 0, 0, 1], [210, 12, 4, 1, 7], "half"),
    ],
)
def test_suspected_pair_of_revisions_is_drawn_soon_and_later_seldom(
    built: Any, special: list[str], numbers: list[int], counts: list[int], how: str | None
) -> None:
    case, found = built(*numbers, special=list(special), suspects=[(C, D)])
    assert found == counts
    if how is None:
        opened = [("open", C, "whole", "all"), ("reconnect",), ("open", D, "whole", "all")]
        assert case == opened
    else:
        assert case[0] == ("open", D, how, "all")


@pytest.mark.parametrize(
    ("number", "damaged", "how", "offers"),
    [
        (1, 1, "whole", "all"),
        (3, 1, "unknown", "all"),
        (7, 1, "whole", "none"),
        (7, 0, "whole", "all"),
    ],
)
def test_case_of_two_versions_opens_twice(
    built: Any, number: int, damaged: int, how: str, offers: str
) -> None:
    """Both versions have a handshake. One case in three asks for an unknown one at first."""
    numbers = [number, 0, 0, damaged, 0, 1]
    case, counts = built(*numbers, special=["versions"])
    first, second = WITH_HANDSHAKE[:2]
    assert case == [
        ("open", first, how, offers),
        ("reconnect",),
        ("open", second, "whole", offers),
    ]
    assert counts == [210, 4, 1, 7, 4, 4]


@pytest.mark.parametrize(("number", "is_drawn"), [(0, True), (1, False), (19, False)])
def test_avoided_step_is_drawn_once_in_twenty_times(
    built: Any, number: int, is_drawn: bool
) -> None:
    """Other steps take no number."""
    case, counts = built(2, 1, 1, number, avoided={("request", "ping")})
    assert counts == [210, 800, 7, 20]
    assert (PING in case, len(case)) == (is_drawn, 2 + is_drawn)
    assert built(2, 1, 1)[0][2:] == [PING]
