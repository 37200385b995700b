"""Tasks of a server as its client sees them: starting, following and finding them again."""
