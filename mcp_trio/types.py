"""The protocol's types, for `from mcp_trio.types import Tool`, the same as in `mcp_core.types`."""

from mcp_core.types import *  # noqa: F403
