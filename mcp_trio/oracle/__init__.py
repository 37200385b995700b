"""Tools that try the peers of others: fuzzer, proxy and replay."""
