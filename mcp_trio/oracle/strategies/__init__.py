"""Strategies of hypothesis, which `mcp_trio.testing.strategies` hands on."""
