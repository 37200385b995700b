"""The official suite's traffic, judged by scenario, and the rows that the suite itself breaks.

1. Our side has no finding that is certain, in any scenario, and no other one but `POSSIBLE`.
2. The suite's side has the ones in `FAULTS` and no others. Each was looked at by hand, and has its
   reason. One that isn't there any more is a failure, too: the suite has repaired it.
3. A scenario in which our side has sent no message is a failure, since nothing was judged; but for
   the ones in `SILENT`.
4. Secrets are recorded, because they are the suite's. The judge also reads the traces as they are
   written by default: what is hidden may make a finding inconclusive, and never makes one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from mcp_core.trace import Finding, Judge, Redactor, TraceHeader, TraceLine, read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "FAULTS",
    "POSSIBLE",
    "SILENT",
    "JudgedTrace",
    "check_scenario",
    "judge_file",
    "scenarios_in",
    "split",
]

D, E = "2025-11-25", "2026-07-28"
Side = Literal["client", "server"]

# Rows that the suite breaks, by the side that it plays, the revision and the scenario. All are on
# purpose, but for SHL-8.
FAULTS: Final[Mapping[tuple[Side, str, str], Mapping[str, str]]] = {
    ("client", D, "server-sse-polling"): {"SHL-8": "it reconnects at once, whatever `retry` says"},
    ("client", E, "server-stateless"): {"META-6": "it leaves members of `_meta` out"},
    ("client", E, "input-required-result-validate-input"): {
        "TOOL-14": "it sends responses that are no objects",
    },
    ("client", E, "http-header-validation"): {
        "HDR-1": "it sends a wrong `Mcp-Method`",
        "HDR-2": "it sends a wrong `Mcp-Name`",
    },
    ("client", E, "tasks-request-headers"): {"HDR-1": "it sends a wrong `Mcp-Method`"},
    ("client", E, "tasks-dispatch-and-envelope"): {
        "TX-13": "it sends a response that is none of the three, under a key that wasn't asked for",
    },
    ("server", E, "http-invalid-tool-headers"): {
        "HDR-12": "it has tools with invalid `x-mcp-header`",
    },
    ("server", E, "request-metadata"): {
        "ERR-7": "it rejects a revision that it supports, to see the client try again",
    },
    ("server", E, "sep-2322-client-request-state"): {
        "RPC-30": "the tool test_mrtr_no_result_type leaves `resultType` out",
    },
}

# Rows that our side may break, as far as a judge can tell, with the reason why it doesn't.
POSSIBLE: Final[Mapping[tuple[Side, str, str], Mapping[str, str]]] = {
    ("client", E, "tasks-request-headers"): {
        "TX-19": "the task is unknown, and the wrong header is the error that comes first",
    },
    # Without a session the proxy can't tell that a request belongs to an earlier handshake.
    ("server", D, "tools_call"): {"LIFE-1": "the suite's server gives no session"},
    ("server", D, "json-schema-2020-12-preservation"): {
        "LIFE-1": "the suite's server gives no session",
    },
}

# Scenarios in which nothing is sent.
SILENT: Final[Mapping[tuple[Side, str, str], str]] = {
    ("client", E, "tasks-status-notifications"): "the suite has no check there yet",
}

_NEAR: Final = 0.05  # seconds by which two clocks may differ after some minutes
_RESULT: Final = re.compile(r"(?:server-)?(.+)-(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d)-(\d+)Z")


class JudgedTrace(NamedTuple):
    """A trace, or a scenario's part of one.

    Attributes:
        header: the trace's header.
        messages: how many messages each side has sent.
        certain: the findings that are certain.
        possible: the other ones.
        without_secrets: the certain findings in the same trace with its secrets hidden.
        times: when each line was recorded, in seconds since the header; the header is line 1.
    """

    header: TraceHeader
    messages: Counter[str]
    certain: list[Finding]
    possible: list[Finding]
    without_secrets: list[Finding]
    times: list[float]

    def broken_by(self, side: str) -> dict[str, list[str]]:
        """Return the sentences of a side's certain findings, by row."""
        found: dict[str, list[str]] = {}
        for each in self.certain:
            if each.side == side:
                found.setdefault(each.row, []).append(f"line {each.lines[0]}: {each.sentence}")
        return found


def judge_file(path: Path) -> JudgedTrace:
    """Read a trace, and judge it twice: as it is, and with its secrets hidden."""
    header, lines = read_trace([path.read_bytes()])
    redactor = Redactor(b"key")
    plain, hidden = Judge(header), Judge(header)
    found: list[Finding] = []
    without_secrets: list[Finding] = []
    messages: Counter[str] = Counter()
    times = [0.0, 0.0]
    for number, line in lines:
        assert isinstance(line, TraceLine), f"line {number}: {line}"
        found += plain.receive(line, number)
        without_secrets += hidden.receive(redactor.redact_line(line), number)
        times.append(line.t)
        if line.sender is not None and line.message is not None:
            messages[line.sender] += 1
    found += plain.close()
    without_secrets += hidden.close()
    return JudgedTrace(
        header,
        messages,
        [each for each in found if each.is_certain],
        [each for each in found if not each.is_certain],
        [each for each in without_secrets if each.is_certain],
        times,
    )


