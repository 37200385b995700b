"""Consent: who decides about a call, what is remembered, and what changes while a user reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_core.host import (
    ApprovalRequired,
    Approvals,
    CallDenied,
    QualifiedName,
    ServerApproval,
    ServerLaunch,
    ToolRule,
    define,
    digest_launch,
)
from mcp_core.registry import Server
from mcp_core.runtime.host import (
    CallAnswer,
    CallQuestion,
    DefinitionsQuestion,
    MemoryApprovals,
)
from mcp_core.runtime.host._consent import AllowedCall, Consent
from tests.core.host.catalog.lists import FIND, FIND_CHANGED, READ, TEXT, catalog_of, tool
from tests.core.runtime.host.world import FailingApprovals, FakeSource, opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.host.catalog._server import ServerCatalog
    from mcp_core.runtime.host import HostOptions
    from mcp_core.types import Tool

FILE = "/project/.mcp.json"
LAUNCH = ServerLaunch(transport="stdio", command="/usr/bin/notes", directory="/project")
GIVEN = {"path": "a"}
EDITED = {"path": "b"}


class HostConsent:
    """The consent of one host to the calls of one server, which has the tools read and find."""

    def __init__(
        self, *tools: Tool, needs_pins: bool = True, is_trusted: bool = False, **options: Any
    ) -> None:
        self.source = FakeSource("a", file=FILE, is_trusted=is_trusted)
        self.catalog = catalog_of("a", *(tools or (READ, FIND)), needs_pins=needs_pins)
        self.store = options.setdefault("approvals", MemoryApprovals())
        self.options = options  # a test may change them
        self.consent = Consent(cast("HostOptions", options), self._in_thread, wall_time=lambda: 7.0)

    async def _in_thread(self, function: Callable[[], Approvals]) -> Approvals:
        await trio.lowlevel.checkpoint()
        found = function()
        await self.after_thread()
        return found

    async def after_thread(self) -> None:
        """Wait until a thread that has ended is noticed."""

    async def call(self, name: str = "find") -> AllowedCall:
        return await self.consent.check_call(self.source, self.catalog, name, dict(GIVEN))

    async def denied(self, name: str = "find") -> tuple[str, str]:
        """Return the name of the error of a call that may not be made, and its reason."""
        with pytest.raises((CallDenied, ApprovalRequired)) as caught:
            await self.call(name)
        error = cast("CallDenied | ApprovalRequired", caught.value)
        assert (error.server, error.tool) == ("a", name)
        return type(error).__name__, error.reason

    async def add_rule(self, tool: str, **members: Any) -> None:
        await self.consent.add_rule(self.source, ToolRule(tool=tool, **members))

    @property
    def stored(self) -> tuple[ToolRule, ...]:
        found = self.store.load().find(FILE, "a")
        return () if found is None else found.rules


def answers(value: Any, calls: list[Any] | None = None) -> Callable[..., Any]:
    """Return a callback that returns `value`, and keeps its arguments in `calls`."""

    def callback(*args: Any) -> Any:
        if calls is not None:
            calls.append(args)
        return value

    return callback


def waits(value: Any) -> Callable[..., Any]:
    """Return a callback as `answers` does, that is an `async def`."""

    async def callback(*_: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return value

    return callback


NOT_APPROVED = ("ApprovalRequired", "the call was not approved")


# -- Without a hook --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_trusted", "name", "found"),
    [
        (True, "read", "read-only tool"),
        (True, "find", None),
        (False, "read", None),  # its annotations mean nothing
        (False, "find", None),
    ],
)
async def test_call_without_callbacks_is_allowed_for_trusted_read_only_tools(
    is_trusted: bool, name: str, found: str | None
) -> None:
    world = HostConsent(is_trusted=is_trusted)
    if found is None:
        assert await world.denied(name) == NOT_APPROVED
    else:
        assert await world.call(name) == (GIVEN, found)


async def test_calls_of_a_server_of_the_program_are_asked_about_too() -> None:
    world = HostConsent(needs_pins=False, is_trusted=True)
    assert await world.call("read") == (GIVEN, "read-only tool")
    assert await world.denied("find") == NOT_APPROVED


async def test_all_calls_are_allowed_with_that_option_but_not_all_definitions() -> None:
    world = HostConsent(approve="all")
    assert await world.call() == (GIVEN, "all calls are approved")
    world.catalog.set_list("tools", [FIND_CHANGED])
    assert await world.denied() == (
        "ApprovalRequired",
        "its definition has changed since it was approved",
    )


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ([FIND_CHANGED], ("ApprovalRequired", "its definition has changed since it was approved")),
        ([tool("other")], ("CallDenied", "its server does not offer it now")),
        (
            [FIND, FIND_CHANGED],
            ("CallDenied", "its server lists it several times, with different definitions"),
        ),
    ],
)
async def test_call_of_a_definition_that_is_not_approved_asks_no_callback(
    listed: list[Tool], found: tuple[str, str]
) -> None:
    asked: list[Any] = []
    world = HostConsent(
        on_call=answers("allow", asked), on_approve_call=answers(True, asked), approve="all"
    )
    await world.add_rule("*", is_pattern=True)
    world.catalog.set_list("tools", listed)
    assert await world.denied() == found
    assert asked == []


async def test_call_of_a_new_tool_is_not_approved() -> None:
    world = HostConsent(on_call=answers("allow"))
    world.catalog.set_list("tools", [FIND, tool("later")])
    assert await world.denied("later") == (
        "ApprovalRequired",
        "its definition was not approved yet",
    )


# -- Verdicts of on_call ---------------------------------------------------------------------------

VERDICTS: list[tuple[Any, Any]] = [
    ("allow", (GIVEN, "on_call")),
    (EDITED, (EDITED, "on_call")),
    ({}, ({}, "on_call")),
    ("deny", ("CallDenied", "on_call")),
    (CallAnswer(is_allowed=True), (GIVEN, "user")),
    (CallAnswer(is_allowed=True, arguments=EDITED, reason="Ann"), (EDITED, "Ann")),
    (CallAnswer(is_allowed=False, reason="too late"), ("CallDenied", "too late")),
    (CallAnswer(is_allowed=True, arguments={}), ({}, "user")),
    ("ask", ("ApprovalRequired", "on_call asks about it")),
    (None, NOT_APPROVED),
]


@pytest.mark.parametrize("make", [answers, waits])
@pytest.mark.parametrize(("verdict", "found"), VERDICTS)
async def test_call_follows_the_verdict_of_on_call(
    verdict: Any, found: Any, make: Callable[..., Any]
) -> None:
    world = HostConsent(on_call=make(verdict))
    if isinstance(found[0], dict):
        assert await world.call() == found
    else:
        assert await world.denied() == found
    assert world.stored == ()


@pytest.mark.parametrize("verdict", [True, False, 1, "Allow", "yes", ["path"], ("allow",)])
async def test_verdict_that_is_none_of_these_is_a_type_error(verdict: Any) -> None:
    world = HostConsent(on_call=answers(verdict), approve="all")
    with pytest.raises(TypeError, match=r'on_call returns "allow", "deny", "ask", arguments'):
        await world.call()


async def test_on_call_gets_server_tool_and_arguments() -> None:
    asked: list[Any] = []
    world = HostConsent(on_call=answers("allow", asked))
    await world.call()
    assert asked == [("a", "find", GIVEN)]


@pytest.mark.parametrize("option", ["on_call", "on_approve_call"])
async def test_callback_that_raises_ends_the_call(option: str) -> None:
    def fails(*_: Any) -> Any:
        raise KeyError("of the program")

    options: dict[str, Any] = {option: fails}
    world = HostConsent(**options)
    with pytest.raises(KeyError, match="of the program"):
        await world.call()


async def test_on_call_that_leaves_the_decision_leaves_it_to_the_rules() -> None:
    world = HostConsent(on_call=answers(None))
    await world.add_rule("find")
    assert await world.call() == (GIVEN, "rule")


@pytest.mark.parametrize("verdict", ["allow", EDITED, CallAnswer(is_allowed=True), "ask", None])
async def test_rule_that_denies_precedes_on_call(verdict: Any) -> None:
    asked: list[Any] = []
    world = HostConsent(on_call=answers(verdict, asked), approve="all")
    await world.add_rule("find", is_allowed=False)
    assert await world.denied() == ("CallDenied", "rule")
    assert asked == []


async def test_on_call_that_asks_is_asked_about_in_spite_of_a_rule() -> None:
    asked: list[Any] = []
    world = HostConsent(on_call=answers("ask"), on_approve_call=answers(True, asked), approve="all")
    await world.add_rule("find")
    assert await world.call() == (GIVEN, "user")
    [(question,)] = asked
    assert question.reason == "on_call asks about it"


# -- Questions about a call ------------------------------------------------------------------------

ANSWERS: list[tuple[Any, Any]] = [
    (True, (GIVEN, "user")),
    (False, ("CallDenied", "user")),
    *((verdict, found) for verdict, found in VERDICTS if isinstance(verdict, CallAnswer)),
]


@pytest.mark.parametrize("make", [answers, waits])
@pytest.mark.parametrize(("answer", "found"), ANSWERS)
async def test_call_follows_the_answer_of_the_user(
    answer: Any, found: Any, make: Callable[..., Any]
) -> None:
    world = HostConsent(on_approve_call=make(answer))
    if isinstance(found[0], dict):
        assert await world.call() == found
    else:
        assert await world.denied() == found
    assert world.stored == ()


@pytest.mark.parametrize("answer", [None, "allow", 1, EDITED])
async def test_answer_that_is_none_of_these_is_a_type_error(answer: Any) -> None:
    world = HostConsent(on_approve_call=answers(answer))
    with pytest.raises(TypeError, match="on_approve_call returns a CallAnswer or a bool, not"):
        await world.call()


async def test_question_has_the_tool_and_the_arguments() -> None:
    asked: list[Any] = []
    world = HostConsent(on_approve_call=answers(True, asked))
    await world.call()
    [(question,)] = asked
    assert question == CallQuestion(
        server="a", tool=FIND, arguments=GIVEN, reason="the call was not approved"
    )


async def test_user_is_not_asked_about_what_a_rule_allows() -> None:
    asked: list[Any] = []
    world = HostConsent(on_approve_call=answers(True, asked))
    await world.add_rule("find", lifetime="session")
    assert await world.call() == (GIVEN, "rule")
    assert asked == []


# -- Rules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["on_call", "on_approve_call"])
@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize("lifetime", ["call", "session", "always"])
async def test_answer_is_remembered_as_long_as_it_says(
    lifetime: Any, is_allowed: bool, option: str
) -> None:
    """For one tool only: once, until the session is forgotten, or as a stored rule."""
    answer: list[Any] = [CallAnswer(is_allowed=is_allowed, lifetime=lifetime)]
    # The user who is asked again says no, and a hook leaves it to the rules.
    later = None if option == "on_call" else False
    options: dict[str, Any] = {option: lambda *_: answer.pop() if answer else later}
    world = HostConsent(**options)
    first = await (world.call() if is_allowed else world.denied())
    assert first == ((GIVEN, "user") if is_allowed else ("CallDenied", "user"))
    if lifetime != "call":
        expected: Any = (GIVEN, "rule") if is_allowed else ("CallDenied", "rule")
        for _ in range(3):
            assert await (world.call() if is_allowed else world.denied()) == expected
    assert (await world.denied("read"))[1] != "rule"  # it is for this tool
    digest = define(FIND).digest if is_allowed else None
    rule = ToolRule(tool="find", is_allowed=is_allowed, lifetime=lifetime, digest=digest)
    assert world.stored == ((rule,) if lifetime == "always" else ())
    world.consent.forget_session("a")
    if lifetime == "session":
        assert (await world.denied())[1] != "rule"


async def test_answer_with_a_pattern_is_for_the_tools_that_match() -> None:
    answer = CallAnswer(is_allowed=True, lifetime="always", pattern="get_*")
    world = HostConsent(FIND, tool("get_a"), tool("get_b"), on_approve_call=answers(answer))
    await world.call("get_a")
    assert world.stored == (ToolRule(tool="get_*", is_pattern=True),)
    world.options["on_approve_call"] = None
    assert await world.call("get_b") == (GIVEN, "rule")
    assert await world.denied("find") == NOT_APPROVED


async def test_pattern_of_an_answer_for_one_call_has_no_effect() -> None:
    world = HostConsent(on_call=answers(CallAnswer(is_allowed=True, pattern="*")))
    assert await world.call() == (GIVEN, "user")
    world.options["on_call"] = None
    assert await world.denied() == NOT_APPROVED


async def test_tool_that_is_called_like_a_pattern_matches_itself_only() -> None:
    answer = CallAnswer(is_allowed=True, lifetime="session")
    world = HostConsent(tool("*"), FIND, on_approve_call=answers(answer))
    await world.call("*")
    world.options["on_approve_call"] = None
    assert await world.call("*") == (GIVEN, "rule")
    assert await world.denied("find") == NOT_APPROVED


async def test_rule_for_a_call_is_used_up_by_it() -> None:
    world = HostConsent()
    await world.add_rule("find", lifetime="call")
    assert await world.denied("read") == NOT_APPROVED
    assert await world.call() == (GIVEN, "rule")
    assert await world.denied() == NOT_APPROVED


async def test_rule_that_denies_one_call_is_used_up_by_it() -> None:
    world = HostConsent(approve="all")
    await world.add_rule("find", lifetime="call", is_allowed=False)
    assert await world.denied() == ("CallDenied", "rule")
    assert await world.call() == (GIVEN, "all calls are approved")


async def test_rule_for_a_call_is_kept_while_another_one_allows_it() -> None:
    world = HostConsent()
    await world.add_rule("find", lifetime="call")
    await world.add_rule("find", lifetime="session")
    assert await world.call() == await world.call() == (GIVEN, "rule")
    world.consent._session_rules["a"] = world.consent._session_rules["a"][:1]
    assert await world.call() == (GIVEN, "rule")
    assert await world.denied() == NOT_APPROVED


async def test_rule_for_a_call_allows_one_of_two_at_a_time() -> None:
    """Two calls race for one permission; the loser must not slip through with it."""
    world = HostConsent(on_call=waits(None))
    await world.add_rule("find", lifetime="call")
    found: list[Any] = []

    async def call() -> None:
        try:
            found.append(await world.call())
        except ApprovalRequired as exc:
            found.append(exc.reason)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        nursery.start_soon(call)
    assert len(found) == 2
    assert (GIVEN, "rule") in found
    assert NOT_APPROVED[1] in found


async def test_rule_replaces_the_one_of_its_lifetime_for_the_same_tools() -> None:
    """A hook that answers each call with a rule must not fill the memory."""
    world = HostConsent(on_call=answers(CallAnswer(is_allowed=True, lifetime="session")))
    for _ in range(100):
        await world.call()
    assert len(world.consent._session_rules["a"]) == 1
    await world.add_rule("find", is_allowed=False)
    await world.add_rule("find", digest=define(FIND).digest)
    assert world.stored == (ToolRule(tool="find", digest=define(FIND).digest),)
    await world.add_rule("find", is_pattern=True)
    assert len(world.stored) == 2


async def test_rule_that_is_stored_already_is_not_written_again() -> None:
    world = HostConsent(on_call=answers(CallAnswer(is_allowed=True, lifetime="always")))
    await world.call()
    written = world.store.load()
    await world.call()
    assert world.store.load() is written


ALWAYS = CallAnswer(is_allowed=True, lifetime="always")


async def test_rule_of_a_server_of_the_program_is_stored_where_the_program_says() -> None:
    world = HostConsent(on_approve_call=answers(ALWAYS))
    world.source.file = ""
    await world.call()
    found = world.store.load().find("", "a")
    assert found is not None
    assert [rule.tool for rule in found.rules] == ["find"]


async def test_rule_of_a_server_of_the_program_is_not_stored_in_the_default_store() -> None:
    """All programs of the user share it, and their servers may have the same names."""
    store = MemoryApprovals()
    world = HostConsent(on_approve_call=answers(ALWAYS), approvals=None)
    world.consent = Consent(
        cast("HostOptions", world.options), world._in_thread, lambda: 7.0, default=store
    )
    world.source.file = ""
    await world.call()
    world.options["on_approve_call"] = None
    assert await world.call() == (GIVEN, "rule")
    assert store.load() == Approvals()
    world.source.file = FILE
    await world.consent.add_rule(world.source, ToolRule(tool="find"))
    assert store.load().find(FILE, "a") is not None


async def test_rules_that_are_stored_count_after_loading() -> None:
    approval = ServerApproval(rules=(ToolRule(tool="find"),))
    world = HostConsent(approvals=MemoryApprovals(Approvals().with_server(FILE, "a", approval)))
    assert await world.denied() == NOT_APPROVED
    await world.consent.load()
    assert await world.call() == (GIVEN, "rule")
    world.source.file = "/elsewhere/.mcp.json"
    assert await world.denied() == NOT_APPROVED


# -- Changes while the user reads ------------------------------------------------------------------


def change(catalog: ServerCatalog, to: Tool | None, *, is_pinned: bool) -> None:
    catalog.set_list("tools", [] if to is None else [to])
    if is_pinned and to is not None:
        catalog.pin([define(to)])


@pytest.mark.parametrize("option", ["on_call", "on_approve_call"])
@pytest.mark.parametrize(
    ("to", "is_pinned", "found"),
    [
        (FIND, False, None),
        (
            FIND_CHANGED,
            False,
            ("ApprovalRequired", "its definition has changed since it was approved"),
        ),
        (FIND_CHANGED, True, ("ApprovalRequired", "its definition has changed: call it again")),
        (None, False, ("CallDenied", "its server does not offer it now")),
    ],
)
async def test_answer_is_for_the_definition_that_the_user_saw(
    to: Tool | None, is_pinned: bool, found: Any, option: str
) -> None:
    """The server swaps the tool while the user reads: the new one isn't approved by the answer."""

    async def callback(*_: Any) -> CallAnswer:
        await trio.lowlevel.checkpoint()
        change(world.catalog, to, is_pinned=is_pinned)
        return CallAnswer(is_allowed=True, lifetime="always")

    options: dict[str, Any] = {option: callback}
    world = HostConsent(**options)
    if found is None:
        assert await world.call() == (GIVEN, "user")
    else:
        assert await world.denied() == found
    assert world.stored == (ToolRule(tool="find", digest=define(FIND).digest),)
    world.options.clear()
    if is_pinned:
        assert await world.denied() == NOT_APPROVED  # the rule is not for the new definition


