"""Data that the command stores for later runs: handshakes, logins and tasks."""
