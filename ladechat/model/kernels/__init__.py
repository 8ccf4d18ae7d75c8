"""C++ kernels for linear layers, and attention of a few slots, on a CPU."""