async def test_tool_that_is_gone_while_on_call_waits_is_not_asked_about() -> None:
    asked: list[Any] = []

    async def on_call(*_: Any) -> Any:
        change(world.catalog, None, is_pinned=False)
        return "ask"

    world = HostConsent(on_call=on_call, on_approve_call=answers(True, asked))
    assert await world.denied() == ("ApprovalRequired", "on_call asks about it")
    assert asked == []


async def test_rule_that_denies_meanwhile_precedes_the_answer() -> None:
    async def on_call(*_: Any) -> Any:
        await world.add_rule("find", is_allowed=False)
        return "allow"

    world = HostConsent(on_call=on_call)
    assert await world.denied() == ("CallDenied", "rule")


async def test_tool_of_the_program_may_change_while_the_user_reads() -> None:
    async def on_call(*_: Any) -> Any:
        world.catalog.set_list("tools", [FIND_CHANGED])
        return "allow"

    world = HostConsent(needs_pins=False, on_call=on_call)
    assert await world.call() == (GIVEN, "on_call")


# -- Stores that fail ------------------------------------------------------------------------------


async def test_answer_that_cannot_be_stored_makes_no_call() -> None:
    answer = CallAnswer(is_allowed=True, lifetime="always")
    world = HostConsent(on_approve_call=answers(answer), approvals=FailingApprovals())
    with pytest.raises(OSError, match="the disk is full"):
        await world.call()
    world.options["on_approve_call"] = answers(CallAnswer(is_allowed=True))
    assert await world.call() == (GIVEN, "user")


