"""Run the command `mcp-trio` as `python -m mcp_trio`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `python -m` puts the current directory first. Without it, modules are found as with the
        # installed script: a server file cannot import others by accident, nor can the command.
        del sys.path[0]

    from .cli import main

    raise SystemExit(main())
