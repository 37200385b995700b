"""The fuzzer of clients finds each fault of a broken client, and none in the correct one."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL, ConnectFailed
from mcp_trio.cli import main
from mcp_trio.oracle.fuzz.campaign._campaign import CampaignOptions
from mcp_trio.oracle.fuzz.client._client_campaign import ClientCampaign
from mcp_trio.oracle.fuzz.client._client_target import ClientTarget
from mcp_trio.oracle.fuzz.client._source import ScriptChoices, ScriptSource, probe_client
from mcp_trio.testing import find_client_faults
from tests.fuzz_targets.broken_client import FAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENT = Path(__file__).with_name("broken_client.py")
WAYS = {"pipes": [], "relay": ["--server", "{server}"], "http": ["--url", "{url}"]}
FIRST_CASES = 350  # more than one for each kind of step
# A step that shows a fault which a correct server does not show.
SHOWN_BY: dict[str, tuple[Any, ...]] = {
    "answers-undeclared": ("push", "sampling", 1, 0),
    "ignores-ping": ("push", "ping", 1, 0),
    "hangs-on-error": ("answer", "error", 1, 0),
    "answers-twice": ("push", "ping", 1, 0),
    "id-as-text": ("push", "ping", 1, 0),
    "aborts-on-junk": ("push", "junk", 1, 0),
    "wrong-roots": ("push", "roots", 1, 0),
    "invents-cursor": ("answer", "page", 1, 0),
    "answers-notifications": ("push", "notification", 1, 0),
    "changes-retry": ("answer", "input", 2, 0),
    "takes-any-version": ("answer", "revision", 0, 0),
    "insists-on-version": ("always", "unsupported", 1, 0),
    "fills-in-undeclared": ("push", "elicitation", 1, 0),
    "ignores-undeclared": ("push", "unknown-request", 1, 0),
    "fills-in-wrongly": ("push", "elicitation", 1, 0),
    "opens-any-url": ("push", "elicitation", 1, 6),
    "uses-any-tools": ("push", "sampling", 1, 4),
    "samples-nothing": ("push", "sampling", 1, 0),
    "fills-in-a-round-wrongly": ("answer", "input", 2, 2),
    "gives-undeclared-roots": ("answer", "input", 2, 1),
    "gives-a-part": ("answer", "input", 2, 3),
    "ends-at-empty-cursor": ("always", "page", 1, 1),
    "follows-pages-for-ever": ("always", "cursor", 1, 0),
    "tries-for-ever": ("always", "input", 2, 0),
    "hangs-on-same-cursor": ("always", "cursor", 1, 1),
    "aborts-on-wrong-output": ("answer", "output", 2, 0),
    "hangs-without-output": ("answer", "output", 2, 2),
}


def command(fault: str, way: str, revision: str = ALL[1], declares: str = "some") -> list[str]:
    faults = ["--fault", fault] if fault else []
    words = [sys.executable, "-I", "-S", str(CLIENT), "--revision", revision]
    return [*words, "--declares", declares, *faults, *WAYS[way]]


def command_of(name: str, way: str) -> list[str]:
    """Return the command of a client with a fault of the table."""
    return command(name, way, FAULTS[name].revision, FAULTS[name].declares)


def case(revision: str, *steps: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [("serve", [revision], ["sum"]), *steps]


EVERY = [(name, way) for name, fault in FAULTS.items() for way in fault.ways if way != "http"]
OVER_HTTP = [(name, "http") for name, fault in FAULTS.items() if fault.ways[-1] == "http"]


@pytest.mark.parametrize(("name", "way"), [*EVERY, *OVER_HTTP])
def test_fault_is_shown_by_its_case(name: str, way: str) -> None:
    fault = FAULTS[name]
    steps = [SHOWN_BY[name]] if name in SHOWN_BY else []
    found = find_client_faults(
        command_of(name, way), case(fault.revision, *steps), response_timeout=1.0
    )
    assert set(fault.rows) & found.keys(), found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("revision", [ALL[0], ALL[1]])
def test_correct_client_has_no_fault(way: str, revision: str) -> None:
    assert find_client_faults(command("", way, revision), case(revision)) == {}


async def run(words: Sequence[str], seed: int, cases: int, **options: Any) -> ClientCampaign:
    target = ClientTarget(words)
    choices = ScriptChoices(await probe_client(target, timeout=1.0), http=target.way == "http")
    campaign = ClientCampaign(
        target,
        ScriptSource(choices, seed),
        choices,
        CampaignOptions(seconds=None, cases=cases, response_timeout=1.0, **options),
    )
    await campaign.run()
    return campaign


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found_within_its_cases(name: str) -> None:
    fault = FAULTS[name]
    words = command_of(name, fault.ways[0])
    campaign = trio.run(lambda: run(words, 1, fault.within, keep_going=False))
    assert campaign.findings[0].fault.row in fault.rows
    assert campaign.findings[0].is_solid
    assert len(campaign.findings[0].case) <= 2


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("revision", [ALL[0], ALL[1]])
@pytest.mark.parametrize("declares", ["some", "all"])
def test_correct_client_is_not_accused(way: str, revision: str, declares: str) -> None:
    campaign = trio.run(run, command("", way, revision, declares), 2, 350)
    assert [(each.fault.row, each.fault.sentence, each.case) for each in campaign.findings] == []


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", FAULTS)
def test_command_with_default_options_finds_the_fault_and_no_other(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run has another seed, as for a user. It ends with the first finding, to save time."""
    fault = FAULTS[name]
    options = ["--no-keep-going", "--json", "--output", str(tmp_path / "found")]
    status = main(["fuzz", "--client", *options, "--", *command_of(name, fault.ways[0])])
    document = json.loads(capsys.readouterr().out)
    found = [(each["row"], each["sentence"], each["steps"]) for each in document["findings"]]
    if not found and document["cases"] < FIRST_CASES:
        pytest.skip("this machine is too slow: a run of the default time did not play all kinds")
    assert found, document
    assert {row for row, _, _ in found} <= set(fault.rows), found
    assert all(len(steps) <= 2 for _, _, steps in found), found
    assert status == (0 if fault.is_advice else 1), document


