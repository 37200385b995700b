"""`--server NAME`: the servers of configuration files as commands use them, with consent."""
