"""Lists to choose from, and a field beside them."""