async def test_store_that_cannot_be_read_opens_no_host() -> None:
    store = FailingApprovals()
    store.is_readable = False
    with pytest.RaisesGroup(pytest.RaisesExc(PermissionError)):
        async with opened([FakeSource("a")], approvals=store):
            pytest.fail("the host is open")


async def test_launch_that_cannot_be_stored_is_not_approved() -> None:
    world = HostConsent(on_approve_server=answers(True), approvals=FailingApprovals())
    with pytest.raises(OSError, match="the disk is full"):
        await world.consent.ask_about_server(world.source, LAUNCH)
    assert world.consent.launch_state(world.source, LAUNCH) == "new"


# -- Servers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [answers, waits])
async def test_launch_that_the_user_approves_is_stored(make: Callable[..., Any]) -> None:
    world = HostConsent(on_approve_server=make(True))
    assert world.consent.launch_state(world.source, LAUNCH) == "new"
    assert await world.consent.ask_about_server(world.source, LAUNCH)
    assert world.consent.launch_state(world.source, LAUNCH) == "approved"
    found = world.store.load().find(FILE, "a")
    assert found == ServerApproval(launch=digest_launch(LAUNCH), approved=7.0)


@pytest.mark.parametrize("answer", [False, None, 1, "yes"])
async def test_launch_is_approved_by_true_only(answer: Any) -> None:
    world = HostConsent(on_approve_server=answers(answer))
    assert not await world.consent.ask_about_server(world.source, LAUNCH)
    assert world.store.load() == Approvals()


