"""Single lines of a screen: keys, status, messages, search, progress."""
