"""Checks by a server's author, from a Python file: `mcp-trio fuzz --invariants FILE`.

- `_declared`: the decorators, and what each of them has declared. `mcp_trio.testing.invariants` is
  their public place.
- `_load`: imports the file, and checks that its declarations fit each other.
- `_checks`: runs the functions in a worker thread, and makes faults of failed assertions.
- `_tool_schemas`: tells arguments that fit a tool's schema from others.
- `_handing`: draws the steps that hand a value from one call to the next.
"""
