"""Hosts on this machine: the files of programs that start servers."""
