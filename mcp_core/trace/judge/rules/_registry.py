"""The table of rules. Each rule is a small function that is marked with the rows it judges."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from mcp_core.trace.judge.rows import ROWS

if TYPE_CHECKING:
    from mcp_core.trace.judge._revisions import Revisions
    from mcp_core.trace.judge._sides import Side
    from mcp_core.trace.judge.rows import Requirement

__all__ = [
    "RULES",
    "On",
    "Outcome",
    "Rule",
    "RuleFailure",
    "rule",
    "rules_for",
    "rules_for_message",
]


class RuleFailure(NamedTuple):
    """A requirement that isn't fulfilled.

    Attributes:
        text: a clause that names the fault, such as `the id is null`.
        lines: further lines of the trace that show it, beside the message's own.
        is_certain: False if what the trace shows can have another cause: the verdict is then
            inconclusive.
        side: the side at fault, if it isn't the message's sender.
    """

    text: str
    lines: tuple[int, ...] = ()
    is_certain: bool = True
    side: Side | None = None


# None: the rule had nothing to judge. True: it passes. A text is a `RuleFailure` with that text.
Outcome: TypeAlias = bool | str | RuleFailure | None
F = TypeVar("F", bound=Callable[..., Outcome])
# What a rule is called for. "message" is every message; a "result" and an "error" are the two kinds
# of responses; "invalid" is an object that isn't a message; "close" is the end of a conversation.
# "http_request" and "http_response" are an exchange's heads, each with its message.
On: TypeAlias = Literal[
    "message",
    "request",
    "notification",
    "response",
    "result",
    "error",
    "invalid",
    "close",
    "http_request",
    "http_response",
]


class Rule(Struct, frozen=True, kw_only=True):
    """One rule.

    Attributes:
        check: the function. It gets a `SeenMessage` and the `ConversationState` before it, or the
            state alone at the end of a conversation, or a `SeenExchange` and the state.
        judge: what to call: `check`, with the `args` of `rule` after its other arguments.
        rows: the rows that it judges, by id. Each revision has at most one of them.
        on: what it is called for.
        methods: the methods of the requests or notifications that it judges, or of the requests
            whose responses it judges. Empty for all.
        sender: the side whose messages it judges; None for both.
        needs_history: a failure is inconclusive if earlier messages may be missing.
        needs_time: a failure is inconclusive if lines of the conversation have no time.
        in_doubt: it applies if the message can be of one of the row's revisions, even if it can
            also be of another revision.
        any_revision: it applies to messages of every revision, such as a request of an earlier one
            that a server of the newest one rejects.
    """

    check: Callable[..., Outcome]
    # A field, not a method, for speed: some twenty rules judge each message.
    judge: Callable[..., Outcome]
    rows: tuple[str, ...]
    on: On
    methods: tuple[str, ...]
    sender: Side | None
    needs_history: bool
    needs_time: bool
    in_doubt: bool
    any_revision: bool

    def row_for(self, candidates: Revisions) -> str | None:
        """Return the row that applies in all revisions of `candidates`, or None."""
        if self.any_revision:
            return self.rows[0]
        if not candidates:
            return None
        for id in self.rows:
            known = set(ROWS[id].revisions)
            if known.issuperset(candidates) or (self.in_doubt and not known.isdisjoint(candidates)):
                return id
        return None


RULES: Final[list[Rule]] = []


def rule(
    *rows: str,
    on: On,
    methods: tuple[str, ...] = (),
    sender: Side | None = None,
    needs_history: bool = False,
    needs_time: bool = False,
    in_doubt: bool = False,
    any_revision: bool = False,
    args: tuple[Any, ...] = (),
) -> Callable[[F], F]:
    """Return a decorator that adds a rule to `RULES`. See `Rule` for the arguments.

    A function can have several rules, which are judged from the first to the last. It gets a rule's
    `args` after its other arguments, so rules that differ in a word can share a function.
    """

    def add(check: F) -> F:
        added = Rule(
            check=check,
            judge=_with_args(check, on, args) if args else check,
            rows=rows,
            on=on,
            methods=methods,
            sender=sender,
            needs_history=needs_history,
            needs_time=needs_time,
            in_doubt=in_doubt,
            any_revision=any_revision,
        )
        # Decorators are called from the last to the first.
        place = len(RULES)
        while place and RULES[place - 1].check is check:
            place -= 1
        RULES.insert(place, added)
        return check

    return add


def _with_args(
    check: Callable[..., Outcome], on: On, args: tuple[Any, ...]
) -> Callable[..., Outcome]:
    if on == "close":
        return lambda state: check(state, *args)
    return lambda subject, state: check(subject, state, *args)


@cache
def rules_for(on: On, revisions: Revisions) -> list[tuple[Rule, Requirement]]:
    """Return the rules for heads or for a conversation's end, with the row that each judges."""
    rows = [(rule, rule.row_for(revisions)) for rule in RULES if rule.on == on]
    return [(rule, ROWS[row]) for rule, row in rows if row is not None]


@cache
def rules_for_message(
    kind: str, sender: Side, method: str, revisions: Revisions
) -> list[tuple[Rule, Requirement]]:
    """Return the rules for a kind of message, with the row that each judges.

    Args:
        kind: see `On`.
        sender: the side that sent the message.
        method: its method, or its request's method if it is a response.
        revisions: the revisions that it can be of.
    """
    on = {"message", kind}
    if kind in ("result", "error"):
        on.add("response")
    if kind == "invalid":
        on.discard("message")
    found = []
    for rule in RULES:
        if rule.on not in on or rule.sender not in (None, sender):
            continue
        if rule.methods and method not in rule.methods:
            continue
        row = rule.row_for(revisions)
        if row is not None:
            found.append((rule, ROWS[row]))
    return found
