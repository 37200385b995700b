"""The faults that the server broken on purpose can have, as a table.

A name is given with `--fault`. A fault shows in the revisions and on the transports of its entry;
elsewhere the server is correct.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from tests.fuzz_targets.catalog import REVISIONS, span

__all__ = ["FAULTS", "Fault"]

Sight = Literal["judge", "probe"]


class Fault(NamedTuple):
    """One fault.

    Attributes:
        sentence: what the server does wrong.
        rows: the rows of `mcp_core.trace.ROWS` that it breaks, the first one most clearly.
        revisions: those in which it shows.
        transports: those on which it shows.
        sight: "judge" if the recorded messages alone prove it. "probe" if it takes a client that
            knows what it did: a hang, a crash, or a request that must be rejected.
        within: cases within which a fuzzer should find it in 9 of 10 seeds; 0 if it cannot, with
            one identity, or only by chance.
    """

    sentence: str
    rows: tuple[str, ...]
    revisions: tuple[str, ...] = REVISIONS
    transports: tuple[str, ...] = ("stdio", "http")
    sight: Sight = "judge"
    within: int = 300


FAULTS: Final[dict[str, Fault]] = {
    "double-response": Fault("Requests for lists have two responses.", ("RPC-7",), within=50),
    "id-as-number": Fault("A string id is repeated as a number.", ("RPC-7",), within=50),
    "silent-on-array-params": Fault(
        "A request whose params are not an object has no response; over HTTP it has only a status.",
        ("RPC-17", "HTTP-8"),
        sight="probe",
        within=100,
    ),
    "silent-on-null-params": Fault(
        "A request whose params are null has no response.",
        ("RPC-17",),
        transports=("stdio",),
        sight="probe",
        within=1_000,
    ),
    "silent-on-other-members": Fault(
        "A request with a member that requests don't have has no response.",
        ("RPC-17",),
        transports=("stdio",),
        sight="probe",
        within=0,
    ),
    "silent-on-wrong-meta": Fault(
        "A request whose `_meta` isn't an object has no response.",
        ("RPC-17",),
        transports=("stdio",),
        sight="probe",
        within=0,
    ),
    "silent-on-batches": Fault(
        "The requests of a batch have no responses.",
        ("RPC-35",),
        revisions=("2025-03-26",),
        transports=("stdio",),
        sight="probe",
        within=0,
    ),
    "logs-undeclared": Fault(
        "Requests whose params are not an object are logged to the client, undeclared.",
        ("LOG-1",),
        revisions=span("2024-11-05", "2026-07-28"),
        transports=("stdio",),
    ),
    "long-error-messages": Fault(
        "The message of each error is JSON in several lines.", ("RPC-12",), within=100
    ),
    "prompt-code": Fault("The error of an unknown prompt has the code 0.", ("PRM-4",), within=200),
    "resource-code": Fault(
        "There is no template, and the error of an unknown resource has the code 0.",
        ("RES-7",),
        revisions=span("2024-11-05", "2026-07-28"),
        within=200,
    ),
    "answers-notifications": Fault(
        "A notification has an error response without an id; over HTTP it has the status 200.",
        ("RPC-14", "HTTP-9"),
        revisions=span("2025-03-26"),
        within=50,
    ),
    "dies-on-bad-utf8": Fault(
        "The process ends when a message is not UTF-8.", ("STDIO-6",), sight="probe"
    ),
    "serves-before-initialize": Fault(
        "Requests before initialize have results.",
        ("LIFE-10",),
        revisions=span("2024-11-05", "2026-07-28"),
        sight="probe",
        within=100,
    ),
    "picks-other-version": Fault(
        "The response to initialize names 2025-03-26 in place of the requested revision, and "
        "2025-11-25 in place of 2025-03-26, although both are served.",
        ("LIFE-4",),
        revisions=span("2024-11-05", "2026-07-28"),
        within=200,
    ),
    "progress-goes-back": Fault(
        "Progress decreases, and goes on after the response.", ("PROG-4", "PROG-5"), within=500
    ),
    "cancel-mixes-ids": Fault(
        "A cancellation stops another open request, and the cancelled one has its response.",
        ("CXL-7", "CXL-6"),
        transports=("stdio",),
        within=1_000,
    ),
    "asks-undeclared": Fault(
        "The tool `ask` asks for input that the client did not declare.",
        ("CAP-3", "LIFE-13", "LIFE-15", "MRTR-5"),
    ),
    "repeats-cursor": Fault("Every page of tools/list has the same nextCursor.", ("PAGE-1",)),
    "circle-of-cursors": Fault(
        "The last page of tools/list leads back to an earlier one.", ("PAGE-1",)
    ),
    "tool-on-two-pages": Fault(
        "The last page of tools/list has a tool of the first one, too.",
        ("TOOL-19",),
        revisions=span("2025-11-25"),
    ),
    "serves-other-version": Fault(
        "A request that names a version which doesn't exist is served.",
        ("VER-1",),
        revisions=span("2026-07-28"),
    ),
    "serves-wrong-arguments": Fault(
        "The arguments of tools are not compared with their schemas.",
        ("TOOL-24",),
        within=500,
    ),
    "serves-unknown-methods": Fault(
        "A method that doesn't exist has a result.",
        ("ERR-1",),
        sight="probe",
        within=1_000,
    ),
    "ignores-end-of-input": Fault(
        "The process goes on after the end of its input.",
        ("STDIO-11",),
        revisions=span("2026-07-28"),
        transports=("stdio",),
        sight="probe",
        within=500,
    ),
    "tool-stops": Fault(
        "The tool `echo` answers its first three calls only.",
        ("RPC-35",),
        transports=("stdio",),
        sight="probe",
        within=500,
    ),
    "unknown-tool-method-not-found": Fault(
        "An unknown tool has the error -32601.", ("TOOL-17",), within=200
    ),
    "wrong-structured-content": Fault(
        "The structuredContent of `add` does not match its outputSchema.",
        ("TOOL-10",),
        revisions=span("2025-06-18"),
    ),
    "late-acknowledgement": Fault(
        "A subscription gets a change before its acknowledgement.",
        ("SUB-3",),
        revisions=span("2026-07-28"),
        within=1_000,
    ),
    "accepts-altered-state": Fault(
        "A requestState that was altered is accepted.",
        ("MRTR-13",),
        revisions=span("2026-07-28"),
        sight="probe",
        within=500,
    ),
    "no-result-type": Fault(
        "Results have no resultType.", ("RPC-30", "META-8"), revisions=span("2026-07-28"), within=50
    ),
    "changed-by-notification": Fault(
        "After a notification without `_meta`, results have no resultType.",
        ("RPC-30", "META-8"),
        revisions=span("2026-07-28"),
        transports=("stdio",),
        within=100,
    ),
    "ignores-mcp-name": Fault(
        "The header Mcp-Name is not compared with the body.",
        ("HDR-3",),
        revisions=span("2026-07-28"),
        transports=("http",),
        within=200,
    ),
    "ignores-mcp-param": Fault(
        "Headers that repeat arguments of tools are not compared with the body.",
        ("HDR-10", "HDR-11"),
        revisions=span("2026-07-28"),
        transports=("http",),
    ),
    "serves-foreign-origin": Fault(
        "A request with a foreign Origin is served.",
        ("HTTP-1", "HTTP-2"),
        transports=("http",),
        sight="probe",
        within=100,
    ),
    "accepts-unknown-session": Fault(
        "A session that is unknown, was ended or is of another owner is served.",
        ("SHL-24", "SHL-27"),
        revisions=span("2025-03-26", "2026-07-28"),
        transports=("http",),
    ),
    "hangs-on-half-bodies": Fault(
        "While half of three bodies was sent no request is served; each call leaks 100 KB.",
        ("RPC-35",),
        transports=("http",),
        sight="probe",
        within=2_000,
    ),
    "task-key-reused": Fault(
        "A task asks for a second input under the key that was answered.",
        ("TX-12",),
        revisions=span("2026-07-28"),
        within=1_000,
    ),
    "cancelled-task-completes": Fault(
        "A cancelled task becomes completed.",
        ("TSK-21", "TSK-11", "TX-10"),
        revisions=span("2025-11-25"),
        within=1_000,
    ),
    "result-on-failed-task": Fault(
        "A task that failed has a result beside its error.",
        ("TX-11", "TX-10"),
        revisions=span("2026-07-28"),
    ),
    "tool-error-fails-task": Fault(
        "A task whose tool returned isError is failed, with the result in place of an error.",
        ("TX-11", "TX-10"),
        revisions=span("2026-07-28"),
    ),
    "lists-tasks": Fault("tasks/list is served.", ("TX-22",), revisions=span("2026-07-28")),
    "guessable-task-ids": Fault(
        "Task ids are counted up from 1.", ("TX-23", "TSK-24"), revisions=span("2025-11-25")
    ),
    "task-without-ttl": Fault(
        "Tasks have no ttl, whatever was requested.",
        ("TSK-12", "TSK-7", "TX-9"),
        revisions=span("2025-11-25"),
    ),
    "serves-other-owner": Fault(
        "A task is served to another owner than the one who created it.",
        ("TSK-24", "TX-23"),
        revisions=span("2025-11-25"),
        transports=("http",),
        sight="probe",
        within=0,
    ),
}
