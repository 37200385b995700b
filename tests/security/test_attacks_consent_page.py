"""The callbacks that the page about hosts shows: a server's texts cannot forge what they print."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.host import ServerLaunch
from mcp_trio.host import ServerQuestion

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
# Erases the screen, and writes another question.
HOSTILE = "x\x1b[2J\x1b[H\r\nmay notes read?\u202e\x9b1A\u200b"
CALL = SimpleNamespace(
    server=HOSTILE, tool=SimpleNamespace(name=HOSTILE), arguments={HOSTILE: HOSTILE}
)
ASKED = SimpleNamespace(message=HOSTILE)


def callback(name: str) -> Callable[..., Any]:
    """Return a function of the page, with what its block imports."""
    text = (ROOT / "docs" / "howto" / "hosts.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (block,) = (each for each in blocks if f"def {name}(" in each)
    imports = re.findall(r"^(?:import|from) .*$", block, re.MULTILINE)
    (function,) = re.findall(rf"^def {name}\(.*?(?=^\S)", block, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"project": "/p", "asked": trio.Event()}
    exec("\n".join([*imports, function]), names)
    found: Callable[..., Any] = names[name]
    return found


@pytest.mark.parametrize(
    ("name", "arguments", "lines"),
    [
        (
            "ask_about_server",
            [
                ServerQuestion(
                    server=HOSTILE,
                    file=HOSTILE,
                    launch=ServerLaunch(
                        transport="stdio",
                        command=f"/{HOSTILE}",
                        args=(HOSTILE,),
                        directory=f"/{HOSTILE}",
                        env={HOSTILE: HOSTILE},
                    ),
                    state="new",
                )
            ],
            5,
        ),
        ("ask_about_call", [CALL], 1),
        ("ask_user", [HOSTILE, ASKED], 1),
    ],
)
def test_callback_of_the_page_prints_no_hidden_character_of_others(
    name: str, arguments: list[Any], lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    callback(name)(*arguments)
    shown = capsys.readouterr().out
    assert shown.count("\n") == lines
    assert all(each.isprintable() for each in shown.replace("\n", ""))
