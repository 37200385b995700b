"""Property-based fuzzing of the core: invariants, generated inputs and an engine for long runs.

`python -m fuzz TARGET --seconds 60` runs one target. `fuzz/README.md` lists the targets and
explains how to add one. What it draws messages and damage from is `mcp_trio.testing.strategies`,
which other projects can use for their tests.

Rules of this package:

1. A target is one file, `fuzz_*.py`, which begins with its invariant. It catches only documented
   exceptions, by name. Any other exception is a finding.
2. A case is plain data: it can be read, committed, replayed and pasted into a test.
3. An oracle shares no code with the code under test. Expected results come from the standard
   library or from a model written here.

The package belongs to the tests: it may use private names of the core, and it is not in the wheel.
"""
