"""Tasks at run time: the store in memory, and what runs handlers that outlive their request."""
