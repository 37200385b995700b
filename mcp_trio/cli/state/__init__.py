"""Data of the command that later runs of it use: handshakes, logins and tasks."""
