"""The servers of configuration files as commands use them, with the user's consent."""