def scenarios_in(place: Path) -> dict[str, float]:
    """Return when the suite began each scenario, in seconds since 1970, in that order.

    It names a directory after both before it begins, and plays one after the other.
    """
    found = {}
    for each in place.iterdir():
        name = _RESULT.fullmatch(each.name)
        assert name is not None, each
        moment = datetime.fromisoformat(f"{name[2]}:{name[3]}:{name[4]}.{name[5]}+00:00")
        found[name[1]] = moment.timestamp()
    return dict(sorted(found.items(), key=lambda each: each[1]))


def split(
    judged: JudgedTrace, path: Path, begins: Mapping[str, float], suite_side: Side, version: str
) -> dict[str, JudgedTrace]:
    """Return each scenario's part of a trace in which they were played one after the other.

    What was recorded near the time between two scenarios can belong to either: the suite's clock
    is the wall clock, the trace's is monotonic. So it is for one that explains it.
    """
    began = datetime.fromisoformat(judged.header.at).astimezone(UTC).timestamp()
    starts = [each - began for each in begins.values()]
    names = list(begins)
    parts = {
        each: judged._replace(messages=Counter(), certain=[], possible=[], without_secrets=[])
        for each in names
    }

    def may_be_at(line: int) -> list[str]:
        """Return the scenarios that a line can be of, the likely one first."""
        time = judged.times[line]
        found, first, last = (
            max(0, bisect_right(starts, time + more) - 1) for more in (0, -_NEAR, _NEAR)
        )
        return [names[found], *(names[n] for n in range(first, last + 1) if n != found)]

    def part_of(finding: Finding) -> JudgedTrace:
        """Return the part of the first scenario that has a finding in its tables."""
        found = may_be_at(finding.lines[0])
        for each in found:
            key = suite_side, version, each
            if finding.row in FAULTS.get(key, ()) or finding.row in POSSIBLE.get(key, ()):
                return parts[each]
        return parts[found[0]]

    def part_of_message(line: int, sender: str) -> JudgedTrace:
        """Return the part of the earliest scenario without a message of its sender, if any.

        That one gets no other message. Else return the likely scenario's part.
        """
        found = may_be_at(line)
        found = [each for each in found if (suite_side, version, each) not in SILENT] or found
        lacking = [each for each in found if not parts[each].messages[sender]]
        return parts[min(lacking, key=names.index, default=found[0])]

    for number, line in read_trace([path.read_bytes()])[1]:
        assert isinstance(line, TraceLine)
        if line.sender is not None and line.message is not None:
            part_of_message(number, line.sender).messages[line.sender] += 1
    for each in judged.certain:
        part_of(each).certain.append(each)
    for each in judged.possible:
        part_of(each).possible.append(each)
    for each in judged.without_secrets:
        part_of(each).without_secrets.append(each)
    return parts


def check_scenario(judged: JudgedTrace, suite_side: Side, version: str, scenario: str) -> list[str]:
    """Return what is wrong with a scenario's part of a trace, as sentences."""
    ours = "server" if suite_side == "client" else "client"
    found = judged.broken_by(suite_side)
    expected = FAULTS.get((suite_side, version, scenario), {})
    known = {(each.row, each.lines) for each in judged.certain}
    problems = [
        f"our {ours} breaks {row}: {'; '.join(sentences)}"
        for row, sentences in judged.broken_by(ours).items()
    ]
    may_be = POSSIBLE.get((suite_side, version, scenario), {})
    problems += [
        f"our {ours} may break {each.row}, which POSSIBLE doesn't have: {each.sentence}"
        for each in judged.possible
        if each.side == ours and each.row not in may_be
    ]
    problems += [
        f"the suite breaks {row}, which FAULTS doesn't have: {'; '.join(sentences)}"
        for row, sentences in found.items()
        if row not in expected
    ]
    problems += [f"the suite keeps {row}, which FAULTS has" for row in expected.keys() - found]
    problems += [
        f"hiding the secrets has made a finding: {each.row} {each.sentence}"
        for each in judged.without_secrets
        if (each.row, each.lines) not in known
    ]
    is_silent = (suite_side, version, scenario) in SILENT
    if is_silent and judged.messages:
        problems.append("messages were recorded, and SILENT has the scenario")
    elif not is_silent and not judged.messages[ours]:
        problems.append(f"our {ours} has sent no message that was recorded")
    return [f"{suite_side} {version} {scenario}: {each}" for each in problems]
