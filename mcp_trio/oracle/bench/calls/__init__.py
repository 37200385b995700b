"""The calls of a bench: from the command line, a script or a recording."""
