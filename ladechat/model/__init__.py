"""The forward pass: unmodified transformers models behind the interface that decoders need."""
