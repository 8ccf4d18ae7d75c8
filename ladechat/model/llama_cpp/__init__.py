"""llama.cpp's C interface: the library, a GGUF file opened by it, and the context that computes passes."""
