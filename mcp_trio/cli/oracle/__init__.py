"""Subcommands that work with recorded conversations."""
