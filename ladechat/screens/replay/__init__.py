"""The replay of a recording."""
