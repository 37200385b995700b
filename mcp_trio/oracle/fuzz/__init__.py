"""The fuzzer of other people's servers: cases are drawn, played, judged, confirmed and shrunk.

How the parts join, from the bottom up:

- `_case`: a case is a literal list of steps. It can be cut anywhere, stored, and played without
  hypothesis; a step that makes no sense at its time does nothing.
- `_session`: one conversation with the target as the player sees it: the requests that are open,
  what the server has given out, and the judge, which gets each line that crosses.
- `_stdio`, `_http`: a target, which opens such sessions: `CommandTarget` and `UrlTarget`.
- `_play`: `Player.play(case)` plays a case on a session and returns an `Outcome` with its faults.
- `_probe`: `probe(target)` finds a target's revisions, and what it offers.
- `_steps`: draws cases for these offers. It and the strategies are all that needs hypothesis.
- `_campaign`: draws in a worker thread, plays in the event loop, confirms what was found on a
  fresh target and shrinks it (`_shrink`).
- `_report`: writes traces, a pytest file and the reports.

To play a stored case: `await play_case(target, case)` of `_play`, which opens a fresh session.
"""
