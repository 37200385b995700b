"""Proxies between a client and a server: they pass bytes on unchanged, and record them."""
