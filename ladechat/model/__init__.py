"""The forward pass: runners of unmodified transformers models, with the interface that decoders need."""
