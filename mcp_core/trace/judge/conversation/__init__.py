"""The state of one conversation as both sides show it, for the judge's rules."""
