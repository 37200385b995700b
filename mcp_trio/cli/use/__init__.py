"""The subcommands that connect to a server, and `demo`, one in each file."""
