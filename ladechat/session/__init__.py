"""Sources of events: to the UI, a live engine is one of them."""
