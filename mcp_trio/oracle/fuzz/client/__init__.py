"""The fuzzer of other people's clients: the server of a conversation follows a script.

How the parts join, from the bottom up:

- `_script_case`: a case is a literal list of steps, as in `mcp_trio.oracle.fuzz`: what the n-th
  request of the client is answered with, and what is sent before that.
- `_results`: what a correct server answers. `_odd`: how that can be made wrong.
- `_script`: `ScriptedServer.receive(message)` returns the acts that a case says. No I/O.
- `_relay`: a program that joins the pipes of a client to a socket of this process.
- `_http`: the HTTP side of a scripted server.
- `_client_session`: one start of the client, with the judge and the links to it.
- `_client_play`: `ClientPlayer.play(case, session)` plays a case and returns an `Outcome`.
- `_client_target`: `ClientTarget`, a command, and how it reaches the server.
- `_source`: draws cases from a seed. Nothing here needs hypothesis.
- `_client_campaign`: the campaign of `mcp_trio.oracle.fuzz` with these parts.
"""
