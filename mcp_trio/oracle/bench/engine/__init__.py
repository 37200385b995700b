"""The lean engine: prepared bytes to a program or a URL, from one process or several."""