async def test_launch_without_a_callback_is_not_approved() -> None:
    world = HostConsent()
    assert not await world.consent.ask_about_server(world.source, LAUNCH)


async def test_question_about_a_launch_shows_it_and_whether_it_has_changed() -> None:
    asked: list[Any] = []
    world = HostConsent(on_approve_server=answers(True, asked))
    other = ServerLaunch(transport="stdio", command="/usr/bin/other", directory="/project")
    await world.consent.ask_about_server(world.source, LAUNCH)
    await world.consent.ask_about_server(world.source, other)
    questions = [question for (question,) in asked]
    assert [each.state for each in questions] == ["new", "changed"]
    assert (questions[1].server, questions[1].file) == ("a", FILE)
    assert any("/usr/bin/other" in line.text for line in questions[1].lines())


async def test_approved_server_that_takes_a_place_since_is_asked_about_again() -> None:
    asked: list[Any] = []
    world = HostConsent(on_approve_server=answers(True, asked))
    await world.consent.ask_about_server(world.source, LAUNCH)
    world.source.replaces = ("/home/me/mcp.json (user)",)
    assert world.consent.launch_state(world.source, LAUNCH) == "new"
    shown = world.consent.question_about_server(world.source, LAUNCH)
    world.source.replaces = ()
    await world.consent.approve_server(world.source, shown)  # what was shown, not what is so now
    world.source.replaces = shown.replaces
    assert world.consent.launch_state(world.source, LAUNCH) == "approved"


