"""The algorithms: plain values in, steps out. No I/O, no UI, no model class."""
