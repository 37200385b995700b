"""The fuzzer of other people's servers: cases are drawn, played, judged, confirmed and shrunk.

How the parts join, from the bottom up:

- `_case`: a case is a literal list of steps. It can be cut anywhere, stored, and played without
  hypothesis. A step that makes no sense when its turn comes does nothing.
- `_damage`: which steps send what a receiver needn't take for a message.
- `_revisions`, `_interoperable_json`: the dialect of a revision; and which JSON all readers
  understand in the same way, so that a server can be held to it.
- `_fault`: what a target did wrong.
- `_session`: one conversation with the target: the requests (`_sent_request`), what the server has
  handed out (cursors, tasks, ...), and the judge, which gets each line that is sent or received.
  Sessions one after the other share a trace (`_shared_trace`).
- `_stdio`, `_http`: the targets `CommandTarget` and `UrlTarget`, which open such sessions.
- `play`: `Player.play(case, session)` plays a case, and returns an `Outcome` with its faults.
- `_probe`: `probe(target)` finds a target's revisions, and what it offers.
- `draw`: draws cases for these offers. Only it and the strategies need hypothesis.
- `classics`: the cases that come before the drawn ones, in a table of kinds with their sources.
- `_known_crashes`: crashes of SDKs that their later versions don't have.
- `causes`: what a fault is about, by which two runs are compared (`_cause`), and what the user has
  accepted (`_baseline`).
- `habits`: what servers do because of their SDK (`_table`), by what an SDK is recognized
  (`_sdk_marks`), and how its habits are told from the author's faults (`_watch`).
- `invariants`: what the server's author checks with functions in a file (`_checks`), and the values
  that it hands from one call to the next (`_handing`).
- `campaign`: a run. `_campaign` plays the cases in lanes, for which `_feed` draws them in a worker
  thread; `_sessions` has the processes that cases share. `_agenda` says which fault is examined
  next, and `_examination` confirms it on a fresh target and shrinks its case (`_shrink`).
  `_findings` has what was found, and `_unseen_rows` says which rows had no opportunity.
- `_report`: writes traces, a pytest file and the reports.

To play a stored case: `await play_case(target, case)` of `play._player`, which opens a fresh
session.
"""
