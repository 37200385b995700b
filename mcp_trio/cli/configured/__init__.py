"""`--server NAME`: how a command approves, starts and calls a server of a configuration file."""
