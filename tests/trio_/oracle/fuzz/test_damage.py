"""Damage: the steps after which a server may have read what the judge could not."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_trio.oracle.fuzz._case import on_client
from mcp_trio.oracle.fuzz._damage import DAMAGING_STEPS, has_damage

OPEN = ("open", "2025-11-25", "whole", "all")


@pytest.mark.parametrize(
    ("step", "is_damage"),
    [
        *(((name, "x"), True) for name in ("mutate", "damage", "deep", "batch", "reply")),
        *(((name,), False) for name in ("wait", "call", "cancel", "get", "half")),
        # A response for none of the server's requests.
        *((("respond", 0, how), True) for how in ("id", "twice")),
        *((("respond", 0, how), False) for how in ("right", "error", "wrong")),
        (("respond", "id", "right"), False),
        (("respond",), False),
        (("large", "message", 5), True),
        (("large", "header", 5), False),
        (("large",), False),
        # The method and the params.
        *((step, False) for step in (("request", "ping"), ("notify", "ping"),
                                     ("burst", 3, "ping"), ("head", "origin", "ping"))),
        *(((*step, params), is_damage)
          for step in (("request", "ping"), ("notify", "ping"), ("burst", 3, "ping"),
                       ("head", "origin", "ping"))
          for params, is_damage in (({}, False), ("absent", False), (None, True), ("x", True),
                                    ([], True))),
        *(((*step, method, {}), True)
          for step in (("request",), ("notify",), ("burst", 3), ("head", "origin"))
          for method in ("", 5, None)),
        # An id of its own, and a `_meta` without a revision.
        *((("request", "ping", {}, id, "whole"), is_damage)
          for id, is_damage in (("int", False), ("text", False), ([7], True))),
        *((("request", "ping", {}, "int", meta), is_damage)
          for meta, is_damage in (("whole", False), ("bare", False), ("old", True),
                                  ("absent", True))),
        (("request", "ping", {}, "int"), False),
        (("notify", "ping", {}, [7], "old"), False),
        (("burst", 3, "ping", {}, "old"), False),
    ],
)  # fmt: skip
def test_step_is_damage_if_a_receiver_need_not_take_it_for_a_message(
    step: tuple[Any, ...], is_damage: bool
) -> None:
    """Each client's step, and at each place of a case."""
    assert has_damage([OPEN, step, ("wait",)]) is is_damage
    assert has_damage([OPEN, on_client(1, OPEN), on_client(1, step)]) is is_damage


def test_steps_that_are_always_damage_are_five() -> None:
    assert {"mutate", "damage", "deep", "batch", "reply"} == DAMAGING_STEPS
    assert not has_damage([])
