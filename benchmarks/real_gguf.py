"""Writes a checkpoint as a GGUF file in 16 bits, for llama.cpp in `benchmarks.real`."""

from pathlib import Path

from gguf import GGMLQuantizationType
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.gguf_files import write_gguf


def write_in_16_bits(folder: Path, file: Path) -> Path:
    """Write the Llama of a folder, its output layer once if that is its embedding too."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    tied = {"output.weight": None} if model.config.tie_word_embeddings else {}
    return write_gguf(file, model, AutoTokenizer.from_pretrained(folder), GGMLQuantizationType.BF16, tensors=tied)
