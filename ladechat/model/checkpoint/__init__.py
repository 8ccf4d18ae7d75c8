"""Which files of a checkpoint are needed, how they are fetched, and what they hold; no torch."""
