"""The engine: a process that owns a model and talks the protocol."""
