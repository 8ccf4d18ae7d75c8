"""Decoders side by side on one model, in one run: what takes part, what is measured, tables and plots."""
