"""Runners of forward passes: the KV cache, an unmodified model, CUDA graphs."""
