"""Habits of SDKs: what servers do because of the SDK that they were built with."""
