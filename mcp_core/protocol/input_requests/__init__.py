"""Elicitation, sampling and roots, including multi round-trip requests."""
