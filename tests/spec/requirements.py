"""The manifest: a verdict for each requirement of the specification and each of our decisions.

The texts are the rows of `mcp_core.trace.judge.rows`. A row is written before the code that fulfils it.
Tests name the rows that they prove with `@pytest.mark.requirement("RPC-1", ...)`.
`test_manifest.py` compares both sides: a TESTED row has a test, and no test proves a row that is
still planned.

Every row has one verdict. `TESTED`: at least one test carries its id. `PLANNED(topic)`: that piece
of work will bring it. `NOT_OURS(why)`: another party is responsible (the host application, the
author of a server). A row that `VERDICTS` does not name is TESTED.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from mcp_core.trace.judge import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NOT_OURS", "PLANNED", "REQUIREMENTS", "TESTED", "VERDICTS", "Requirement", "Verdict"]

Topic = Literal[
    "core-on-pipes",
    "utilities",
    "subscriptions",
    "conversation",
    "tasks",
    "pressure",
    "http",
    "http2-websocket",
    "auth",
]


@dataclass(frozen=True)
class Tested:
    """At least one test carries the row's id."""

    def __str__(self) -> str:
        return "TESTED"


@dataclass(frozen=True)
class Planned:
    """A row without a test so far; `topic` is the piece of work that will bring it."""

    topic: Topic

    def __str__(self) -> str:
        return f'PLANNED("{self.topic}")'


@dataclass(frozen=True)
class NotOurs:
    """A row for which another party is responsible; `why` names it, or the reason that it does not
    concern us.
    """

    why: str

    def __str__(self) -> str:
        return f'NOT_OURS("{self.why}")'


Verdict = Tested | Planned | NotOurs
TESTED = Tested()
PLANNED = Planned
NOT_OURS = NotOurs

# Reasons that several rows share.
ADVICE = "advice on adopting the feature; we keep it for peers that use it"
AUTHOR = "the author of the server decides what it says and does"
AUTHORIZATION_SERVER = "we write no authorization server"
HOST = "the host application has the user interface; we have none"
MODEL = "the host application runs the model and chooses how"
PROXY = "we write no proxy to third-party authorization"


class Requirement(rows.Requirement, frozen=True, kw_only=True):
    """A row with its verdict."""

    verdict: Verdict


VERDICTS: Final[Mapping[str, Verdict]] = {
    "META-5": NOT_OURS(
        "it binds the authors of new prefixes; all reserved names we send are the specification's"
    ),
    "META-17": NOT_OURS(
        "the host application fetches and draws icons; we hand them through unread"
    ),
    "META-18": NOT_OURS(
        "the host application fetches and draws icons; we hand them through unread"
    ),
    "JSCH-4": NOT_OURS("because it is a duty of documentation: `ToolOptions` names the dialects"),
    "JSCH-6": NOT_OURS("nothing is ever fetched (JSCH-5), so there is no opt-in to guard"),
    "VER-10": NOT_OURS("the program that opens a client decides how long the server process lives"),
    "VER-11": NOT_OURS(
        "how a server names its state is its author's design; the engine keeps none (VER-7)"
    ),
    "PROG-12": NOT_OURS("the text of a message is the caller's"),
    "LOG-11": NOT_OURS(AUTHOR),
    "LOG-13": NOT_OURS(ADVICE),
    "COMP-6": NOT_OURS(
        "input and rate are COMP-5; what is suggested, and to whom, the author of the server decides"
    ),
    "COMP-7": NOT_OURS("a host debounces its own input field"),
    "CACHE-11": NOT_OURS("access is for the server's author to decide; the hint never enters it"),
    "TSK-9": NOT_OURS("a tool that runs as a task only is refused with -32601, as TSK-5 demands"),
    "SUB-9": NOT_OURS(
        "it contradicts SUB-8, and DEC-1 decides: the result of the listen request is its end"
    ),
    "SUB-12": NOT_OURS(
        "a subscription ends with its connection; a client that reconnects subscribes again"
    ),
    "TOOL-18": NOT_OURS("the host application decides what its model sees"),
    "TOOL-20": NOT_OURS("we write no aggregator"),
    "TOOL-21": NOT_OURS(
        "trust is the host's judgement; we hand annotations through and act on none"
    ),
    "TOOL-25": NOT_OURS(HOST),
    "TOOL-26": NOT_OURS(
        "because only the author knows what a tool will embed; declaring a resource declares the capability"
    ),
    "RES-10": NOT_OURS(AUTHOR),
    "RES-13": NOT_OURS(AUTHOR),
    "PRM-6": NOT_OURS("what a prompt may hold is for its author and the host to judge"),
    "SAMP-10": NOT_OURS(MODEL),
    "SAMP-14": NOT_OURS(MODEL),
    "SAMP-15": NOT_OURS(MODEL),
    "SAMP-17": NOT_OURS(MODEL),
    "SAMP-19": NOT_OURS(MODEL),
    "SAMP-20": NOT_OURS(ADVICE),
    "ELIC-12": NOT_OURS(AUTHOR),
    "ELIC-19": NOT_OURS(AUTHOR),
    "ELIC-21": NOT_OURS(AUTHOR),
    "ELIC-24": NOT_OURS(HOST),
    "ROOT-6": NOT_OURS("the host application chooses which roots to give"),
    "ROOT-7": NOT_OURS(AUTHOR),
    "ROOT-8": NOT_OURS(ADVICE),
    "STDIO-12": NOT_OURS("the host gets ConnectionLost and decides whether to restart the server"),
    "HDR-15": NOT_OURS(AUTHOR),
    "HDR-16": NOT_OURS("we write no intermediary"),
    "SSE-7": NOT_OURS(ADVICE),
    "AG-3": NOT_OURS(
        "we write no authorization server; our client finds one in an MCP server by AC-1 and AC-2"
    ),
    "AG-5": NOT_OURS(AUTHORIZATION_SERVER),
    "AR-12": NOT_OURS("the author of the server makes its upstream calls"),
    "AR-15": NOT_OURS(PROXY),
    "AQ-5": NOT_OURS(AUTHORIZATION_SERVER),
    "AF-12": NOT_OURS(AUTHORIZATION_SERVER),
    "AF-13": NOT_OURS(AUTHORIZATION_SERVER),
    "AF-14": NOT_OURS(AUTHORIZATION_SERVER),
    "AU-5": NOT_OURS(PROXY),
    "AU-8": NOT_OURS("the host application installs servers"),
}

REQUIREMENTS: Final[tuple[Requirement, ...]] = tuple(
    Requirement(
        row.id,
        row.pages,
        row.sentence,
        row.level,
        row.since,
        row.until,
        row.role,
        row.without,
        verdict=VERDICTS.get(row.id, TESTED),
    )
    for row in rows.ROWS.values()
)
