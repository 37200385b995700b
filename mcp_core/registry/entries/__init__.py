"""One file per kind of declaration."""
