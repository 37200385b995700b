"""A fault: its key, the cause that it has in common with others, its level and its link."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from mcp_core.trace import ROWS
from mcp_trio.oracle.fuzz._fault import LEVELS, TargetFault, level_of, link_of, row_fault

from .memory_target import NEW, OLD


def test_fault_of_its_row_alone_is_certain_and_has_no_texts() -> None:
    assert asdict(TargetFault(kind="row", row="RPC-7")) == {
        "kind": "row",
        "row": "RPC-7",
        **dict.fromkeys(("method", "detail", "variant", "sentence", "link"), ""),
        "level": "MUST",
        "is_certain": True,
        "cases_back": 0,
        "sent": "",
        "received": "",
        "is_cancellation_error": False,
    }


@pytest.mark.parametrize(
    ("row", "detail", "variant", "cause"),
    [
        ("RPC-7", "", "", ("RPC-7", "")),
        ("RPC-7", "a", "", ("RPC-7", "a")),
        ("RPC-7", "a", "b", ("RPC-7", "a b")),
        ("RPC-8", "", "b", ("RPC-14", " b")),
        ("STDIO-6", "1", "", ("crash", "1")),
    ],
)
def test_cause_of_a_fault_has_its_detail_and_no_method(
    row: str, detail: str, variant: str, cause: tuple[str, str]
) -> None:
    found = TargetFault(kind="row", row=row, detail=detail, variant=variant, method="ping")
    assert (found.cause, found.key) == (cause, (row, detail, "ping"))


@pytest.mark.parametrize(
    ("fault", "is_silence", "is_advice"),
    [
        (TargetFault(kind="hang", row="x"), True, False),
        (TargetFault(kind="row", row="RPC-35"), True, False),
        (TargetFault(kind="row", row="RPC-17", is_certain=False), True, True),
        (TargetFault(kind="row", row="RPC-7", level="reading"), False, True),
        (TargetFault(kind="row", row="RPC-7", level="SHOULD"), False, False),
        (TargetFault(kind="crash", row="crash"), False, False),
    ],
)
def test_fault_is_silence_or_advice_by_its_row_and_level(
    fault: TargetFault, is_silence: bool, is_advice: bool
) -> None:
    assert (fault.is_silence, fault.is_advice) == (is_silence, is_advice)


def test_fault_of_a_row_has_its_level_and_the_link_of_the_revision() -> None:
    found = row_fault("RPC-7", "ping", "It is wrong.", OLD)
    assert (found.kind, found.row, found.method, found.sentence, found.level) == (
        *("row", "RPC-7", "ping", "It is wrong."),
        ROWS["RPC-7"].level,
    )
    assert found.is_certain
    assert found.link == link_of("RPC-7", OLD) == ROWS["RPC-7"].link(OLD) != link_of("RPC-7", NEW)
    assert link_of("RPC-7", "1999-12-31") == link_of("crash", OLD) == ""
    should = next(name for name, row in ROWS.items() if row.level == "SHOULD")
    assert (level_of(should), level_of("crash")) == ("SHOULD", "MUST")
    assert {"MUST", "SHOULD"} <= set(LEVELS)
