"""Loads that a client makes: calls with all their questions, conversations, sessions, progress."""
