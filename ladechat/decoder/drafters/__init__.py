"""The drafters, which propose tokens: one per file."""
