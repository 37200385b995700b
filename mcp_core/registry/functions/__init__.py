"""From a Python signature to schemas and values."""
