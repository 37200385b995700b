"""The client side of a connection without waiting: calls, cache, status, options."""
