"""The names of what a client can be asked for, and whether a client can answer.

A name is a path in the specification's capabilities: `sampling.tools` is the member `tools` of
`sampling` (client/sampling, client/elicitation, client/roots).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from mcp_core.protocol.revisions._capabilities import is_declared

if TYPE_CHECKING:
    from mcp_core.protocol.messages._events import Peer

__all__ = ["CapabilityName", "can_answer"]

CapabilityName: TypeAlias = Literal[
    "elicitation",
    "elicitation.form",
    "elicitation.url",
    "sampling",
    "sampling.tools",
    "sampling.context",
    "roots",
]
_PATHS: Final = {name: tuple(name.split(".")) for name in get_args(CapabilityName)}
_FORM: Final = "elicitation.form"


def can_answer(name: str, peer: Peer) -> bool:
    """Return True if the client `peer` declared the capability and its revision has it.

    Raises:
        ValueError: there is no such name. The text has a similar one, if there is one.
    """
    path = _PATHS.get(name)
    if path is None:
        from difflib import get_close_matches  # on first use: only for the error

        similar = get_close_matches(name, _PATHS)
        hint = f"did you mean {similar[0]!r}?" if similar else f"there are {', '.join(_PATHS)}"
        raise ValueError(f"a client has no capability {name!r} to ask for; {hint}")
    capabilities = peer.dialect.fit(peer.capabilities)
    if is_declared(capabilities, path):
        return True
    # A client that names no mode of elicitation supports forms (client/elicitation, Capabilities).
    return (
        name == _FORM
        and is_declared(capabilities, path[:1])
        and not is_declared(capabilities, ("elicitation", "url"))
    )
