"""JSON-RPC 2.0: bytes to envelopes and back. Knows no method and no revision."""
