"""Recording of conversations in trace files."""
