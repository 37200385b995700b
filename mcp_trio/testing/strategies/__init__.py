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

from ._from_schema import from_schema as from_schema
from ._from_schema import nearly_valid as nearly_valid
from ._messages import VERSIONS as VERSIONS
from ._messages import messages as messages
from ._messages import meta_of as meta_of
from ._messages import methods as methods
from ._messages import notifications as notifications
from ._messages import objects as objects
from ._messages import requests as requests
from ._messages import responses as responses
from ._messages import result_of as result_of
from ._mutations import damaged as damaged
from ._mutations import malformed as malformed
from ._mutations import reordered as reordered
from ._mutations import split as split
from ._values import encoded as encoded
from ._values import ids as ids
from ._values import json_objects as json_objects
from ._values import json_values as json_values
from ._values import structs as structs
from ._values import texts as texts

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
