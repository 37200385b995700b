"""Data of the command that later runs of it use: handshakes and logins."""
