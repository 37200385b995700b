"""The words for what is not let in: what a refused request and an unreadable message are answered with.

Rules of this file:

1. The code of a fault is the one of the revision in which the peer spoke; if that could not be found out, of the revision that
   was settled before, or of the newest one spoken here.
2. Where it cannot be told whose fault something is, silence: a client never answers what it could not read as a request.

It refuses to know what is refused, and why: `Refusal` and `BadMessage` say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import types as t
from ._admission import Refusal
from ._errors import Fault
from ._methods import Role

if TYPE_CHECKING:
    from ._config import Config
    from ._dialects import Dialect
    from ._jsonrpc import BadMessage

__all__ = ["answer_to_bad_message", "answer_to_refused", "too_often"]

_CLIENT = Role.CLIENT


def answer_to_refused(refusal: Refusal, config: Config, settled: Dialect | None) -> t.ErrorData | None:
    """The answer to a request that was understood and not let in, None if there is to be none."""
    if not refusal.answerable:
        return None
    dialect = refusal.dialect or settled or config.dialects[0]
    return t.ErrorData(code=dialect.codes[refusal.fault], message=refusal.message, data=refusal.data)


def answer_to_bad_message(
    bad: BadMessage, role: Role, config: Config, settled: Dialect | None
) -> tuple[t.ErrorData, bool] | None:
    """The answer to what is no message, and whether it has a null id where there is none; None if there is to be no answer: it
    may have been a response."""
    if bad.looks not in ("request", "neither"):
        return None
    # Over a stream a client cannot tell whose fault an unreadable message is; a stateless one never answers.
    if role is _CLIENT and (bad.id is None or settled is None or not settled.stateful):
        return None
    code = (settled or config.dialects[0]).codes[bad.fault]
    # Before a revision is known, each of those spoken here may be the peer's.
    null_id = any(dialect.null_error_id for dialect in ((settled,) if settled else config.dialects))
    return t.ErrorData(code=code, message=bad.message), null_id


def too_often(wait: float, dialect: Dialect) -> Refusal:
    """What is wrong with a call that comes `wait` seconds too early."""
    problem = f"too many calls in a short time; try again in {wait:.3g} s"
    return Refusal(Fault.BUSY, problem, {"retryAfter": wait}, dialect=dialect)
