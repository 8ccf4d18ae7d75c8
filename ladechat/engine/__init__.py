"""The engine: a process that owns a model and speaks the protocol."""
