"""Formats of HTTP and their hardening, without server or client state."""