# -- Definitions -----------------------------------------------------------------------------------


def test_question_at_first_sight_is_not_asked() -> None:
    world = HostConsent()
    catalog = catalog_of("a", FIND, is_pinned=False)
    assert world.consent.find_unapproved(catalog) is None


@pytest.mark.parametrize("tools", [[READ, FIND], [READ], [READ, FIND, FIND_CHANGED]])
def test_question_about_nothing_that_could_be_approved_is_not_asked(tools: list[Tool]) -> None:
    world = HostConsent()
    world.catalog.set_list("tools", tools)
    assert world.consent.find_unapproved(world.catalog) is None


def test_question_about_a_server_of_the_program_is_not_asked() -> None:
    world = HostConsent(needs_pins=False)
    world.catalog.set_list("tools", [FIND_CHANGED])
    assert world.consent.find_unapproved(world.catalog) is None


def test_question_has_what_is_new_and_changed_with_warnings() -> None:
    """One tool has another server's name and a hidden character: only that one is warned of."""
    world = HostConsent()
    imitation = tool("get_stars", "Gets\u200b.")
    world.catalog.set_list("tools", [READ, FIND_CHANGED, imitation, tool("plain")])
    world.catalog.set_instructions(TEXT)
    comparison = world.consent.find_unapproved(world.catalog)
    assert comparison is not None
    question = DefinitionsQuestion.about("a", comparison, [QualifiedName("b", "get_stars")])
    assert question.server == "a"
    assert [each.key for each in question.definitions] == [
        ("tool", "get_stars"),
        ("tool", "plain"),
        ("instructions", ""),
        ("tool", "find"),
    ]
    assert set(question.warnings) == {("tool", "get_stars")}
    kinds = [each.kind for each in question.warnings["tool", "get_stars"]]
    assert kinds == ["same name", "hidden"]


