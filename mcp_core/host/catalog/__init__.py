"""Catalogs: the lists of one server of a host with its pins, and those of all servers merged."""
