"""The app on a terminal: its driver, look, messages and clipboard."""
