"""The output of a run: the target, progress, findings and the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_core import escape_text
from mcp_trio.oracle._junit import row_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.cli._screen import Screen
    from mcp_trio.oracle.fuzz._probe import Offers
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign
    from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
    from mcp_trio.oracle.fuzz.habits._watch import ShownHabit

    from ._options import FuzzOptions

__all__ = ["NO_TOOLS", "Display", "show_summary", "show_target", "show_unseen_rows"]

_LINE_INTERVAL: Final = 10.0  # seconds between two lines of progress without a terminal
_MAX_NAMES: Final = 20
NO_TOOLS: Final = "0 of {} tools were allowed: --allow-tool NAME or --allow-all"


def show_target(stderr: Screen, offers: Offers, tools: Sequence[str], options: FuzzOptions) -> None:
    others = len(offers.tools) - len(tools)
    stderr.write_line(
        f"{offers.name or 'a server without a name'}, {', '.join(offers.revisions)}; seed"
        f" {options.seed}"
    )
    if offers.tools and not tools:
        stderr.write_line(NO_TOOLS.format(len(offers.tools)))
    elif tools:
        shown = ", ".join(tools[:_MAX_NAMES]) + (", ..." if len(tools) > _MAX_NAMES else "")
        stderr.write_line(f"tools that are called: {shown}")
    if tools and others:
        stderr.write_line(
            f"{others} of {len(offers.tools)} tools are not called: --allow-tool NAME or"
            " --allow-all"
        )


class Display:
    """The progress of a run: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, stderr: Screen, stdout: Screen, *, as_json: bool) -> None:
        self._stderr = stderr
        self._stdout = stdout
        self._as_json = as_json

    def show_finding(self, finding: FuzzFinding) -> None:
        """Print a finding. It is printed again if another case shows it more often."""
        if self._as_json:
            return
        fault = finding.fault
        style = "bold red" if finding.is_failure else "yellow"
        solid = "solid" if finding.is_solid else "flaky"
        smaller = ""
        if len(finding.case) < finding.steps_before:
            smaller = f", {finding.steps_before} steps -> {len(finding.case)}"
        if finding.cause is not None and finding.cause == finding.cause.anywhere:
            smaller += ", with any method"
        self._stdout.write_line(
            (f"{finding.number:>2}  ", ""),
            (f"{fault.level} {fault.row}", style),
            f"  {escape_text(fault.sentence)}  {solid} {finding.hits}/{finding.plays}{smaller}",
        )
        if fault.link:
            self._stdout.write_line(("    " + fault.link, "dim"))

    def show_habit(self, shown: ShownHabit) -> None:
        """Print a habit of the server's SDK."""
        if not self._as_json:
            self._stdout.write_line(
                (" -  ", ""),
                (f"habit {shown.habit.row}", "dim"),
                f"  {escape_text(shown.sentence)}",
            )

    async def run(self, campaign: Campaign) -> None:
        """Show progress until cancelled."""
        if not self._stderr.terminal:
            while True:
                await trio.sleep(_LINE_INTERVAL)
                self._stderr.write_line(_progress_text(campaign))
        from rich.live import Live
        from rich.text import Text

        with Live(console=self._stderr.console, transient=True, auto_refresh=False) as live:
            while True:
                live.update(Text(_progress_text(campaign)), refresh=True)
                await trio.sleep(0.25)


def _progress_text(campaign: Campaign) -> str:
    seconds, drawing = campaign.seconds, campaign.drawing_seconds
    rate = campaign.cases / drawing if drawing > 0.5 else 0.0
    examined = escape_text(campaign.activity)
    if campaign.is_drawn:
        left = "" if campaign.left is None else f", at most {campaign.left:.0f} s more"
        examined = f"drawing is over{left}: {examined}" if examined else "drawing is over"
    return (
        f"{int(seconds) // 60}:{int(seconds) % 60:02}  {campaign.cases:,} cases  {rate:,.0f}/s"
        f"  {campaign.rows_seen()} rows judged, {len(campaign.findings)} findings"
        + (f"  {examined}" if examined else "")
    )


def show_summary(
    stdout: Screen,
    stderr: Screen,
    campaign: Campaign,
    options: FuzzOptions,
    names: Sequence[str],
) -> None:
    for note in campaign.notes:
        stderr.write_line(("note: ", "yellow"), escape_text(note))
    for name, count in campaign.unconfirmed.most_common():
        times = f" ({count} times)" if count > 1 else ""
        stderr.write_line(
            f"unconfirmed: {escape_text(name)}{times}: seen in a case, and in no further play of"
            f" it: {campaign.missing[name]}"
        )
    for entry, count in campaign.found.ignored.items():
        if not count:
            text = (
                f"no finding is ignored by {escape_text(str(entry))}: remove it, unless other seeds"
                " need it"
            )
            stderr.write_line(("note: ", "yellow"), text)
    if campaign.repaired:
        stdout.write_line(f"cases of the last run that show no fault any more: {campaign.repaired}")
    judged = campaign.rows_seen()
    count = len(campaign.findings)
    advice = sum(not each.is_failure for each in campaign.findings)
    seen = len(campaign.unconfirmed)
    unconfirmed = f", {seen} unconfirmed" if seen else ""
    unconfirmed += _accepted_text(campaign)
    drawing, whole = round(campaign.drawing_seconds), round(campaign.seconds)
    more = f" (and {whole - drawing} s of examining)" if whole > drawing else ""
    stdout.write_line(
        f"{campaign.cases:,} cases in {drawing} s{more}, {_starts_text(campaign)}"
        f"{campaign.messages:,} messages: {count - advice} findings, {advice} to look"
        f" at{unconfirmed}; {judged} rows judged; seed"
        f" {options.seed}"
    )
    if campaign.habits:
        stdout.write_line(
            f"{len(campaign.habits)} of the SDK, {count} of yours; only --strict fails for the"
            " SDK's"
        )
    if count:
        stdout.write_line(f"in {options.output}: {', '.join(names)}")
    if campaign.unjudged and not campaign.broken:
        stderr.write_message(f"mcp-trio: nothing was judged: {campaign.unjudged}")


def _starts_text(campaign: Campaign) -> str:
    """Return how many processes were started for 100 cases, if the server is a command."""
    if campaign.side == "client" or campaign.target.kind == "http" or not campaign.cases:
        return ""
    return f"{100 * campaign.starts / campaign.cases:.1f} starts per 100 cases, "


def _accepted_text(campaign: Campaign) -> str:
    """Return how many causes of the baseline were seen, and how many ignored rows."""
    found = campaign.found
    known = sum(map(bool, (*found.known.values(), *found.known_methods.values())))
    ignored = sum(map(bool, found.ignored.values()))
    return "".join(
        f", {count} {word}" for count, word in ((known, "known"), (ignored, "ignored")) if count
    )


def show_unseen_rows(stdout: Screen, campaign: Campaign, offers: Offers) -> None:
    """Print the rows that had no opportunity, and why."""
    from mcp_trio.oracle.fuzz.campaign._unseen_rows import (
        counted_reasons,
        judged_side_rows,
        rows_of_run,
    )

    rows = rows_of_run(campaign, offers)
    for each in rows:
        stdout.write_line(
            (f"{each.reason:<12} ", "dim"),
            f"{each.row.level:<10} {row_name(each.row.id)}: {each.why}",
        )
    stdout.write_line(
        f"{len(rows)} of {len(judged_side_rows(campaign.side))} rows about a {campaign.side} had no"
        f" opportunity: {counted_reasons(rows)}"
    )
