"""Linear layers and attention of a few slots on a CPU, in C++."""
