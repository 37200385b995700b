"""The public types of values: which of them can be changed, and which are made by position.

1. A value can be shared by tasks and kept in tables, so it cannot be changed. Messages, and what
   stands for one of them, are made for one reader each; they can be changed, and are made faster.
2. A value takes its members by name, unless it has few and their order is plain.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import pytest
from msgspec import Struct

import mcp_core
from mcp_core import (
    adapters,
    auth,
    contract,
    drivers,
    host,
    http,
    processes,
    registry,
    runtime,
    sharing,
    tasks,
    trace,
    types,
    urls,
)
from mcp_core.runtime import host as runtime_host

# In the order in which a name that several have is assigned to one of them.
_PACKAGES: Final = (
    *(mcp_core, types, urls, http, auth, contract, registry, sharing, tasks, drivers, processes),
    *(runtime, runtime_host, adapters, host, trace),
)
# Of `mcp_core.types` all can be changed: they are parts of messages.
_MUTABLE: Final = frozenset(
    """
    ChangesMissed ConnectionClosed ErrorReceived FormSchema InputProblem InputRequested
    MessageRejected NotificationReceived Outgoing PeerReady ProgressReceived RequestCancelled
    RequestReceived ResultReceived TaskCreated
    http.Body http.Close http.End http.EndpointAuth http.Head http.HttpCall http.Ping http.Pong
    http.RequestHead http.Text runtime.TypedToolResult
    trace.HttpChannel trace.LeftOut trace.RecordedCall trace.RecordedLoad trace.RecordedMessage
    trace.RecordedOffers
    """.split()
)
_BY_POSITION: Final = frozenset(
    """
    Change ConnectionClosed Dialect ErrorReceived FormSchema InputProblem InputRequested
    MessageRejected Method NotificationReceived Outgoing Peer PeerReady ProgressReceived Rate
    RequestCancelled RequestReceived ResultReceived TaskCreated
    types.AudioContent types.Completion types.CompletionArgument types.CreateMessageRequest
    types.ElicitRequest types.EmbeddedResource types.EnumOption types.ErrorData types.Icon
    types.ImageContent types.Implementation types.ListRootsRequest types.MissingCapabilityData
    types.ModelHint types.PromptMessage types.PromptReference types.RelatedTaskMetadata
    types.ResourceTemplateReference types.Root types.SamplingMessage types.TextContent
    types.ToolChoice types.ToolResultContent types.ToolUseContent types.URLElicitationRequiredData
    types.UnsupportedVersionData urls.ElicitationUrl urls.Url
    http.Body http.Close http.EndpointAuth http.GatewayError http.GoAway http.Head http.HeadError
    http.Http2Error http.HttpCall http.PassedRequest http.PlainResponse http.Pong http.ProxiedEnd
    http.ProxyRefusal http.RequestHead http.Text
    auth.AuthDenial auth.Await auth.Browse auth.EnterpriseManaged auth.Fetch auth.Grant
    auth.HttpRequest auth.HttpResponse auth.JwtBearer auth.ListenForRedirect auth.Load auth.Save
    registry.AcceptedElicitation registry.Audio registry.CacheHint registry.CancelledElicitation
    registry.DeclinedElicitation registry.File registry.Image registry.SampledConversation
    registry.UrlElicitation sharing.ChangesPublished sharing.TaskChanged sharing.WorkerBatch
    tasks.Cancel tasks.Complete tasks.Fail tasks.ReceiveResponse tasks.RequestInput
    tasks.SetMessage runtime.TaskReference runtime.host.HostChange
    host.CallDecision host.ConfigPlace host.ConfigProblem host.Definition host.DefinitionWarning
    host.HostPrompt host.HostResource host.HostResourceTemplate host.HostTool host.MemberChange
    host.PinComparison
    trace.HttpChannel trace.LeftOut trace.RecordedCall trace.RecordedLoad trace.RecordedMessage
    trace.RecordedOffers trace.ReplayOutput trace.Requirement
    """.split()
)


def public_values() -> dict[str, Any]:
    """Return the types by their names, with their packages unless `mcp_core` itself has them."""
    found: dict[str, Any] = {}
    known = set()
    for package in _PACKAGES:
        prefix = package.__name__.removeprefix("mcp_core").lstrip(".")
        for name in package.__all__:
            value = getattr(package, name)
            is_type = isinstance(value, type) and value not in known
            if is_type and (issubclass(value, Struct) or dataclasses.is_dataclass(value)):
                found[f"{prefix}.{name}".lstrip(".")] = value
                known.add(value)
    return found


VALUES: Final = public_values()


def test_tables_name_public_values() -> None:
    assert len(VALUES) > 200
    assert VALUES.keys() >= _MUTABLE | _BY_POSITION


@pytest.mark.parametrize("name", VALUES)
def test_value_can_be_changed_if_it_is_a_message(name: str) -> None:
    value = VALUES[name]
    kind = value.__struct_config__ if issubclass(value, Struct) else value.__dataclass_params__
    assert kind.frozen is not (name in _MUTABLE or name.startswith("types."))


@pytest.mark.parametrize("name", VALUES)
def test_value_takes_its_members_by_name_unless_their_order_is_plain(name: str) -> None:
    value = VALUES[name]
    assert bool(value.__match_args__) is (name in _BY_POSITION)
    if not value.__match_args__:
        with pytest.raises(TypeError):
            value(None)