@pytest.mark.parametrize("make", [answers, waits])
@pytest.mark.parametrize(("answer", "found"), [(True, True), (False, False), ("yes", False)])
async def test_definitions_are_approved_by_true_only(
    answer: Any, found: bool, make: Callable[..., Any]
) -> None:
    world = HostConsent(on_approve_definitions=make(answer))
    world.catalog.set_list("tools", [FIND_CHANGED])
    comparison = world.consent.find_unapproved(world.catalog)
    assert comparison is not None
    question = DefinitionsQuestion.about("a", comparison, [])
    assert await world.consent.ask_about_definitions(question) is found
    world.options["on_approve_definitions"] = None
    assert not await world.consent.ask_about_definitions(question)


async def test_pins_are_stored_beside_the_rules() -> None:
    world = HostConsent()
    await world.add_rule("find")
    await world.consent.pin(world.source, (define(FIND),))
    assert world.consent.find(world.source) == ServerApproval(
        rules=(ToolRule(tool="find"),), pins=(define(FIND),)
    )
    assert world.store.load().find(FILE, "a") == world.consent.find(world.source)


# -- In a host -------------------------------------------------------------------------------------


def offering(name: str) -> Server:
    """Return a server with a tool, and a prompt that a test can replace."""
    server = Server(name)

    @server.tool
    def greet() -> str:
        """Greet."""
        return "hello"

    @server.prompt
    def review() -> str:
        """Review."""
        return "Review it."

    return server


