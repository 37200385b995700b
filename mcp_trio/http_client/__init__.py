"""Connecting, and client connections."""
