"""How a server checks tokens."""
