"""The client side of a connection, without I/O: calls, cache, status, options."""
