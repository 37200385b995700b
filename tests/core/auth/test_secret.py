"""Secrets hide their text, however they are printed."""

from __future__ import annotations

import pickle
from typing import Any
from unittest.mock import ANY

import pytest
from rich.pretty import pretty_repr

from mcp_core.auth import Secret
from mcp_core.auth._secret import RedactedStruct

CANARY = "canary-4711"


class Holder(RedactedStruct, frozen=True):
    text: str


@pytest.mark.parametrize(
    ("value", "text"), [(Secret(CANARY), "<secret>"), (Holder(CANARY), "<Holder>")]
)
def test_secret_any_printing_hides_text(value: Any, text: str) -> None:
    assert repr(value) == str(value) == f"{value}" == pretty_repr(value) == text
    assert CANARY not in repr([value])


def test_secret_is_compared_by_value_and_not_pickled() -> None:
    secret = Secret(CANARY)
    assert secret.reveal() == Secret(secret).reveal() == CANARY
    assert secret == Secret(CANARY)
    assert hash(secret) == hash(Secret(CANARY))
    assert secret != Secret("é")
    assert Secret("\ud800") == Secret("\ud800")
    assert secret != CANARY
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)


def test_secret_is_compared_by_what_knows_how() -> None:
    """It equals no text, and leaves the comparison with anything else to that."""
    secret = Secret("abcdefgh" * 4)
    assert secret == ANY
    assert secret != "abcdefgh" * 4
    assert secret == Secret("abcdefgh" * 4)
    assert secret != Secret("abcdefgi" * 4)
