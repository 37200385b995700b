"""The score of the fuzzer: how many faults it finds in right servers that are broken by script.

- `servers`: the right servers.
- `operators`: what breaks them. An operator changes what is between a server and its client, and
  names the rows that this breaks by construction. A mutant is a server with an operator at one of
  its places.
- `wrapper`: the mutants as targets of the fuzzer, in memory and on a virtual clock.
- `witness`: a directed conversation for each mutant. It counts only if that shows the breach.
- `odd_habits`: what the right servers and clients may do besides. The fuzzer must find nothing.
- `score`: campaigns against the mutants, the held-out third, and the baseline.

    python -m tests.oracle_score --cases 3000
"""
