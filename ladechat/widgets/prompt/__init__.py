"""The prompt, and what is shown above it."""
