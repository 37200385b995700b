"""The files of a run: a trace for each finding, tests for pytest, and the reports."""

from __future__ import annotations

import errno
import json
import re
import secrets
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from msgspec.structs import replace

from mcp_core import escape_text
from mcp_core.drivers import launch_secrets
from mcp_core.trace import ROWS, RecordedFinding, Redactor, TraceEncoder, TraceLine
from mcp_trio._files import replace_output
from mcp_trio.oracle._junit import attribute, junit_case, junit_suite, row_name

from ._case import encode_case, shown_case
from .campaign._unseen_rows import rows_of_run
from .causes._baseline import REPORT_FORMAT, cause_document
from .causes._cause import possible_causes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._probe import Offers
    from .campaign._campaign import Campaign
    from .campaign._findings import FuzzFinding
    from .habits._watch import ShownHabit
    from .play._player import TargetLike

__all__ = [
    "REPORT",
    "TESTS",
    "FromEnvironment",
    "RunDirectory",
    "check_folder",
    "failed_junit_report",
    "hidden_header",
    "hidden_variable",
    "junit_report",
    "report_document",
    "write_findings",
]

REPORT: Final = "report.json"
TESTS: Final = "test_findings.py"
TRACE_LIMIT: Final = 16 * 1024 * 1024  # bytes
_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
_PREFIX: Final = "MCP_FUZZ_"  # how the tests' variables begin if the user hasn't named them


@dataclass(frozen=True)
class FromEnvironment:
    """A secret that the tests read from an environment variable.

    Attributes:
        variable: the variable's name.
        prefix: the text before the secret.
    """

    variable: str
    prefix: str = ""
    imported: ClassVar[str] = "import os"

    @property
    def source(self) -> str:
        """A Python expression for the value."""
        value = f"os.environ[{self.variable!r}]"
        return f"{self.prefix!r} + {value}" if self.prefix else value


@dataclass(frozen=True)
class RunDirectory:
    """The target's working directory, as the tests name it.

    If it and the tests are in the run's directory, the tests name it relative to their own place.
    So both can be moved together, or checked out elsewhere. Otherwise, they have its full path.

    Attributes:
        path: the working directory.
        folder: the tests' directory.
        root: the run's directory.
    """

    path: Path
    folder: Path
    root: Path

    @property
    def imported(self) -> str:
        """The import statement that `source` needs, or ""."""
        return "from pathlib import Path" if self._is_portable else ""

    @property
    def source(self) -> str:
        """A Python expression for the value."""
        if not self._is_portable:
            return repr(str(self.path.resolve()))
        levels = len(self.folder.resolve().relative_to(self.root.resolve()).parts)
        rest = self.path.resolve().relative_to(self.root.resolve()).as_posix()
        found = f"Path(__file__).resolve().parents[{levels}]"
        return found if rest == "." else f"{found} / {rest!r}"

    @property
    def _is_portable(self) -> bool:
        root = self.root.resolve()
        return all(each.resolve().is_relative_to(root) for each in (self.path, self.folder))


@dataclass(frozen=True)
class _ThisPython:
    """The Python that runs the tests: it has this package, too."""

    imported: ClassVar[str] = "import sys"
    source: ClassVar[str] = "sys.executable"


_Expression: TypeAlias = FromEnvironment | RunDirectory | _ThisPython
# How the command that serves a Python file begins, on trio and on asyncio, and a module.
_SERVES_FILE: Final = tuple(
    (sys.executable, "-P", "-m", *program, *option)
    for program in (("mcp_trio", "run"), ("mcp_asyncio_shim",))
    for option in ((), ("-m",))
)


def hidden_variable(name: str, value: str, *, is_secret: bool = False) -> str | FromEnvironment:
    """Return an environment variable's value, or a `FromEnvironment` if it is a secret.

    It is a secret if it looks like one, or if `is_secret` is True.
    """
    word = f"{name}={value}"
    is_secret = is_secret or bool(launch_secrets(env={name: value}))
    if not is_secret and Redactor(b"").redact_command([word]) == [word]:
        return value
    return FromEnvironment(name)


def hidden_header(name: str, value: str, *, is_secret: bool = False) -> str | FromEnvironment:
    """Return a header's value, or a `FromEnvironment` if it is a secret.

    `name` is in lower case. A value is a secret if it looks like one, or if `is_secret` is True.
    """
    is_secret = is_secret or bool(launch_secrets(headers={name: value}))
    if not is_secret and Redactor(b"").redact_header(name, value) == value:
        return value
    return FromEnvironment(_PREFIX + _NAME.sub("_", name).upper())


