"""The client of a trace against a live server: play, record, judge, compare."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import ConnectFailed
from mcp_core.http import Url
from mcp_core.trace import InvalidTrace, ReplayClient, diff_traces
from mcp_trio.cli._errors import NO_CONNECTION, NOTHING_JUDGED, CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.oracle._junit import attribute, junit_case, junit_suite, row_name
from mcp_trio.streams._stdio import stop_on_signals

from ._check import CheckReport, fill_report
from ._diff import diff_document, show_diff
from ._junit_file import write_junit
from ._trace_file import load_trace_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.adapters import Recorder, Recording
    from mcp_core.trace import RecordedSession, RecordedTrace, TraceDiff, TraceDifference
    from mcp_trio.cli._session import Target

__all__ = ["ClientReplay"]

_DIFFERENT: Final = 1
_MAX_PROBLEMS: Final = 20  # that are shown
_CALL: Final = "tools/call"


@dataclass(kw_only=True)
class _Totals:
    """The totals of all sessions of a replay."""

    sent: int = 0
    answered: int = 0
    unanswered: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, client: ReplayClient) -> None:
        self.sent += client.sent
        self.answered += client.answered
        self.unanswered += client.unanswered
        self.problems += client.problems


class ClientReplay:
    """One replay of a trace as its client.

    Args:
        path: the trace's file.
        trace: the trace.
        target: the server.
        recording: the file in which the new conversation is recorded.
        response_timeout: seconds for each response, as for `ReplayClient`.
    """

    def __init__(
        self,
        path: str,
        trace: RecordedTrace,
        target: Target,
        *,
        recording: Recording,
        response_timeout: float | None,
    ) -> None:
        self._path = path
        self._trace = trace
        self._target = target
        self._recording = recording
        self._response_timeout = response_timeout
        self._stderr = target.stderr
        self._totals = _Totals()

    def run(
        self, *, ignore: Sequence[str], with_meta: bool, as_json: bool, junit: str | None = None
    ) -> int:
        """Play the trace, print what is different, and return the exit status.

        With `junit` a report is written to this file, too.

        Raises:
            CliError: there was no conversation, or a pointer of `ignore` isn't one.
        """
        try:
            diff_traces(self._trace, self._trace, ignore=ignore) if ignore else None
        except ValueError as exc:
            raise CliError(f"--ignore: {exc}") from exc
        self._warn()
        stopped = trio.run(self._play)
        if stopped:
            return stopped
        totals = self._totals
        if totals.sent and not totals.answered and self._expects_responses():
            cause = totals.problems[0] if totals.problems else "the server answered nothing"
            raise CliError(f"no conversation: {cause}", NO_CONNECTION)
        new_path = os.fspath(self._recording.path)
        report = CheckReport(new_path, self._known_findings(), "server", "should")
        fill_report(new_path, report)
        try:
            new = load_trace_file(new_path, self._stderr)
        except InvalidTrace as exc:
            raise CliError(f"{new_path}: {exc}") from exc
        found = diff_traces(self._trace, new, ignore=ignore, with_meta=with_meta)
        stdout = Screen(sys.stdout)
        if as_json:
            stdout.write_json(self._document(report, diff_document(found)))
        else:
            for problem in totals.problems[:_MAX_PROBLEMS]:
                self._stderr.write_line((f"mcp-trio: {problem}", "yellow"))
            report.show_findings(stdout)
            show_diff(stdout, found)
            stdout.write_line(
                f"{totals.sent} messages sent, {totals.answered} requests answered,"
                f" {totals.unanswered} not: {found.count} differences, {report.failed} findings"
                + (f" ({report.known} as in {self._path})" if report.known else "")
            )
        is_different = bool(found.count or report.failed or totals.unanswered)
        nothing = ""
        if not is_different and not found.responses:
            nothing = (
                f"nothing was compared: no request has a whole response both in {self._path} and"
                " now; record a conversation in which the server answers"
            )
            self._stderr.write_message(f"mcp-trio: {nothing}")
        if junit is not None:
            write_junit(junit, self._junit(report, found, nothing))
        return NOTHING_JUDGED if nothing else _DIFFERENT if is_different else 0

    def _junit(self, report: CheckReport, found: TraceDiff, error: str) -> str:
        """Return a JUnit report with a test for each difference and each broken row."""
        totals = self._totals
        faults = [
            (f"{each.what} is as recorded", f"{each.kind}, {_lines_of(each)}{_values_of(each)}")
            for each in found.differences
        ]
        if totals.unanswered:
            text = f"{totals.unanswered} of {totals.sent} messages have no response"
            faults.append(("every request is answered", "; ".join([text, *totals.problems[:1]])))
        faults += [
            (row_name(each.row), each.sentence) for each in report.findings if each.is_certain
        ]
        cases = [junit_case(name, f"<failure message={attribute(text)}/>") for name, text in faults]
        if found.responses and not found.count:
            cases.append(junit_case(f"{found.responses} responses are as recorded"))
        name = f"mcp-trio replay {self._path}"
        return junit_suite(
            name, "".join(cases), len(cases), len(faults), error, wanted="responses were compared"
        )

    def _known_findings(self) -> frozenset[tuple[str, str, str]]:
        """Return the findings of the trace that is played: the server had them already."""
        report = CheckReport(self._path, frozenset(), "server", "should")
        fill_report(self._path, report)
        return frozenset((each.row, each.side, each.sentence) for each in report.findings)

    def _warn(self) -> None:
        calls = sum(
            message.sender == "client" and message.method == _CALL
            for session in self._trace.sessions
            for message in session.messages
        )
        if calls:
            self._stderr.write_line(
                (f"mcp-trio: replay calls tools again, with all that they do: {calls} calls", "dim")
            )

    def _expects_responses(self) -> bool:
        return any(
            message.sender == "server" and message.kind == "response"
            for session in self._trace.sessions
            for message in session.messages
        )

    def _document(self, report: CheckReport, differences: dict[str, Any]) -> dict[str, Any]:
        return {
            "trace": self._path,
            "sent": self._totals.sent,
            "answered": self._totals.answered,
            "unanswered": self._totals.unanswered,
            "problems": self._totals.problems,
            "findings": report.document()["findings"],
            **differences,
        }

    # -- Playing -----------------------------------------------------------------------------------

    async def _play(self) -> int:
        from mcp_trio.recording._open import open_recorder

        target = self._target
        carrier = "http" if isinstance(target.server, str) else "stdio"
        scope = trio.CancelScope()
        with stop_on_signals(scope.cancel) as signal:
            opened = open_recorder(
                self._recording, "client", carrier, target.shown_words, secrets=target.known_secrets
            )
            async with opened as recorder:
                assert recorder is not None
                with scope:
                    for session in self._trace.sessions:
                        await self._play_session(session, recorder)
        return signal.exit_code

    async def _play_session(self, session: RecordedSession, recorder: Recorder) -> None:
        client = ReplayClient(session, response_timeout=self._response_timeout)
        if client.hidden:
            lines = ", ".join(map(str, client.hidden))
            text = f"mcp-trio: redacted values are sent as they are in the trace: line {lines};"
            self._stderr.write_line((f"{text} --record-secrets records all values", "yellow"))
        try:
            server = self._target.server
            if isinstance(server, str):
                await self._play_http(client, session, server, recorder)
            else:
                await self._play_stdio(client, server, recorder)
        except ConnectFailed as exc:
            cause, _, _ = str(exc).partition("\n")
            raise CliError(f"no conversation: {cause}", NO_CONNECTION) from exc
        finally:
            self._totals.add(client)

    async def _play_stdio(
        self, client: ReplayClient, command: tuple[str, ...], recorder: Recorder
    ) -> None:
        from mcp_trio.oracle.replay._stream import play_on_stream
        from mcp_trio.recording._stream import RecordedStream
        from mcp_trio.streams._child import spawn

        quoted = partial(self._stderr.write_quoted, indent="", style="dim")
        async with spawn(
            command,
            env=dict(self._target.env),
            inherit_env=self._target.inherit_env,
            cwd=self._target.cwd,
            stderr=quoted if self._stderr.terminal else "forward",
            recorder=recorder.child(self._target.shown_words),
        ) as child:
            await play_on_stream(client, RecordedStream(child.stream, recorder.stream()))
            await child.stream.send_stream.aclose()

    async def _play_http(
        self, client: ReplayClient, session: RecordedSession, url: str, recorder: Recorder
    ) -> None:
        from mcp_trio.http_client._connector import Connector
        from mcp_trio.oracle.replay._http_client import play_over_http

        try:
            parsed = Url.parse(url)
        except ValueError as exc:
            raise CliError(f"{url} is not the URL of a server: {exc}") from exc
        is_http = self._trace.header.transport == "http"
        await play_over_http(
            client,
            parsed,
            Connector(parsed.scheme, parsed.host, parsed.port),
            recorder,
            headers=dict(self._target.headers),
            opens_stream=session.has_handshake and (session.has_stream or not is_http),
        )


def _lines_of(difference: TraceDifference) -> str:
    """Return where a difference is in the trace and now."""
    old, new = difference.old_line, difference.new_line
    parts = [f"line {old} of the trace" if old else "", f"line {new} now" if new else ""]
    return ", ".join(filter(None, parts))


def _values_of(difference: TraceDifference) -> str:
    """Return the first changed value of a difference, as text to append; "" if there is none."""
    if not difference.values:
        return ""
    first, count = difference.values[0], difference.value_count
    more = f" and {count - 1} more" if count > 1 else ""
    return f": {first.pointer}{more}"
