"""Clients, workers, their store and the network between them: one world, decided by one number.

1. A seed makes a `Plan`: a list of steps, which are what clients do, and what goes wrong. Playing a
   plan twice gives the same events, in every process.
2. Everything runs in one trio loop on a virtual clock. The workers are real servers; the network,
   the store's connections and the processes are not.
3. When the last fault is over, the world has 30 virtual seconds to come to rest. Then, and at
   any time before, the oracle notes what is wrong.

`python -m tests.simulation --seed N` plays one seed and prints its events.
"""
