"""What a bench calls: a tool or a list, the calls of a script, and those of a recording."""
