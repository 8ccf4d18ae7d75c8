"""Conversations: what is asked and answered, and the files that save it."""