def pinned(*definitions: Any) -> MemoryApprovals:
    approval = ServerApproval(pins=tuple(map(define, definitions)))
    return MemoryApprovals(Approvals().with_server(FILE, "a", approval))


async def test_prompt_that_is_not_approved_cannot_be_got(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = FakeSource("a", offering("a"), file=FILE)
    async with opened([source], approvals=pinned()) as (host, _):
        assert host.prompts() == ()
        with pytest.raises(ApprovalRequired, match="review of a is not approved: its definition"):
            await host.get_prompt("mcp__a__review")
        [question] = (await host.pending()).values()
        await host.approve_definitions(question)
        result = await host.get_prompt("mcp__a__review")
        assert result.messages[0].content.text == "Review it."  # type: ignore[union-attr]
        assert await host.pending() == {}


@pytest.mark.parametrize("option", ["on_approve_server", "on_approve_definitions"])
async def test_callback_that_raises_approves_nothing_and_is_logged(
    option: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A broken callback must fail closed: the host goes on, without the server's tools."""

    def fails(_: Any) -> bool:
        raise KeyError("of the program")

    source = FakeSource("a", offering("a"), file=FILE)
    if option == "on_approve_server":
        source.needs_approval, source.launch = True, LAUNCH
    async with opened([source], approvals=pinned(), **{option: fails}) as (host, runtime):
        await trio.testing.wait_all_tasks_blocked()
        assert [problem for problem, _ in runtime.errors] == ["the approval of a failed"]
        assert isinstance(runtime.errors[0][1], KeyError)
        state = "unapproved" if option == "on_approve_server" else "ready"
        assert host.status()["a"].state == state
        assert host.tools() == ()


async def test_approval_that_cannot_be_stored_is_the_reason_of_the_server(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = FakeSource("a", offering("a"), file=FILE, needs_approval=True, launch=LAUNCH)
    options = {"approvals": FailingApprovals(), "on_approve_server": answers(True)}
    async with opened([source], **options) as (host, runtime):
        status = host.status()["a"]
        assert (status.state, status.reason) == ("failed", "the disk is full")
        assert status.retry_at is None
        assert source.options == []
        assert runtime.errors == []


@pytest.mark.parametrize(
    ("approvals", "state"), [(MemoryApprovals(), "connecting"), (FailingApprovals(), "failed")]
)
async def test_end_of_a_question_is_a_change_of_what_waits_for_the_user(
    approvals: MemoryApprovals, state: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A display of open questions is drawn anew, also if the answer cannot be stored."""
    source = FakeSource("a", offering("a"), file=FILE, needs_approval=True, launch=LAUNCH)
    source.gate = trio.Event()  # what it lists would be a change too
    options = {"approvals": approvals, "on_approve_server": answers(True)}
    async with opened([], **options) as (host, _), host.changes() as changes:
        host.add_source(source)
        async for change in changes:
            if change.kind == "approval":
                break
        assert change.status.state == state


async def test_server_that_has_nothing_to_approve_is_not_started(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = FakeSource("a", offering("a"), file=FILE, needs_approval=True)
    async with opened([source], on_approve_server=answers(True)) as (host, _):
        status = host.status()["a"]
        assert status.state == "failed"
        assert status.reason.startswith("a cannot be approved: `prepare`")
        assert source.options == []


async def test_reason_of_a_server_has_no_secrets(
    autojump_clock: trio.testing.MockClock,
) -> None:
    text = "GET https://h/?k=hunter2hunter2 failed\nghp_0123456789abcdef0123"
    source = FakeSource("a", error=ConnectFailed(text), secrets=frozenset({"hunter2hunter2"}))
    async with opened([source]) as (host, _):
        assert host.status()["a"].reason == "GET https://h/?k=(redacted) failed; (redacted)"


async def test_host_connects_after_its_approval(autojump_clock: trio.testing.MockClock) -> None:
    source = FakeSource("a", offering("a"), file=FILE, needs_approval=True, launch=LAUNCH)
    store = MemoryApprovals()
    async with opened([source], approvals=store) as (host, _):
        assert host.status()["a"].state == "unapproved"
        assert source.options == []
        await host.approve_server(await host.server_question("a"))
        await host.wait_settled()
        assert [each.name for each in host.tools()] == ["mcp__a__greet"]
        await host.add_rule("a", ToolRule(tool="greet"))
        assert (await host.call("mcp__a__greet")).text == "hello"
    async with opened([source], approvals=store) as (host, _):  # all of it was stored
        assert (await host.call("mcp__a__greet")).text == "hello"


async def test_change_that_is_noticed_late_takes_no_later_one_back() -> None:
    """Servers that start together are approved at once, each in a thread of its own."""
    host = HostConsent(on_approve_server=answers(True))
    other = FakeSource("b", file=FILE)
    first_is_noticed = trio.Event()
    waits = iter([first_is_noticed.wait, trio.lowlevel.checkpoint])

    async def after_thread() -> None:
        await next(waits)()

    host.after_thread = after_thread  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.consent.ask_about_server, host.source, LAUNCH)
        await trio.testing.wait_all_tasks_blocked()
        assert await host.consent.ask_about_server(other, LAUNCH)
        first_is_noticed.set()
    assert host.consent.launch_state(host.source, LAUNCH) == "approved"
    assert host.consent.launch_state(other, LAUNCH) == "approved"
