"""The checks that our own messages have to pass: the counterpart of `_admission.py`.

1. A message that the peer's revision does not have, or whose capability was not declared, is an
   error of our caller: `LocalProtocolError`. Nothing is sent.
2. A request needs a capability of the peer, a notification one of our own.
3. Methods that MCP does not define always pass: custom methods are up to the two sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core.revisions._capabilities import as_object, has
from mcp_core.revisions._methods import METHODS, Role, Step

from ._errors import Fault, LocalProtocolError
from ._state import next_state

if TYPE_CHECKING:
    from mcp_core.messages._events import Peer
    from mcp_core.revisions._config import Config
    from mcp_core.revisions._methods import Method

    from ._state import State

__all__ = ["may_notify", "may_request"]

_DEFINED: Final = frozenset(row.name for row in METHODS)


def may_request(method: str, peer: Peer, role: Role, config: Config, state: State) -> Method | None:
    """Check that `role` may send the request `method` to `peer` in `state`, and return its row.

    Return None for a custom method that is not registered in `config`.

    Raises:
        LocalProtocolError: the revision has no such request, the peer did not declare the
            capability, or the request is not legal in `state`.
    """
    if role is Role.SERVER and not peer.dialect.stateful:
        raise LocalProtocolError(
            f"a server sends no requests in revision {peer.dialect.version}: return input_required, not {method}"
        )
    row = _row(method, peer, role, config, is_request=True)
    if peer.dialect.stateful:
        next_state(state, row.step if row is not None else Step.WORK)
    if row is not None and not has(peer.capabilities, row.needs):
        raise LocalProtocolError(
            f"the {role.other.value} did not declare the capability {'.'.join(row.needs)}, which {method} needs",
            Fault.MISSING_CAPABILITY,
            {"requiredCapabilities": as_object(row.needs)},
        )
    return row


def may_notify(method: str, peer: Peer, role: Role, config: Config, state: State) -> None:
    """Check that `role` may send the notification `method` to `peer` in `state`.

    Raises:
        LocalProtocolError: the revision has no such notification, we did not declare the
            capability, or the notification is not legal in `state`.
    """
    row = _row(method, peer, role, config, is_request=False)
    if row is None:
        return
    if not config.declares(row.needs):
        raise LocalProtocolError(
            f"{method} needs the capability {'.'.join(row.needs)}, which we did not declare"
        )
    if peer.dialect.stateful:
        next_state(state, row.step)


def _row(method: str, peer: Peer, role: Role, config: Config, *, is_request: bool) -> Method | None:
    row = config.terms[role][peer.dialect].sends.get(method)
    if row is None and method in _DEFINED:
        raise LocalProtocolError(
            f"{method} is not something that a {role.value} sends in revision {peer.dialect.version}"
        )
    if row is not None and (row.result is not None) is not is_request:
        raise LocalProtocolError(f"{method} is a {'notification' if is_request else 'request'}")
    return row
