"""Catalogs: one server's lists with its pins, and the lists of all a host's servers merged."""
