"""Property-based fuzzing of the core: invariants, inputs that try to break them, and an engine that tries for long.

`python -m fuzz TARGET --seconds 60` runs one target; `fuzz/README.md` says what there is and how to add one. Messages of
every revision for tests of your own are in `fuzz.messages`, ways to damage them in `fuzz.mutations`.

Rules of this package:

1. A target is one file, `fuzz_*.py`. Its invariant stands first; the exceptions it expects are the documented ones and no
   others, so that its except-lists are the contract. Any other exception is a finding.
2. A case is plain data, so that it can be read, committed, replayed and pasted into a test.
3. Who judges shares no code with who is judged: verdicts come from the standard library or from a model written here.

It is part of the tests: it may look inside the core, and nothing of it is in the wheel.
"""
