"""Declarations of tools that run as tasks."""
