"""One conversation over a byte stream."""
