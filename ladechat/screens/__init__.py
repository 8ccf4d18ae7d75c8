"""One screen a file; `view` is what they are composed of."""
