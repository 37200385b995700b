"""Replay of recorded conversations, as their server or their client, and their comparison."""
