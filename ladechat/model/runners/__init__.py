"""Passes over slots: the KV cache, an unmodified model, CUDA graphs."""
