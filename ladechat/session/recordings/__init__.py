"""Recordings: the event stream as a file, written, read and played."""
