"""The tasks that a server runs for a client: to start them, to follow them, to find them again."""
