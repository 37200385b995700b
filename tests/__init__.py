"""The tests. They mirror the packages; CONTRIBUTING.md says which kind of test lives where."""
