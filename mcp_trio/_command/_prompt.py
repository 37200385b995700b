"""`mcp-trio prompt`: one prompt, filled in: its messages on stdout, each below the role that says it.

Rule: arguments of a prompt are texts, whatever they look like; the list of prompts tells which there are.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._arguments import arguments_from
from ._content import text_of
from ._names import no_such
from ._progress import progress_on
from ._screen import Screen
from ._talk import declared_by, talk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_core.types import GetPromptResult, Prompt
    from mcp_trio import Client

    from ._talk import Target

__all__ = ["prompt", "prompt_named", "texts"]


def prompt(target: Target, name: str, words: Sequence[str], *, as_json: bool) -> int:
    """Get a prompt and show its messages; returns the exit status.

    Raises:
        Problem: the conversation went wrong, there is no such prompt, or the arguments do not fit it.
    """

    async def body(client: Client) -> int:
        takes = (await prompt_named(name, client, target.timeout)).arguments or ()
        needs = [argument.name for argument in takes if argument.required]
        schema = texts([argument.name for argument in takes], needs)
        arguments = arguments_from(words, schema, f"the prompt {name}")
        with progress_on(target.stderr, name) as progress:
            result = await client.get_prompt(name, arguments, **target.call_options(progress))
        screen = Screen(sys.stdout)
        if as_json:
            screen.write_json(result)
        else:
            _show(result, screen)
        return 0

    return talk(target, body)


async def prompt_named(name: str, client: Client, timeout: float) -> Prompt:
    """The prompt as the server lists it.

    Raises:
        Problem: it lists no such prompt.
    """
    prompts = await client.list_prompts(timeout=timeout) if declared_by(client).prompts is not None else []
    for found in prompts:
        if found.name == name:
            return found
    raise no_such("prompt", name, [found.name for found in prompts])


def texts(names: Iterable[str], required: Iterable[str] = ()) -> dict[str, Any]:
    """The JSON Schema of arguments that are all texts."""
    return {
        "properties": {name: {"type": "string"} for name in names},
        "required": [*required],
        "additionalProperties": False,
    }


def _show(result: GetPromptResult, screen: Screen) -> None:
    for place, message in enumerate(result.messages):
        if place:
            screen.say()
        screen.say((f"{message.role}:", "bold cyan"))
        screen.show(text_of(message.content))