def _hidden_target(target: TargetLike) -> str | FromEnvironment | list[str | FromEnvironment]:
    """Return a target's command or URL for the tests, without secrets.

    Words that contain variables in a configuration file count as secrets.
    """
    command = getattr(target, "command", None)
    written = getattr(target, "unexpanded", ())
    redactor = _redactor_for(target)
    if command is None:
        url = target.name
        is_plain = redactor.redact_url(url) == url and written in ((), (url,))
        return url if is_plain else FromEnvironment(_PREFIX + "URL")
    # The whole command at once: only the option before a word may show that it is a secret.
    shown = redactor.redact_command(command)
    if written:
        shown[1:] = [
            seen if word == text else ""
            for seen, word, text in zip(shown[1:], command[1:], written[1:], strict=True)
        ]
    return [
        word if word == seen else FromEnvironment(f"{_PREFIX}ARGUMENT_{place}")
        for place, (word, seen) in enumerate(zip(command, shown, strict=True))
    ]


def _shown_target(target: TargetLike) -> str:
    """Return a target's name for the reports, without secrets."""
    redactor = _redactor_for(target)
    command = getattr(target, "command", None)
    written = getattr(target, "unexpanded", ())
    if command is None:
        return redactor.redact_url(written[0] if written else target.name)
    return shlex.join(redactor.redact_command(written or command))


def _redactor_for(target: TargetLike) -> Redactor:
    return Redactor(secrets.token_bytes(32), secrets=getattr(target, "secrets", ()))


def report_document(campaign: Campaign, offers: Offers, seed: int) -> dict[str, Any]:
    """Return a run's report as one JSON document."""
    found = campaign.found
    document = {
        "version": REPORT_FORMAT,
        "target": _shown_target(campaign.target),
        campaign.side: offers.name,
        "revisions": offers.revisions,
        "seed": seed,
        "cases": campaign.cases,
        "starts": campaign.starts,
        "seconds": round(campaign.seconds, 1),
        "drawing_seconds": round(campaign.drawing_seconds, 1),
        "interrupted": campaign.interrupted,
        "messages": campaign.messages,
        "unconfirmed": dict(campaign.unconfirmed),
        "missing": campaign.missing,
        "notes": campaign.notes,
        "slow": dict(campaign.slow),
        "findings": [_finding_document(each, campaign.side) for each in campaign.findings],
        "habits": [_habit_document(each) for each in campaign.habits],
        # What the run's own baseline held, so that this report can be the next one.
        "known": [{**cause_document(cause), "seen": count} for cause, count in found.known.items()],
        "known_methods": [list(pair) for pair in found.known_methods],
        "ignored": [
            {"row": each.row, "scope": each.scope, "reason": each.reason, "seen": count}
            for each, count in found.ignored.items()
        ],
        "repaired": campaign.repaired,
        "unplayed": [encode_case(each) for each in campaign.unplayed],
        "opportunities": {
            row: campaign.opportunities[row] for row in sorted(campaign.opportunities)
        },
        "no_opportunity": [
            {
                "row": each.row.id,
                "level": each.row.level,
                "sentence": each.row.title,
                "reason": each.reason,
                "why": each.why,
            }
            for each in rows_of_run(campaign, offers)
        ],
    }
    if campaign.kept:
        document["kept"] = campaign.kept
    if campaign.checks is not None:
        document["invariants"] = campaign.checks.report()
    if not getattr(campaign.target, "secrets", ()):
        return document
    hidden: dict[str, Any] = _hidden(document, _redactor_for(campaign.target).hide_known)
    return hidden


