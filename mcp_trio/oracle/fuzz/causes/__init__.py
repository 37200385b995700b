"""Causes of faults, by which two runs are compared, and the faults that a user has accepted."""
