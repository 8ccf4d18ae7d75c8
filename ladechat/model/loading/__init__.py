"""Loads a checked model from the files of a checkpoint: weights, quantisation, memory, self-check."""
