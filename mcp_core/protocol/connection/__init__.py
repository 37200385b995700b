"""The JSON-RPC state machine of both roles."""
