"""Compares decoders on one model, in one run: methods, measurements, tables and plots."""
