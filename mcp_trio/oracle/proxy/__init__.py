"""Proxies between a client and a server, which pass on bytes unchanged and report what crosses."""
