"""`mcp-trio complete`: how an argument may go on, one value a line.

Rule: what is completed, and its argument, must be listed by the server. One that does not know an argument has nothing to
say about it, and from the silence nobody would learn of a slip of the hand.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mcp_core.registry import DeclarationError, UriTemplate
from mcp_core.types import CompleteParams

from ._arguments import arguments_from
from ._names import no_such, no_such_argument
from ._problem import Problem
from ._prompt import prompt_named, texts
from ._screen import Screen
from ._talk import declared_by, talk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.types import Completion
    from mcp_trio import Client

    from ._talk import Target

__all__ = ["complete"]


def complete(
    target: Target, name: str, argument: str, value: str, words: Sequence[str], *, as_json: bool
) -> int:
    """Complete the `value` of an `argument` of the prompt or resource template `name`; returns the exit status.

    `words` are the arguments that are settled already.

    Raises:
        Problem: the conversation went wrong, there is no such prompt or template, or it has no such argument.
    """
    template = _template(name) if "{" in name or "://" in name else None

    async def body(client: Client) -> int:
        if template is not None:
            await _require_template(name, client, target.timeout)
            whose, known = f"the template {name}", template.variables
        else:
            found = await prompt_named(name, client, target.timeout)
            whose, known = f"the prompt {name}", tuple(each.name for each in found.arguments or ())
        if argument not in known:
            raise no_such_argument(whose, argument, known)
        settled = arguments_from(words, texts(known), whose)
        if settled and client.peer.dialect.lacks(CompleteParams, "context"):
            told = " and ".join(settled)
            target.stderr.say(
                f"mcp-trio: revision {client.peer.dialect.version} cannot tell the server of {told}"
            )
        completion = await client.complete(
            name, argument, value, arguments=settled or None, timeout=target.timeout
        )
        screen = Screen(sys.stdout)
        if as_json:
            screen.write_json(completion)
        else:
            _show(completion, screen, target.stderr)
        return 0

    return talk(target, body)


def _template(text: str) -> UriTemplate:
    try:
        return UriTemplate(text)
    except DeclarationError as exc:
        raise Problem(f"{exc}; `mcp-trio inspect` lists the server's templates") from None


async def _require_template(text: str, client: Client, timeout: float) -> None:
    has_resources = declared_by(client).resources is not None
    templates = await client.list_resource_templates(timeout=timeout) if has_resources else []
    known = [found.uri_template for found in templates]
    if text not in known:
        raise no_such("resource template", text, known)


def _show(completion: Completion, screen: Screen, stderr: Screen) -> None:
    values, total = completion.values, completion.total
    for value in values:
        screen.show(value)
    if not values:
        stderr.say("mcp-trio: the server knows nothing that it could be")
    elif total is not None and total > len(values):
        stderr.say(f"mcp-trio: these are {len(values)} of {total}")
    elif completion.has_more:
        stderr.say("mcp-trio: there are more")
