"""Change notifications, server and client side."""
