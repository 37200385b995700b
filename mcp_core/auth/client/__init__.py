"""How a client gets tokens."""
