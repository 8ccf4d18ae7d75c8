"""The floor of a pass: what has to be read and multiplied, whatever the machine."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks import floor
from benchmarks.floor import Machine, Work, bandwidth, fastest, matrix_rate, product_rate, work_of, work_of_model
from tests.tiny import DEMO

CPU = torch.device("cpu")


def test_a_pass_of_the_bundled_model_reads_all_its_weights_and_the_cache() -> None:
    work = work_of(DEMO, torch.float32, torch.float32)
    assert work.weights == 5_311_744  # its embedding is its output head, too
    assert work.weight_bytes == 4 * work.weights
    assert work.cached_bytes_per_token == 6 * 2 * 256 * 4
    assert work_of(DEMO, torch.float32, torch.bfloat16) == replace(work, weight_bytes=2 * work.weights)


def test_of_an_embedding_of_its_own_only_a_few_rows_are_read() -> None:
    shape: dict[str, Any] = {"vocab_size": 1000, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2}
    apart = LlamaForCausalLM(LlamaConfig(**shape, **heads, tie_word_embeddings=False))
    tied = LlamaForCausalLM(LlamaConfig(**shape, **heads, tie_word_embeddings=True))
    assert work_of_model(apart).weights == work_of_model(tied).weights
    assert work_of_model(apart).cached_bytes_per_token == 2 * 2 * 2 * 16 * 4


def test_the_floor_is_the_slower_of_reading_and_arithmetic() -> None:
    work = Work(weight_bytes=1000, weights=500, cached_bytes_per_token=10, attention_per_pair=4)
    reads, multiplies = Machine(bandwidth=1e3, matrix_rate=1e9), Machine(bandwidth=1e9, matrix_rate=1e3)
    assert work.seconds(1, 100, reads) == 2.0
    assert work.seconds(30, 100, reads) == 2.0
    assert work.seconds(1, 0, multiplies) == 0.504
    assert work.seconds(2, 10, multiplies) == 2 * (500 + 4 * 12) / 1e3


def test_with_amx_numbers_in_float32_take_three_products_with_weights_in_bfloat16(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates = {torch.float32: 10.0, torch.bfloat16: 60.0, torch.float16: 60.0}
    monkeypatch.setattr(floor, "matrix_rate", lambda dtype, _: rates[dtype])
    assert product_rate(torch.float32, torch.bfloat16, CPU, tiles=True) == 20
    assert product_rate(torch.float32, torch.bfloat16, CPU, tiles=False) == 10
    assert product_rate(torch.float32, torch.float16, CPU, tiles=True) == 10
    assert product_rate(torch.bfloat16, torch.bfloat16, CPU, tiles=True) == 60


def test_what_is_measured_is_a_rate() -> None:
    assert bandwidth(1 << 20, torch.float32, CPU) > 0
    assert matrix_rate(torch.float32, CPU) > 0
    calls: list[int] = []
    assert fastest(lambda: calls.append(1), CPU) >= 0 and len(calls) > 2
