"""Adapters to libraries that do I/O, for every driver: stores in files and databases."""
