"""Lookahead decoding in other people's code."""
