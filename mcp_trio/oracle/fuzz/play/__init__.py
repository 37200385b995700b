"""The play of one case: its steps are sent, and what is wrong with the responses is collected.

How the parts join, from the bottom up:

- `_clients`: the sessions of the case's client, and of a second one beside it.
- `_play`: `Play`, the state that steps share. It builds and sends messages.
- `_waiting`: how long a response, a call and the start of a process may take.
- `_opening`: the step `open`.
- `_unanswered`: which requests without a response are faults.
- `_ending`: the end of a conversation and of a case: the probe, crashes and hangs.
- `_request_steps`, `_reaction_steps`, `_http_steps`, `_stress_steps`: the other steps. Each is a
  function that takes a `Play` and the step's further words. `_step_table` has all of them by name.
- `_stress_budget`: limits of the stress steps in one case.
- `_unknown`: faults of serving what doesn't exist.
- `_player`: `Player.play(case, session)` plays a case. `play_case` opens the session itself.
"""
