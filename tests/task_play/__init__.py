"""One server with tools that run as tasks, the same play for each transport and driver.

`lab.py` has the server, `wires.py` the ways to reach it, `scenes.py` what is played.
"""
