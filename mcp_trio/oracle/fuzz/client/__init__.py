"""The fuzzer of other people's clients: it is their server, and follows a script.

How the parts join, from the bottom up:

- `_script_case`: a case is a literal list of steps, as in `mcp_trio.oracle.fuzz`. A step says how
  the client's n-th request is answered, or what is sent before the answer.
- `_results`: what a correct server answers. `_questions`: what it asks its client.
  `_wrong_answers`: how to make answers wrong.
- `_script`: `ScriptedServer.receive(message)` returns the actions that the case asks for. No I/O.
- `_relay`: a program that joins a client's pipes to a socket of this process.
- `_http`: the HTTP side of a scripted server.
- `_client_session`: one run of the client process, with its judge and its connections.
- `_client_play`: `ClientPlayer.play(case, session)` plays a case and returns an `Outcome`.
- `_client_target`: `ClientTarget`, a command, and how it reaches the server.
- `_source`: draws cases from a seed. Nothing here needs hypothesis.
- `_client_campaign`: the campaign of `mcp_trio.oracle.fuzz` with these parts.
"""
