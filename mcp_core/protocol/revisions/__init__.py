"""Methods, dialects and configuration of each revision, as data."""
