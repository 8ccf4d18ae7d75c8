"""Widgets, one panel per file; each is drawn from engine events."""