@pytest.mark.parametrize("way", WAYS)
def test_cancellation_finding_of_a_client_is_confirmed(way: str) -> None:
    """Its case begins with lists, which no set and no key of a dictionary can be."""
    campaign = trio.run(run, command("cancels-unknown", way), 1, 3)
    assert {each.fault.row for each in campaign.findings} <= {"CXL-2", "CXL-3"}
    assert campaign.findings
    assert all(each.is_solid for each in campaign.findings)


def test_client_that_sends_nothing_any_more_ends_the_run(tmp_path: Path) -> None:
    """It has a conversation while it is probed, and none in the cases."""
    gate = tmp_path / "gate"
    gate.touch()
    client = shlex.join(command("", "pipes"))
    words = ["sh", "-c", f"test ! -e {shlex.quote(str(gate))} || exec {client}"]

    async def play() -> ClientCampaign:
        target = ClientTarget(words)
        choices = ScriptChoices(await probe_client(target, timeout=1.0), http=False)
        gate.unlink()
        options = CampaignOptions(seconds=None, cases=50, response_timeout=1.0)
        campaign = ClientCampaign(target, ScriptSource(choices, 1), choices, options)
        await campaign.run()
        return campaign

    campaign = trio.run(play)
    assert campaign.is_lost
    assert campaign.cases == 5
    assert campaign.messages == 0


def test_command_writes_findings_and_a_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The test that the command writes fails with the finding, without the client."""
    output = tmp_path / "found"
    words = command("reuses-id", "pipes")
    options = ["--cases", "2", "--seed", "1", "--response-timeout", "1", "--output", str(output)]
    status = main(["fuzz", "--client", *options, "--json", "--", *words])
    document = json.loads(capsys.readouterr().out)
    assert status == 1
    assert document["client"] == "broken-client 1"
    assert {each["row"] for each in document["findings"]} == {"RPC-4"}
    assert document["findings"][0]["side"] == "client"
    assert (output / "1-RPC-4.mcp.jsonl").read_bytes().startswith(b'{"mcp-trace":1')
    text = (output / "test_findings.py").read_text("utf-8")
    namespace: dict[str, Any] = {}
    exec(compile(text, "test_findings.py", "exec"), namespace)
    test = next(value for key, value in namespace.items() if key.startswith("test_1"))
    with pytest.raises(AssertionError, match="was used before"):
        test()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["acme-none"], "cannot start"),
        ([sys.executable, "-c", "print('hello')"], "sent no message"),
        ([sys.executable, "-c", "import sys; sys.exit('no server given')"], "no server given"),
    ],
)
def test_program_that_is_no_client_is_no_conversation(words: list[str], sentence: str) -> None:
    with pytest.raises(ConnectFailed, match=sentence):
        trio.run(probe_client, ClientTarget(words))


def test_command_without_a_client_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--client"]) == 2
    assert "put it after --" in capsys.readouterr().err
