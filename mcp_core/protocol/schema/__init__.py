"""JSON Schema: compile, bound, validate."""
