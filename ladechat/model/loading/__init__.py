"""From the files of a checkpoint to a checked model: weights, quantisation, memory, self-check."""
