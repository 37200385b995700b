"""The protocol engine: messages, revisions and the connection of both roles. Internal."""
