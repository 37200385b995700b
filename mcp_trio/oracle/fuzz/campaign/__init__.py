"""Runs of the fuzzer: lanes that play cases, and examinations of what they show."""
