"""Hypothesis strategies. `mcp_trio.testing.strategies` exports the public ones."""
