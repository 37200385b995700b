"""The HTTP client: requests, transports, connection pool."""
