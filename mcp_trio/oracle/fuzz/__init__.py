"""The fuzzer of other people's servers: cases are drawn, played, judged, confirmed and shrunk.

How the parts join, from the bottom up:

- `_case`: a case is a literal list of steps. It can be cut anywhere, stored, and played without
  hypothesis. A step that makes no sense when its turn comes does nothing.
- `_session`: one conversation with the target: the open requests, what the server has given out
  (cursors, tasks, ...), and the judge, which gets each line that is sent or received.
- `_stdio`, `_http`: the targets `CommandTarget` and `UrlTarget`, which open such sessions.
- `_play`: `Player.play(case)` plays a case on a session and returns an `Outcome` with its faults.
- `_probe`: `probe(target)` finds a target's revisions, and what it offers.
- `_steps`: draws cases for these offers. Only it and the strategies need hypothesis.
- `_feed`: draws them in a worker thread, for lanes that play them side by side.
- `_campaign`: plays them in lanes, and has the faults that they show examined.
- `_agenda`: which fault is examined next.
- `_examination`: confirms a fault of a case on a fresh target, and shrinks the case (`_shrink`).
- `_habits`: the table of what servers do because of their SDK, which `_sdk_marks` recognizes.
  `_habit_watch` tells these habits from the faults of the author.
- `_findings`: what was found, and whether a fault is worth an examination.
- `_report`: writes traces, a pytest file and the reports.

To play a stored case: `await play_case(target, case)` of `_play`, which opens a fresh session.
"""
