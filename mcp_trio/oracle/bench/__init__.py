"""The load generator: measured calls to any server, and what they show.

How the parts join, from the bottom up:

- `_histogram`: `Histogram`, the counts of latencies from which percentiles are read.
- `_turn`: `Pace` says how fast to call, a `BenchTurn` has the figures of a stretch of time.
- `_requests`: a `PreparedCall` is a request without its id, and the workers of `Work` draw them.
- `_schedule`: the intended starts of an open loop.
- `_process`: the processor time and the memory of a target's processes.
- `_templates`: requests as prepared bytes. `_verdicts`: the cause by which a response is an error.
- `_tally`: counts the calls of a turn. It decodes one response in a hundred, and each of another
  length.
- `_http_reader`: finds the end of a response. `_handshake`: negotiates a revision.
- `_http_load`, `_stdio_load`: the lean engine. It writes prepared bytes, and searches received ones
  for the end of a response.
- `_load`: `open_load(target)` opens a `TargetLoad`, whose `turn` measures.
- `_callers`: the same turns for calls that are coroutines. `_client_load`: a `Client` makes them.
  `_conversations`: whole conversations as calls.
- `_script`, `_recorded`: the calls of a TOML file, and of recorded conversations.
- `_sessions`, `_progress`: figures that are measured once.
"""
