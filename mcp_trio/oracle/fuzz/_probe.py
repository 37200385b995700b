"""The probe: what a target speaks and offers. It comes before any wrong message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio
from msgspec import Struct, field

from mcp_core import ALL, ConnectFailed
from mcp_trio.streams._child import with_cure

from ._revisions import META, dialect_of
from .play._play import Play
from .play._waiting import exchange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._session import TargetSession
    from .play._player import TargetLike

__all__ = ["Offers", "may_call_by_hint", "probe"]

RESPONSE_TIMEOUT: Final = 3600.0  # seconds; each revision has a timeout of its own
SECOND_TIMEOUT: Final = 5.0  # seconds for further revisions, once one got no response
LIST_TIMEOUT: Final = 10.0  # seconds for a page of a list, from a server that has responded
MAX_PAGES: Final = 20
MAX_OFFERS: Final = 500  # entries of each list


class Offers(Struct, kw_only=True):
    """A target's revisions, and its lists.

    Attributes:
        name: the server's name and version.
        revisions: the revisions that it speaks, newest first.
        answers: the revision that the server has selected, by the requested one.
        rejected: the revisions that it doesn't speak.
        capabilities: the server's capabilities, by revision.
        tools, prompts, resources, templates: as listed. Tools have what the lists of all revisions
            say about tasks.
    """

    name: str = ""
    revisions: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    capabilities: dict[str, dict[str, Any]] = field(default_factory=dict)
    tools: list[dict[str, Any]] = field(default_factory=list)
    prompts: list[dict[str, Any]] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    templates: list[dict[str, Any]] = field(default_factory=list)


_LISTS: Final = (
    ("tools", "tools/list", "tools", "tools"),
    ("prompts", "prompts/list", "prompts", "prompts"),
    ("resources", "resources/list", "resources", "resources"),
    ("resources", "resources/templates/list", "resourceTemplates", "templates"),
)


def may_call_by_hint(tool: Mapping[str, Any]) -> bool:
    """Return True if a tool's hints say that a call changes nothing, here or elsewhere."""
    hints = tool.get("annotations")
    return (
        isinstance(hints, dict)
        and hints.get("readOnlyHint") is True
        and hints.get("openWorldHint") is False
    )


async def probe(
    target: TargetLike, revisions: tuple[str, ...] = ALL, timeout: float = 60
) -> Offers:
    """Return what a target speaks and offers.

    Args:
        target: the target.
        revisions: the revisions to try, newest first.
        timeout: seconds for each revision.

    Raises:
        ConnectFailed: it speaks none of the revisions; the message names the cause and the cure.
    """
    offers = Offers()
    reason = ""
    # A server of a revision with a handshake may ignore what comes before it, so that comes first.
    order = sorted(revisions, key=lambda each: not dialect_of(each).stateful)
    modern = [each for each in order if not dialect_of(each).stateful]
    left = timeout
    for revision in dict.fromkeys([*order[:1], *modern, *order]):
        session = await target.open()
        try:
            with trio.move_on_after(left) as waiting:
                problem = await _try_revision(session, revision, offers)
                if problem is not None:
                    reason = reason or problem
            if waiting.cancelled_caught:
                reason = reason or f"it did not respond to {revision} within {left:g} s"
                left = min(left, SECOND_TIMEOUT)
            if revision not in offers.capabilities:
                offers.rejected.append(revision)
        finally:
            with trio.CancelScope(shield=True):
                await session.aclose()
    target.learn_tools(offers.tools)
    offers.revisions.sort(reverse=True)
    if not offers.revisions:
        cure = "Is that an MCP server? `mcp-trio inspect --trace` shows the messages"
        raise ConnectFailed(
            f"no conversation with {target.header().target}: {with_cure(reason, cure)}"
        )
    return offers


async def _try_revision(session: TargetSession, revision: str, offers: Offers) -> str | None:
    """Add what a session shows in a revision. Return why it doesn't speak it, or None."""
    play = Play(session, RESPONSE_TIMEOUT)
    if not dialect_of(revision).stateful:
        session.revision, session.is_open = revision, True
        result = await exchange(play, "server/discover", {})
        versions = result.get("supportedVersions") if result is not None else None
        if result is None or not isinstance(versions, list) or revision not in versions:
            return f"it does not speak {revision}{session.describe()}"
        meta = result.get("_meta")
        info = meta.get(META + "serverInfo") if isinstance(meta, dict) else None
    else:
        session.revision = revision
        result = await exchange(play, "initialize", session.initialize_params(revision))
        if result is not None and isinstance(result.get("protocolVersion"), str):
            offers.answers[revision] = result["protocolVersion"]
        if result is None or result.get("protocolVersion") != revision:
            return f"it does not speak {revision}{session.describe()}"
        await session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        session.is_open = True
        info = result.get("serverInfo")
    capabilities = result.get("capabilities")
    offers.revisions.append(revision)
    offers.capabilities[revision] = capabilities if isinstance(capabilities, dict) else {}
    if isinstance(info, dict) and not offers.name:
        offers.name = f"{info.get('name', '?')} {info.get('version', '')}".strip()
    for capability, method, member, name in _LISTS:
        known: list[dict[str, Any]] = getattr(offers, name)
        # Schemas of such a revision say which arguments headers repeat.
        is_mirrored = dialect_of(revision).http.mirrored_headers
        is_needed = not known or (name == "tools" and is_mirrored)
        if capability in offers.capabilities[revision] and is_needed:
            found = _with_task_support(await _list(play, method, member), known)
            names = [each.get("name") for each in found]  # of any type
            known[:] = [*found, *(each for each in known if each.get("name") not in names)]
    return None


def _with_task_support(
    found: list[dict[str, Any]], known: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return tools with what another revision's list says about tasks: not every revision does."""
    support = [(each.get("name"), each["execution"]) for each in known if "execution" in each]
    for name, execution in support:
        for each in found:
            if each.get("name") == name:
                each.setdefault("execution", execution)
    return found


async def _list(play: Play, method: str, member: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        result = None
        with trio.move_on_after(LIST_TIMEOUT):
            result = await exchange(play, method, {} if cursor is None else {"cursor": cursor})
        items = None if result is None else result.get(member)
        if isinstance(items, list):
            found += [each for each in items if isinstance(each, dict)]
        following = None if result is None else result.get("nextCursor")
        if not isinstance(following, str) or len(found) >= MAX_OFFERS or following == cursor:
            break
        cursor = following
    return found[:MAX_OFFERS]
