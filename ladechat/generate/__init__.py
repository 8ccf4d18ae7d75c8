"""Lookahead decoding as a library, for use with transformers' `generate`."""
