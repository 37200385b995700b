"""`mcp-trio listen`: a line for each change of what a server offers, as long as somebody listens.

Rules of this file:

1. A change says "look again" and nothing else, so a line names what has changed: one of the lists, or the URI of a resource.
   With `--json` each line is a document: the notification, whose names are the protocol's.
2. It ends by itself only when nobody can learn anything more: the server has ended it or is gone, or whoever reads has read
   enough.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from mcp_core import ConnectionLost, LocalProtocolError

from ._problem import NO_CONVERSATION, Problem
from ._screen import Screen
from ._talk import talk
from ._uri import check_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_trio import Change, Client

    from ._talk import Target

__all__ = ["listen"]


def listen(
    target: Target, uris: Sequence[str], *, tools: bool, prompts: bool, resources: bool, as_json: bool
) -> int:
    """Print changes of the lists and resources, or of all lists if none are named, until there are no more to come; returns the
    exit status.

    Raises:
        Problem: a URI is none, the conversation went wrong, or the server tells of nothing that is wanted.
    """
    for uri in uris:
        check_uri(uri)
    lists = {"tools": tools, "prompts": prompts, "resources": resources}
    if not uris and not any(lists.values()):
        lists = dict.fromkeys(lists, True)
    wanted = [*(name for name, wants in lists.items() if wants), *dict.fromkeys(uris)]

    async def body(client: Client) -> int:
        screen = Screen(sys.stdout)
        try:
            async with client.listen(**lists, uris=uris, timeout=target.timeout) as changes:
                _say_what_comes(target.stderr, wanted, [_name(change) for change in changes.honoured])
                async for change in changes:
                    if as_json:
                        screen.write(_document(change))
                    else:
                        screen.show(_name(change))
                    if screen.gone:
                        return 0
        except LocalProtocolError as exc:
            raise Problem(f"the server does not tell of changes of {' or '.join(wanted)}") from exc
        except ConnectionLost as exc:
            raise Problem(f"{exc}{target.last_words}", NO_CONVERSATION) from exc
        target.stderr.say("mcp-trio: the server has ended this")
        return 0

    return talk(target, body)


def _say_what_comes(stderr: Screen, wanted: Iterable[str], honoured: Sequence[str]) -> None:
    stderr.say("mcp-trio: listening to ", ", ".join(honoured))
    rest = [name for name in wanted if name not in honoured]
    if rest:
        stderr.say("mcp-trio: the server does not tell of changes of ", " or ".join(rest))


def _name(change: Change) -> str:
    return change.list or change.uri or ""


def _document(change: Change) -> bytes:
    params = {} if change.uri is None else {"params": {"uri": change.uri}}
    return msgspec.json.encode({"method": change.method, **params}) + b"\n"
