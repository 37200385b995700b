"""The revisions and capabilities that the judge knows, after each message that shows some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace.judge._revisions import MODERN, STATEFUL
from mcp_core.trace.judge.conversation import _negotiation
from mcp_core.trace.judge.conversation._negotiation import Negotiation, revisions_of_initialize
from tests.core.trace.judge.conversations import META, ask, error, result
from tests.core.trace.judge.seen import message_of, request_of, response_of

if TYPE_CHECKING:
    from collections.abc import Iterable


OLD, NEW = "2025-06-18", "2026-07-28"
ALL = STATEFUL + MODERN


def negotiation_after(*steps: str) -> Negotiation:
    """Return one: a handshake is `begun` or `answered`, or a new request `sent` or `served`."""
    made = Negotiation(set())
    for step in steps:
        if step == "begun":
            made.receive_initialize(request_of(ask(1, "initialize"), 2))
        elif step == "answered":
            made.selected, made.handshake_answered = OLD, 3
        elif step == "sent":
            made.receive_modern_request(message_of(ask(2, "x"), revisions=(NEW,)), is_untimed=False)
        elif step == "served":
            made.has_served_modern = True
    return made


def test_nothing_is_known_at_first() -> None:
    made = Negotiation(set())
    assert (made.selected, made.modern, made.is_modern, made.initialize) == ("", (), False, None)
    assert (made.has_served_modern, made.has_client_message, made.opened_otherwise) == (False,) * 3
    assert (made.handshake_answered, made.initialized, made.answered_version) == (0, 0, None)
    assert made.client_capabilities is made.server_capabilities is made.discovered is None
    assert (made.probe_error, made.rejected) == (None, {})


@pytest.mark.parametrize(
    ("steps", "of_client", "of_server"),
    [
        ([], ALL, ALL),
        (["begun"], STATEFUL, STATEFUL),
        (["begun", "answered"], (OLD,), (OLD,)),
        (["sent"], (NEW,), (*STATEFUL, NEW)),
        (["sent", "served"], (NEW,), (NEW,)),
        (["sent", "begun"], STATEFUL, STATEFUL),
        (["sent", "served", "begun"], STATEFUL, (*STATEFUL, NEW)),
        (["begun", "answered", "sent"], (OLD,), (OLD,)),
        (["begun", "answered", "sent", "served"], (OLD,), (OLD, NEW)),
        (["answered"], (OLD,), (OLD,)),
        (["answered", "sent"], (OLD, NEW), (*STATEFUL, NEW)),
        (["answered", "sent", "served"], (OLD, NEW), (OLD, NEW)),
    ],
)
def test_revisions_of_a_message_follow_from_those_before(
    steps: Iterable[str], of_client: Any, of_server: Any
) -> None:
    made = negotiation_after(*steps)
    assert (made.candidates("client"), made.candidates("server")) == (of_client, of_server)


@pytest.mark.parametrize(
    ("versions", "opened_otherwise", "response", "expected"),
    [
        (set(), False, None, False),
        ({NEW}, False, None, True),
        ({OLD}, False, None, False),
        ({OLD, NEW}, True, None, False),
        (set(), True, error(1, -32022), True),
        (set(), True, error(1, -32601), False),
        (set(), True, result(1), False),
        (set(), True, result(1, resultType="complete"), True),
        (set(), True, result(1, resultType=None), False),
    ],
)
def test_server_certainly_speaks_the_new_revision(
    versions: set[str], response: Any, *, opened_otherwise: bool, expected: bool
) -> None:
    made = Negotiation(versions)
    made.open(is_modern=not opened_otherwise)
    assert made.has_client_message
    answer = None if response is None else response_of(response, request_of(ask(1, "x")), 2)
    assert made.answers_modern(answer) is expected
    made.has_served_modern = True
    assert made.answers_modern(answer)


@pytest.mark.parametrize(
    ("method", "expected"), [("server/discover", True), ("tools/list", False), ("", False)]
)
def test_result_of_a_method_of_the_new_revision_is_proof(method: str, *, expected: bool) -> None:
    made = Negotiation(set())
    assert not made.opened_otherwise
    request = request_of(ask(1, method)) if method else None
    assert made.answers_modern(message_of(result(1), request=request)) is expected
    failed = message_of(error(1), request=request)
    assert made.answers_modern(failed) is False


# -- Capabilities ----------------------------------------------------------------------------------


def handshake(asked: Any, answered: Any, *, revision: str = OLD) -> Negotiation:
    made = Negotiation(set())
    request = request_of(ask(1, "initialize", **asked), 2)
    made.receive_initialize(request)
    answer = response_of(result(1, **answered), request, 3, revisions=(revision,))
    made.receive_result(answer, request, answered)
    return made


@pytest.mark.parametrize(
    ("found", "expected"), [({"a": {}}, {"a": {}}), ({}, {}), (None, None), ([1], None)]
)
def test_capabilities_of_a_handshake_are_those_that_were_declared(
    found: Any, expected: Any
) -> None:
    asked = {"capabilities": found} if found is not None else {}
    for made, own, other in (
        (handshake(asked, {"capabilities": {"o": {}}}), "client", "server"),
        (handshake({"capabilities": {"o": {}}}, asked), "server", "client"),
    ):
        message = message_of(ask(2, "x"), revisions=(OLD,))
        assert made.capabilities(own, message) == expected  # type: ignore[arg-type]
        assert made.capabilities(other, message) == {"o": {}}  # type: ignore[arg-type]
        unknown = message_of(ask(2, "x"), revisions=(OLD, NEW))
        assert made.capabilities(other, unknown) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("found", "expected"), [({"a": {}}, {"a": {}}), (None, None), ([1], None)])
def test_capabilities_without_a_handshake_are_those_of_the_request_and_of_discovery(
    found: Any, expected: Any
) -> None:
    made = Negotiation(set())
    asked = ask(1, "x", _meta={META + "clientCapabilities": found})
    message = message_of(asked, 1, "client", revisions=(NEW,))
    request = request_of(asked, 1, revisions=(NEW,))
    answer = response_of(result(1), request, 2, revisions=(NEW,))
    assert made.capabilities("client", message) == made.capabilities("client", answer) == expected
    assert made.capabilities("server", answer) is None
    discovery = request_of(ask(2, "server/discover"), 3, revisions=(NEW,))
    offered = {"capabilities": found}
    made.receive_result(response_of(result(2, **offered), discovery, 4), discovery, offered)
    assert made.capabilities("server", answer) == expected


@pytest.mark.parametrize(
    ("time", "is_untimed", "is_kept"), [(60.4, False, True), (60.5, False, False), (1, True, False)]
)
def test_discovered_capabilities_hold_for_a_minute_over_http(
    time: float, *, is_untimed: bool, is_kept: bool
) -> None:
    made = Negotiation(set())
    discovery = request_of(ask(2, "server/discover"), 3, revisions=(NEW,))
    answer = response_of(result(2), discovery, 4, revisions=(NEW,), exchange=1)
    made.receive_result(answer, discovery, {"capabilities": {}})
    following = message_of(ask(3, "x"), 5, "client", revisions=(NEW,), time=time)
    made.receive_modern_request(following, is_untimed=is_untimed)
    assert (made.discovered is not None) is is_kept
    assert made.modern == (NEW,)
    made.receive_modern_request(message_of(ask(3, "x"), revisions=()), is_untimed=False)
    assert made.modern == (NEW,)


# -- Handshakes and versions -----------------------------------------------------------------------


def test_handshake_is_the_last_before_its_answer() -> None:
    """A later request for one, and a later answer, change nothing."""
    made = Negotiation(set())
    first, second, third = (request_of(ask(n, "initialize"), n) for n in (1, 2, 3))
    made.receive_initialize(first)
    made.receive_initialize(second)
    assert made.initialize is second
    offered = {"protocolVersion": OLD, "capabilities": {"a": {}}}
    made.receive_result(response_of(result(2), second, 4, revisions=(OLD,)), second, offered)
    made.receive_initialize(third)
    assert made.initialize is second
    other = {"protocolVersion": "2024-11-05", "capabilities": {"b": {}}}
    answer = response_of(result(3), third, 5, revisions=("2024-11-05",))
    made.receive_result(answer, third, other)
    assert (made.handshake_answered, made.selected, made.answered_version) == (4, OLD, OLD)
    assert made.server_capabilities == {"a": {}}
    assert made.server_versions == {OLD}


@pytest.mark.parametrize(
    ("versions", "known"),
    [([OLD, NEW], {OLD, NEW}), (["9", OLD, 1, None, [OLD]], {OLD}), ("2025-06-18", set())],
)
def test_versions_of_a_discovery_are_the_server_s(versions: Any, known: set[str]) -> None:
    made = Negotiation(set())
    discovery = request_of(ask(2, "server/discover"), 3)
    failed = response_of(error(2), discovery, 4)
    made.receive_error(failed, discovery)
    errors = [made.probe_error]
    offered = {"supportedVersions": versions}
    made.receive_result(response_of(result(2), discovery, 5), discovery, offered)
    assert made.discovered == offered
    assert [*errors, made.probe_error] == [failed, None]
    assert made.server_versions == known
    assert (made.handshake_answered, made.selected) == (0, "")


def rejection(code: int, supported: Any) -> Any:
    return {**error(1), "error": {"code": code, "data": {"supported": supported}}}


@pytest.mark.parametrize(
    ("code", "supported", "version", "is_rejected"),
    [
        (-32022, [OLD], "9", True),
        (-32022, [], "9", True),
        (-32022, "x", "9", False),
        (-32022, None, "9", False),
        (-32021, [OLD], "9", False),
        (-32022, [OLD], 9, False),
    ],
)
def test_version_is_rejected_until_it_is_served(
    code: int, supported: Any, version: Any, *, is_rejected: bool
) -> None:
    """The first error's line and time are kept, and what the last one supports."""
    made = Negotiation(set())
    request = request_of(ask(1, "x", _meta={META + "protocolVersion": version}), 3)
    for line, more in ((4, ["first"]), (5, supported)):
        value = more if isinstance(supported, list) else supported
        made.receive_error(response_of(rejection(code, value), request, line), request)
    expected = {"9": (4, 0.4, supported)} if is_rejected else {}
    assert made.rejected == expected
    assert made.probe_error is None
    made.receive_served_version(request_of(ask(1, "x", _meta={META + "protocolVersion": "8"})))
    made.receive_served_version(request_of(ask(1, "x", _meta={META + "protocolVersion": ["9"]})))
    assert made.rejected == expected
    made.receive_served_version(request_of(ask(1, "x", _meta={META + "protocolVersion": "9"})))
    assert made.rejected == {}


def test_rejected_versions_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_negotiation, "_MAX_REJECTED", 2)
    made = Negotiation(set())
    for version in ("7", "8", "9"):
        request = request_of(ask(1, "x", _meta={META + "protocolVersion": version}), 3)
        made.receive_error(response_of(rejection(-32022, [OLD]), request, 4), request)
    assert list(made.rejected) == ["7", "8"]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"protocolVersion": OLD}, (OLD,)),
        ({"protocolVersion": NEW}, STATEFUL),
        ({"protocolVersion": "9"}, STATEFUL),
        ({"protocolVersion": None}, STATEFUL),
        ({}, STATEFUL),
        (None, STATEFUL),
    ],
)
def test_handshake_is_of_its_version_if_that_is_known(members: Any, expected: Any) -> None:
    assert revisions_of_initialize(members) == expected
