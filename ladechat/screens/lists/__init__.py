"""Screens with a list: conversations, models, settings."""
