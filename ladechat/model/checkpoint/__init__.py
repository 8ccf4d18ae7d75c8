"""The files of a checkpoint: which are needed, how they are fetched, and their content. Imports no torch."""
