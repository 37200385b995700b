"""Record conversations in trace files."""
