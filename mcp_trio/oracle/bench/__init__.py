"""The load generator: measured calls to any server, and what they show.

How the parts join, from the bottom up:

- `_histogram`: `Histogram`, the counts of latencies from which percentiles are read.
- `_turn`: `Pace` says how fast to call, a `BenchTurn` has the figures of a stretch of time.
- `_requests`: a `PreparedCall` is a request without its id, and the workers of `Work` draw them.
- `_schedule`: the intended starts of an open loop.
- `_process`: the processor time and the memory of a target's processes.
- `_answers`: finds ids and errors in responses, mostly without decoding them.
- `_http_load`, `_stdio_load`: the lean engine. It writes prepared bytes, searches received ones for
  the end of a response, and decodes one in a hundred once the clock has stopped.
- `_load`: `open_load(target)` opens a `TargetLoad`, whose `turn` measures.
"""
