"""The HTTP server: endpoint, exchanges, sessions, routing."""
