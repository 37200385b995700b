"""Rows by which a mutant counts as found, beside the one that its operator breaks.

A finding of another row can be the same breach, seen in another way. A finding of any other row is
counted apart: the fuzzer has noticed the mutant, and has not named what is broken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SAME_BREACH", "same_breach"]

_NO_RESPONSE: Final = "the response has another id, so the request has none"
_SILENT: Final = "a process that does nothing any more doesn't respond"
_NO_ID: Final = "the error has no id, as for a message whose id can't be read"

# By operator, or by operator and place; then by row. The value is the reason.
SAME_BREACH: Final[Mapping[str, Mapping[str, str]]] = {
    "retype-id": {
        "RPC-35": _NO_RESPONSE,
        "hang": "the responses to the requests that every server answers have another id, too",
    },
    "hang": {"RPC-35": _SILENT},
    "client-fails/hang at an error": {"RPC-35": _SILENT},
    "client-fails/hang at a list change": {"RPC-35": _SILENT},
    "drop-response": {"hang": "further requests have no response either"},
    "drop-error": {"hang": "further requests have no response either"},
    "fail-later": {"hang": "a server that has only errors left doesn't respond any more"},
    "break-stream/another id": {"RPC-35": _NO_RESPONSE},
    "answer-notification": {"RPC-8": _NO_ID},
    "client-answers/notification": {
        "RPC-14": "an error without an id answers a notification",
        "RPC-29": "the newest revision forbids the response, as it forbids all of a client's",
    },
    "client-asks/same id": {"MRTR-10": "a retry is one of the requests with the same id"},
    "wrong-code/tasks/get -32002": {"ERR-5": "the same code, which the revision does not have"},
    "wrong-code/tools/call -32050": {"TOOL-17": "the same code, where an unknown tool was called"},
    "serve-unknown/resources/read": {"RES-7": "the same result, in a revision before the row's"},
    "break-tasks/no createdAt": {"TSK-7": "the member of a new task, in the response to the call"},
    "break-tasks/ttl as text": {"TSK-7": "the member of a new task, in the response to the call"},
    "break-tasks/status": {"TSK-11": "no status leads to one that does not exist"},
    "leak-values/streams of another one": {
        "PROG-3": "the resumed stream has the progress of the other client's call",
        "RPC-7": "the resumed stream has the response to the other client's call",
    },
    "break-cancel/answered": {
        "CXL-6": "the response to the cancelled request, where the revision advises against it",
        "CXL-7": "the response to the cancelled request, where the revision forbids it",
    },
}


def same_breach(operator: str, place: str) -> Mapping[str, str]:
    """Return the further rows of an operator's place, each with the reason."""
    return {**SAME_BREACH.get(operator, {}), **SAME_BREACH.get(f"{operator}/{place}", {})}
