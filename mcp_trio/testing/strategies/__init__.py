"""Strategies of hypothesis for tests of MCP servers, clients and gateways.

*Messages.* `requests`, `notifications` and `responses` draw valid messages of a revision as dicts,
and `messages` any of the three. `objects` draws the params or the result of one method, `structs`
an object of `mcp_core.types`. `methods` lists what can be drawn.

*Damage.* `malformed` gives JSON that is almost a message, `damaged` bytes with a few edits,
`reordered` scripts in another order, and `split` bytes in the pieces of a network.

*Schemas.* `from_schema` draws values of a JSON Schema, such as the `inputSchema` of a tool, and
`nearly_valid` values that miss it by one detail. Both take schemas of strangers: work is bounded.

The package needs hypothesis: `pip install 'mcp-trio[fuzz]'`.
"""

from __future__ import annotations

try:
    import hypothesis as _hypothesis  # noqa: F401 - for an error that names the cure
except ModuleNotFoundError as exc:
    raise ModuleNotFoundError(
        "mcp_trio.testing.strategies needs hypothesis; install it with pip install 'mcp-trio[fuzz]'"
    ) from exc

from mcp_trio.oracle.strategies._from_schema import from_schema as from_schema
from mcp_trio.oracle.strategies._from_schema import nearly_valid as nearly_valid
from mcp_trio.oracle.strategies._messages import VERSIONS as VERSIONS
from mcp_trio.oracle.strategies._messages import messages as messages
from mcp_trio.oracle.strategies._messages import meta_of as meta_of
from mcp_trio.oracle.strategies._messages import methods as methods
from mcp_trio.oracle.strategies._messages import notifications as notifications
from mcp_trio.oracle.strategies._messages import objects as objects
from mcp_trio.oracle.strategies._messages import requests as requests
from mcp_trio.oracle.strategies._messages import responses as responses
from mcp_trio.oracle.strategies._messages import result_of as result_of
from mcp_trio.oracle.strategies._mutations import damaged as damaged
from mcp_trio.oracle.strategies._mutations import malformed as malformed
from mcp_trio.oracle.strategies._mutations import reordered as reordered
from mcp_trio.oracle.strategies._mutations import split as split
from mcp_trio.oracle.strategies._values import encoded as encoded
from mcp_trio.oracle.strategies._values import ids as ids
from mcp_trio.oracle.strategies._values import json_objects as json_objects
from mcp_trio.oracle.strategies._values import json_values as json_values
from mcp_trio.oracle.strategies._values import structs as structs
from mcp_trio.oracle.strategies._values import texts as texts

__all__ = [
    "VERSIONS",
    "damaged",
    "encoded",
    "from_schema",
    "ids",
    "json_objects",
    "json_values",
    "malformed",
    "messages",
    "meta_of",
    "methods",
    "nearly_valid",
    "notifications",
    "objects",
    "reordered",
    "requests",
    "responses",
    "result_of",
    "split",
    "structs",
    "texts",
]
