"""A run of the fuzzer against one client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mcp_core.trace import ROWS
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign
from mcp_trio.oracle.fuzz.campaign._examination import Examiner

from ._client_play import HANG, ClientPlayer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_trio.oracle.fuzz._call_times import CallTimes
    from mcp_trio.oracle.fuzz._case import Case, Outcome
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz.campaign._campaign import CampaignOptions
    from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding, HeldFinding

    from ._source import ScriptSource

__all__ = ["ClientCampaign"]


class ClientExaminer(Examiner):
    """An examiner of the faults of a client. See `Examiner`."""

    def _few_steps(self, fault: TargetFault, case: Case) -> list[Case]:
        return []  # its steps say what the server does, and no single one is a conversation

    def _newest(self) -> str:
        return ""

    def _with_waits(self, case: Case) -> Case:
        return case  # the client decides when it sends


class ClientCampaign(Campaign):
    """A run against one client. See `Campaign`.

    Args:
        target: the client, a `ClientTarget`.
        source: draws cases; None for stored cases only.
        choices: what they are drawn from, `ScriptChoices`.
        options: how long the run goes on.
        echo: measures how slow the machine is.
        on_finding: gets each finding that was confirmed.
    """

    side: Literal["client", "server"] = "client"
    find_faults = "find_client_faults"
    known_habits = ()  # the table is of servers

    def __init__(
        self,
        target: Any,
        source: ScriptSource | None,
        choices: Any,
        options: CampaignOptions,
        *,
        echo: Echo | None = None,
        on_finding: Callable[[FuzzFinding], object] = lambda finding: None,
    ) -> None:
        self._judges_hangs = choices.offers.ends
        super().__init__(target, source, choices, options, echo=echo, on_finding=on_finding)
        if not choices.offers.ends:
            self._add_note(
                "the client does not end when the connection to a correct server ends, so hangs"
                " are not judged"
            )

    def _new_player(
        self,
        timeout: float,
        *,
        probes: bool = True,
        wanted: tuple[str, str] | None = None,
        call_times: CallTimes | None = None,
    ) -> ClientPlayer:
        return ClientPlayer(
            timeout,
            echo=self._echo,
            wanted=wanted,
            judges_hangs=self._judges_hangs,
            on_note=self._add_note,
        )

    def _known_tools(self) -> set[str]:
        return set()  # its causes are steps of the server

    def _new_examiner(self) -> Examiner:
        return ClientExaminer(self._plays, self._choices, budget=self._budget)

    def _watch_starts(self, session: Any, case: Case, outcome: Outcome) -> None:
        # Nothing is sent before the first request of the client.
        if session.server.requests:
            self._failed_starts = 0
        else:
            self._add_failed_start()

    def _add_finding(self, held: HeldFinding) -> None:
        super()._add_finding(held)
        if held.finding.fault.row == HANG:  # each further one would take long
            self._judges_hangs = False

    async def run(self, stored: Iterable[Case] = ()) -> None:
        """Play `stored` cases, and then drawn ones until the limits are reached."""
        try:
            await super().run(stored)
        finally:
            for row in [each for each in self.opportunities if not _is_of_clients(each)]:
                del self.opportunities[row]

    def rows_seen(self) -> int:
        """Return how many rows of clients had an opportunity."""
        return sum(_is_of_clients(row) for row, count in self.opportunities.items() if count)


def _is_of_clients(row: str) -> bool:
    return row not in ROWS or ROWS[row].role != "server"
