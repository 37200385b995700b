"""Docstrings of three styles, and the description that a model gets."""

from __future__ import annotations

import pytest

from mcp_core.registry.functions._docstring import read_docstring

GOOGLE = """Tell the weather.

    Works for large cities best.

    Args:
        city: Where to look,
            in English.
        days (int, optional): How many (at most): seven.

        units (Callable[[int], str]): The units.
        *more: Others.

    Returns:
        Something.

    Raises:
        ValueError: never.

    Example:
        forecast("Oslo")
    """

NUMPY = """Tell the weather.

    Works for large cities best.

    Parameters
    ----------
    city : str
        Where to look,
        in English.
    days, units : int, optional
        Numbers.
    bare

    Returns
    -------
    str
        Something.

    Notes
    -----
    Be careful.
    """

REST = """Tell the weather.

    :param str city: Where to look,
        in English.
    :param days: How many: seven.
    :type days: int
    :keyword units: The units.
    :returns: Something,
        or other.
    :raises ValueError: never.

    Works for large cities best.
    """


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        (
            GOOGLE,
            'Tell the weather.\n\nWorks for large cities best.\n\nExample:\n    forecast("Oslo")',
            {
                "city": "Where to look, in English.",
                "days": "How many (at most): seven.",
                "units": "The units.",
                "more": "Others.",
            },
        ),
        (
            NUMPY,
            "Tell the weather.\n\nWorks for large cities best.\n\nNotes\n-----\nBe careful.",
            {"city": "Where to look, in English.", "days": "Numbers.", "units": "Numbers."},
        ),
        (
            REST,
            "Tell the weather.\n\nWorks for large cities best.",
            {
                "city": "Where to look, in English.",
                "days": "How many: seven.",
                "units": "The units.",
            },
        ),
        (None, "", {}),
        ("", "", {}),
        ("One line.", "One line.", {}),
        (
            "Note: this stays.\n\nReturns nothing of note.",
            "Note: this stays.\n\nReturns nothing of note.",
            {},
        ),
        ("Args:\n", "", {}),
        ("Do.\nArgs:\n    nothing that looks like one\nx", "Do.\nx", {}),
        ("Parameters\n----------\n", "", {}),
        (
            "Do.\nMore.\n    Args:\n        x: indented too far is no section",
            "Do.\nMore.\n    Args:\n        x: indented too far is no section",
            {},
        ),
        (":param x:\n", "", {"x": ""}),
        ("Args:\n    x: one\nGoes on.", "Goes on.", {"x": "one"}),
    ],
)
def test_read_docstring_splits_description_and_parameters(
    text: str | None, description: str, parameters: dict[str, str]
) -> None:
    assert read_docstring(text) == (description, parameters)
