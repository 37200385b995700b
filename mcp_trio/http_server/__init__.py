"""Listeners and server connections."""