def _hidden(value: Any, hide: Callable[[str], str]) -> Any:
    """Return a JSON value with `hide` applied to all its texts."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {hide(name): _hidden(each, hide) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(each, hide) for each in value]
    return value


def _finding_document(finding: FuzzFinding, side: str) -> dict[str, Any]:
    fault = finding.fault
    cause = finding.cause or possible_causes(fault, finding.case)[-1]
    return {
        "row": fault.row,
        "kind": fault.kind,
        "verdict": "inconclusive" if fault.is_advice else "fail",
        "level": fault.level,
        "side": side,
        "method": fault.method,
        "cause": cause_document(cause),
        "cause_is_unclear": finding.is_unclear,
        "also": finding.methods,
        "also_causes": [cause_document(each) for each in finding.also],
        "further_causes": [cause_document(each) for each in finding.further],
        "detail": fault.detail,
        "sentence": fault.sentence,
        "link": fault.link,
        "hits": finding.hits,
        "plays": finding.plays,
        "seen": finding.seen,
        "messages": finding.messages,
        "steps": encode_case(finding.case),
    }


def _habit_document(shown: ShownHabit) -> dict[str, Any]:
    versions, link = shown.habit.sdks[shown.sdk]
    return {
        "habit": shown.habit.name,
        "row": shown.habit.row,
        "level": shown.level,
        "sentence": shown.habit.sentence,
        "sdk": shown.sdk,
        "versions": versions,
        "link": link,
        "marks": shown.marks,
        "methods": shown.methods,
        "seen": shown.seen,
        "steps": encode_case(shown.case),
    }


def write_findings(
    folder: Path, campaign: Campaign, document: dict[str, Any], **options: Any
) -> list[str]:
    """Write a run's files into `folder`, and return their names. Only their owner can read them.

    Each file is written under another name and then renamed. So if a link has its name, the link is
    replaced, not followed.

    Args:
        folder: created if needed. An earlier run's files are replaced.
        campaign: the run.
        document: its report.
        options: further arguments that the tests pass to `find_faults`. A `FromEnvironment`, also
            one in a dictionary, is read when the tests run; a `RunDirectory` is found then.

    Raises:
        OSError: a file cannot be written, or the folder is a symbolic link: a checked-out
            repository may contain one.
    """
    redactor = _redactor_for(campaign.target)
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.mcp.jsonl"):
        if re.match(r"\d+-", path.name):
            path.unlink()
    names = []
    for number, finding in enumerate(campaign.findings, 1):
        if finding.header is not None:
            name = f"{number}-{finding.fault.row}.mcp.jsonl"
            trace = _trace(finding, campaign.side, _redactor_for(campaign.target))
            replace_output(folder / name, trace)
            names.append(name)
    tests = folder / TESTS
    if campaign.findings:
        replace_output(tests, redactor.hide_known(_tests(campaign, options)).encode())
        names.append(TESTS)
    else:
        tests.unlink(missing_ok=True)
    replace_output(folder / REPORT, json.dumps(document, indent=2).encode() + b"\n")
    return [*names, REPORT]


def check_folder(folder: Path) -> None:
    """Check that files may be written into a folder.

    Raises:
        OSError: it is a symbolic link: a checked-out repository may contain one.
    """
    if folder.is_symlink():
        problem = "is a symbolic link: remove it, or name the folder that it leads to"
        raise OSError(errno.ELOOP, problem, str(folder))


def _trace(finding: FuzzFinding, side: Literal["client", "server"], redactor: Redactor) -> bytes:
    """Return the trace of a finding about `side`, with the finding in its header."""
    assert finding.header is not None
    fault = finding.fault
    found = RecordedFinding(
        row=fault.row,
        side=side,
        sentence=redactor.hide_known(fault.sentence),
        verdict="inconclusive" if fault.is_advice else "fail",
    )
    header = replace(finding.header, redacted=redactor.redacted, finding=found)
    encoder = TraceEncoder(header, redactor, TRACE_LIMIT)
    lines = [*finding.lines, *_end_lines(finding, side)]
    return encoder.begin() + encoder.encode(lines) + encoder.end(lines[-1].t if lines else 0.0)


def _end_lines(finding: FuzzFinding, side: Literal["client", "server"]) -> Iterator[TraceLine]:
    """Yield the ends of a play's conversations that its lines don't have."""
    fuzzer: Literal["client", "server"] = "client" if side == "server" else "server"
    conversations = {line.conversation for line in finding.lines if line.sender is not None}
    ended = {line.conversation for line in finding.lines if line.end and not line.exchange}
    exited = {line.conversation for line in finding.lines if line.kind == "exit"}
    for number in sorted(conversations - ended):
        sender, end = (side, "closed") if number in exited else (fuzzer, "closed")
        if sender == fuzzer and finding.fault.is_silence:
            end = "timeout"
        yield TraceLine(t=finding.lines[-1].t, conversation=number, sender=sender, end=end)


def _tests(campaign: Campaign, options: dict[str, Any]) -> str:
    target = _portable(_hidden_target(campaign.target), options.get("cwd"))
    more = "".join(f", {key}={_source_of(value)}" for key, value in options.items() if value)
    expressions = [*_expressions_in(target), *_expressions_in(options)]
    variables = sorted({each.variable for each in expressions if isinstance(each, FromEnvironment)})
    head = '"""What `mcp-trio fuzz` has found: each test fails until its fault is repaired."""\n\n'
    imports = {each.imported for each in expressions if each.imported}
    if imports:
        head += "\n".join(sorted(imports, key=lambda line: line.split()[1])) + "\n\n"
    head += f"from mcp_trio.testing import {campaign.find_faults}\n\n"
    if variables:
        # A name can be any text: `repr` keeps it on the comment's line.
        names = ", ".join(map(repr, variables))
        head += f"# Secrets are not in this file. Set these environment variables: {names}\n"
    parts = [head + f"TARGET = {_source_of(target)}\n"]
    for number, finding in enumerate(campaign.findings, 1):
        fault = finding.fault
        name = _NAME.sub("_", f"{fault.row} {fault.method[:40]}").strip("_").lower()
        steps = "".join(f"        {step!r},\n" for step in finding.case)
        # The sentence can quote the server.
        sentence = escape_text(fault.sentence)[:300].replace("\\", "\\\\").replace('"', "'")
        rate = "" if finding.is_solid else f" Seen in {finding.hits} of {finding.plays} plays."
        parts.append(
            f"\n\ndef test_{number}_{name}():\n"
            f'    """{fault.level} {fault.row}: {sentence}.{rate}"""\n'
            f"    steps = [\n{steps}    ]\n"
            f"    faults = {campaign.find_faults}(TARGET, steps{more})\n"
            f"    assert {fault.row!r} not in faults, faults[{fault.row!r}]\n"
        )
    return "".join(parts)


def _source_of(value: Any) -> str:
    """Return a Python expression for a value."""
    if isinstance(value, _Expression):
        return value.source
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_source_of(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_source_of, value)) + "]"
    return repr(value)


def _expressions_in(value: Any) -> Iterator[_Expression]:
    """Yield the parts of a value that are only known when the tests run."""
    if isinstance(value, _Expression):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _expressions_in(each)


def _portable(target: Any, directory: Any) -> Any:
    """Return the target. Make the command for a Python file work on other machines, too.

    Args:
        target: the URL, or the command's words.
        directory: the `RunDirectory` in which it is started, unless the user has named one.
    """
    if not isinstance(target, list) or tuple(target[:-1]) not in _SERVES_FILE:
        return target
    file = target[-1]
    if isinstance(file, str) and isinstance(directory, RunDirectory):
        place = directory.path.absolute()
        file = str(Path(file).relative_to(place)) if Path(file).is_relative_to(place) else file
    return [_ThisPython(), *target[1:-1], file]


def junit_report(campaign: Campaign, *, strict: bool = False) -> str:
    """Return a JUnit report with a test case for each judged row.

    Advice, flaky findings and habits of the SDK are skipped tests; with `strict` they are failures.
    So is a row that a case has shown to be broken, and no further play of it, or that the user has
    accepted: but never a failure. If a run played nothing, was interrupted, or lost its target, the
    report has a test with an error.
    """
    hide = _redactor_for(campaign.target).hide_known  # before `<` becomes `&lt;`
    cases = []
    found: dict[str, list[FuzzFinding]] = {}
    for each in campaign.findings:
        found.setdefault(each.fault.row, []).append(each)
    seen: dict[str, str] = {}  # unconfirmed, by row
    for name, count in campaign.unconfirmed.items():
        row = name.partition(" ")[0]
        if row not in found:
            cause = campaign.missing.get(name, "")
            text = f"{name}: seen {count} times, and in no further play: {cause}"
            seen.setdefault(row, f"<skipped message={attribute(hide(text))}/>")
    for row, why in campaign.found.left_out.items():
        if row not in found:
            seen.setdefault(row, f"<skipped message={attribute(hide(why))}/>")
    habits: dict[str, str] = {}
    for shown in campaign.habits:
        verdict = "failure" if strict else "skipped"
        text = f"{shown.sentence}: {shown_case(shown.case)}"
        row = shown.habit.row
        habits[row] = habits.get(row, "") + f"<{verdict} message={attribute(hide(text))}/>"
    other = {**found, **seen, **habits}
    checked = [] if campaign.checks is None else campaign.checks.passed
    judged = [row for row in ROWS if campaign.opportunities.get(row)]
    passed = [row for row in (*judged, *checked) if row not in other]
    for row in [*other, *passed]:
        faults = "".join(
            f"<{'failure' if strict or each.is_failure else 'skipped'} message="
            f"{attribute(hide(each.fault.sentence + ': ' + shown_case(each.case)))}/>"
            for each in found.get(row, ())
        )
        faults += seen.get(row, "") + habits.get(row, "")
        cases.append(junit_case(row_name(row), faults))
    failed = sum(
        (strict and row in habits) or any(strict or each.is_failure for each in found.get(row, ()))
        for row in other
    )
    return _junit_suite(campaign.target, cases, failed, campaign.incomplete)


def failed_junit_report(target: Any, error: str) -> str:
    """Return the JUnit report of a run that could not begin because of `error`."""
    return _junit_suite(target, [], 0, error)


def _junit_suite(target: Any, cases: list[str], failed: int, error: str) -> str:
    return junit_suite(
        f"mcp-trio fuzz {_shown_target(target)}",
        "".join(cases),
        len(cases),
        failed,
        _redactor_for(target).hide_known(error),
        wanted="the run is complete",
    )
