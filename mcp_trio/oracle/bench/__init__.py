"""The load generator: measured calls to any server, and what they show.

How the parts join, from the bottom up:

- `_histogram`: `Histogram`, the counts of latencies from which percentiles are read.
- `_turn`: `Pace` says how fast to call, a `BenchTurn` has the figures of a stretch of time. A
  `TargetLoad` measures it.
- `_requests`: a `PreparedCall` is a request without its id, and the workers of `Work` draw them.
- `_schedule`: the intended starts of an open loop.
- `_process`: the processor time and the memory of a target's processes.
- `_verdicts`: the cause by which a response is an error. `_tally`: counts the calls of a turn. It
  decodes one response in a hundred, and each of another length.
- `calls`: what is called, from options, a TOML file or recorded conversations.
- `engine`: `open_load(target)` opens a `TargetLoad` that writes prepared bytes, and searches
  received ones for the end of a response.
- `client`: the same turns for calls that are coroutines: a `Client` makes them, or each is a whole
  conversation. And figures that are measured once.
- `report`: a run is the turns of all targets, and what they show.
"""
