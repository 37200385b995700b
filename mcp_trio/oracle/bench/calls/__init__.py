"""The calls of a bench: a tool or a list, those of a script, and those of a recording."""
