"""Events in words."""

from typing import Any

import pytest
from msgspec.structs import replace

from ladechat.protocol import Loading, Memory, Ready, SamplingDefaults, Settings, TurnFinished
from ladechat.widgets.formatting import (
    describe_finish,
    describe_loading,
    describe_memory,
    describe_model,
    duration,
    introduce,
)

LLAMA = Ready(
    model="meta-llama/Llama-2-7b-chat-hf",
    model_type="llama",
    tokenizer="0",
    parameters=6_738_415_616,
    layers=32,
    vocabulary=32_000,
    context_length=4096,
    device="cuda:0 (NVIDIA H200)",
    dtype="float16",
    chat_template="checkpoint",
    eos_ids=[2],
    load_seconds=12.0,
    settings=Settings(),
    sampling_defaults=SamplingDefaults(do_sample=True, temperature=0.6, top_p=0.9),
)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.0004, "0 ms"), (0.048, "48 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"), (1.0, "1.0 s"), (75.26, "75.3 s")],
)
def test_a_time_has_digits_enough_to_say_something(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def loading(**fields: Any) -> Loading:
    return Loading(stage=1, stages=4, doing="fetching", **fields)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (loading(), "fetching (1/4) …"),
        (loading(fraction=0.256), "fetching · 26 % (1/4) …"),
        (
            loading(fraction=0.237, done_bytes=3_200_000_000, total_bytes=13_476_839_424),
            "fetching · 3.2 of 13.5 GB · 24 % · Esc stops",
        ),
        (loading(done_bytes=0, total_bytes=2_000_000), "fetching · 0.0 of 2.0 MB · 0 % · Esc stops"),
        (loading(done_bytes=7, total_bytes=900), "fetching · 7 of 900 B · 1 % · Esc stops"),
    ],
)
def test_loading_says_how_far_it_is(event: Loading, words: str) -> None:
    assert describe_loading(event) == words


def memory(**fields: int) -> Memory:
    return Memory(**{**dict.fromkeys(Memory.__struct_fields__), **fields})


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (memory(resident_bytes=612_345_678, cache_bytes=2_097_152), "memory 612.3 MB, cache 2.1 MB"),
        (memory(peak_bytes=1_500_000_000, cache_bytes=0), "memory at most 1.5 GB, cache 0 B"),
        (
            memory(
                resident_bytes=900_000_000,
                device_bytes=13_476_839_424,
                reserved_bytes=14_000_000_000,
                cache_bytes=10**9,
            ),
            "GPU memory 14.0 GB, cache 1.0 GB",
        ),
        (memory(resident_bytes=612_345_678), "memory 612.3 MB"),
        (memory(), ""),
        (None, ""),
    ],
)
def test_memory_is_that_of_the_gpu_or_else_that_of_the_process_and_a_peak_is_called_so(
    told: Memory | None, words: str
) -> None:
    assert describe_memory(told) == words


def test_a_model_is_introduced_with_what_it_is_and_with_what_is_not_used_of_it() -> None:
    assert introduce(LLAMA) == (
        "Llama-2-7b-chat-hf: 6.7B parameters, context 4,096, float16 on cuda:0 (NVIDIA H200). The checkpoint's own "
        "sampling defaults are temperature 0.6, top-p 0.9; here the sliders T and P decide."
    )
    assert describe_model(LLAMA) == "6.7B parameters · context 4,096"


def finished(tokens: int, passes: int) -> TurnFinished:
    return TurnFinished(
        turn=1, reason="eos", text="", token_ids=[1] * tokens, steps=passes, prefill_seconds=0.1, decode_seconds=2.0
    )


def test_an_answer_is_summed_up_in_tokens_and_passes() -> None:
    assert describe_finish(finished(140, 10)) == "140 tokens · 10 passes · 14.00 tokens a pass · 70 tok/s"
    assert describe_finish(finished(1, 1)).startswith("1 token · 1 pass · ")


def test_an_answer_whose_passes_were_slowed_down_has_no_rate() -> None:
    """The speed panel leaves those passes out, and so had another rate for the same answer."""
    assert describe_finish(finished(140, 10), timed=False) == "140 tokens · 10 passes · 14.00 tokens a pass"


def test_a_length_limit_that_is_meant_is_named_as_such() -> None:
    cut = replace(finished(64, 10), reason="max_new_tokens")
    assert describe_finish(cut) == f"{describe_finish(finished(64, 10))} · the token limit was reached"
    how = " · /continue goes on, /limit raises it"
    assert describe_finish(cut, may_continue=True) == describe_finish(cut) + how
    assert describe_finish(finished(140, 10), may_continue=True) == describe_finish(finished(140, 10))
    assert describe_finish(cut, limit_meant=True).endswith(f" · lessons stop at {len(cut.token_ids)}")


def test_drafts_that_earlier_answers_left_are_named_as_what_they_are() -> None:
    assert describe_finish(finished(140, 10), remembered=112).endswith(" · 112 drafts remembered from earlier answers")
    assert describe_finish(finished(4, 1), remembered=1).endswith(" · 1 draft remembered from earlier answers")
