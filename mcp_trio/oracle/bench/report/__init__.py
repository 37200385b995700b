"""The turns of a run, and its report: ratios, thresholds, a table, Markdown, JSON and JUnit."""
