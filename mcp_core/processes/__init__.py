"""What programs start: their environment, their process tree, Windows commands and reloads."""
