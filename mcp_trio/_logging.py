"""This package's logger, whose records are escaped: their texts may come from a peer.

Modules get it by its name, `mcp_trio`. A child of it would not be filtered.
"""

from __future__ import annotations

import logging

from mcp_core.runtime import LogEscaper

logging.getLogger("mcp_trio").addFilter(LogEscaper(logging.Formatter().formatException))
