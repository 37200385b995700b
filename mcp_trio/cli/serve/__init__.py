"""The subcommands that serve a file, register it, and set up a shell, one in each file."""
