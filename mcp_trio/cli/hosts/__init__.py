"""The servers of configuration files as commands use them, with the consent of the user."""
