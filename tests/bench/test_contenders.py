"""What takes part answers as plain decoding does, and says truly what that took."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.generation.streamers import BaseStreamer

from ladechat.bench.contenders import MAKERS, Ours, Transformers, check_windows, make_contenders
from ladechat.bench.options import CONTENDERS, Refused
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Draft, Limits, Origin, Source, Step
from ladechat.model.eager import EagerRunner
from ladechat.model.loading import LoadedModel, load
from tests.engine.tokenizers import sentencepiece
from tools.tiny_models import tiny_model

SETTINGS = ((3, 3, 3), (5, 4, 2))
LIMITS = Limits(24)


@pytest.fixture
def prompt(loaded: LoadedModel) -> list[int]:
    """Some text and what the model goes on with, so that there is something to look up in it."""
    start = list(loaded.tokenizer.encode("the pool keeps the n-grams of the pool, the window"))
    steps = AutoregressiveDecoder(loaded.runner).run(start, Limits(60))
    return start + [token for step in steps for token in step.tokens]


def test_what_can_be_named_is_what_can_be_made() -> None:
    assert tuple(MAKERS) == CONTENDERS


def test_lookahead_takes_part_once_for_each_of_its_settings(loaded: LoadedModel) -> None:
    names = [contender.name for contender in make_contenders(loaded, CONTENDERS, SETTINGS)]
    assert len(names) == len(set(names)) == len(CONTENDERS) + 1
    assert {"lookahead 3,3,3", "lookahead 5,4,2"} <= set(names)


def test_every_contender_answers_as_plain_decoding_does_also_to_the_end_of_the_text(
    loaded: LoadedModel, prompt: list[int]
) -> None:
    plain, *others = make_contenders(loaded, CONTENDERS, SETTINGS)
    expected = plain.answer(prompt, LIMITS).tokens
    assert len(expected) == LIMITS.max_new_tokens
    early = Limits(LIMITS.max_new_tokens, frozenset([expected[9]]))
    until = expected[: expected.index(expected[9]) + 1]
    for contender in others:
        assert contender.answer(prompt, LIMITS).tokens == expected, contender.name
        assert contender.answer(prompt, early).tokens == until, contender.name


def test_plain_decoding_of_both_kinds_takes_one_pass_a_token(loaded: LoadedModel, prompt: list[int]) -> None:
    for contender in make_contenders(loaded, ("autoregressive", "transformers"), SETTINGS):
        answer = contender.answer(prompt, LIMITS)
        assert answer.passes == len(answer.tokens) and answer.first_tokens == 1


class Chunks(BaseStreamer):
    """How many tokens `generate` brings at a time: the prompt, then one lot for each step."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def put(self, value: torch.Tensor) -> None:
        self.sizes.append(value.numel())

    def end(self) -> None:
        pass


def test_the_passes_of_transformers_are_the_lots_in_which_its_tokens_come(
    loaded: LoadedModel, prompt: list[int]
) -> None:
    chunks = Chunks()
    answer = Transformers("lookup", loaded, prompt_lookup_num_tokens=10, streamer=chunks).answer(prompt, LIMITS)
    read, *lots = chunks.sizes
    assert read == len(prompt) and sum(lots) == len(answer.tokens) > len(lots)
    assert answer.passes == len(lots) and answer.first_tokens == lots[0] > 1


def test_an_answer_of_one_step_has_all_its_tokens_in_the_first(loaded: LoadedModel, prompt: list[int]) -> None:
    for contender in make_contenders(loaded, CONTENDERS, SETTINGS):
        answer = contender.answer(prompt, Limits(1))
        assert (answer.passes, answer.first_tokens, len(answer.tokens)) == (1, 1, 1)


def test_a_checkpoints_own_generation_settings_have_no_say_and_stay(loaded: LoadedModel, prompt: list[int]) -> None:
    model: Any = loaded.runner.model
    own = model.generation_config
    contender = Transformers("transformers", loaded)
    expected = contender.answer(prompt, LIMITS).tokens
    own.repetition_penalty = 50.0
    try:
        assert contender.answer(prompt, LIMITS).tokens == expected
        assert model.generation_config is own
    finally:
        own.repetition_penalty = None


def test_every_answer_begins_with_an_empty_cache(loaded: LoadedModel, prompt: list[int]) -> None:
    read: list[int] = []

    def note(_module: object, _arguments: object, options: dict[str, Any]) -> None:
        read.append(options["input_ids"].shape[1])

    for contender in make_contenders(loaded, CONTENDERS, SETTINGS):
        contender.answer(prompt, Limits(2))
        read.clear()
        with loaded.runner.model.register_forward_pre_hook(note, with_kwargs=True):
            contender.answer(prompt, Limits(2))
        assert read[0] >= len(prompt) - 1, contender.name


class Drafting:
    """A decoder of two steps with known verdicts."""

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        sources: tuple[Source, ...] = ("window", "window", "prompt", "prompt")
        path = (0,)  # so that the others were refused, refused and never judged
        draft = Draft((7, 8, 9, 10), (-1, 0, -1, 2), sources, path)
        for tokens in ((7, 4), (5,)):
            origins: list[Origin] = ["model"] * len(tokens)
            yield Step(tokens, (0.0,) * len(tokens), tuple(origins), 5, 3, 0.1, draft)


def test_drafts_are_counted_by_source_and_those_never_judged_are_left_out(loaded: LoadedModel) -> None:
    answer = Ours("drafting", loaded, lambda runner: Drafting()).answer([1, 2, 3], LIMITS)
    assert answer.tokens == (7, 4, 5) and answer.passes == 2 and answer.first_tokens == 2
    assert answer.tested is not None and dict(answer.tested) == {"window": 4, "prompt": 2}
    assert {source: answer.accepted[source] for source in answer.tested} == {"window": 2, "prompt": 0}


class Busy:
    """A decoder that is given a clock, works between its two steps and goes on working behind the last."""

    def __init__(self) -> None:
        self.now = 0.0

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        for token, seconds in ((7, 2.0), (8, 3.0)):
            self.now += seconds
            yield Step((token,), (0.0,), ("model",), 1, 3, seconds)
            self.now += 4.0


def test_an_answer_is_timed_until_its_last_token_is_there(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy()
    monkeypatch.setattr(time, "perf_counter", lambda: busy.now)
    answer = Ours("busy", loaded, lambda runner: busy).answer([1, 2, 3], LIMITS)
    assert (answer.first_seconds, answer.rest_seconds) == (2.0, 4.0 + 3.0)


def test_a_window_that_reaches_beyond_the_context_is_refused(loaded: LoadedModel) -> None:
    prompt = list(range(3, 23))
    check_windows([(5, 3, 5)], longest_prompt=20, context_length=25)
    with pytest.raises(Refused, match="N 4"):
        check_windows([(5, 3, 5), (5, 4, 5)], longest_prompt=20, context_length=25)
    for ngram, there in ((3, True), (4, False)):
        runner = EagerRunner(loaded.runner.model, context_length=25)
        first = next(LookaheadDecoder(runner, LookaheadSettings(5, ngram, 5)).run(prompt, Limits(4)))
        assert (first.window is not None) is there


def test_a_model_that_is_decoded_plainly_can_be_measured_against_transformers_and_drafters_are_refused(
    tmp_path: Path, prompt: list[int]
) -> None:
    tokenizer = sentencepiece()
    tiny_model("mamba", vocab_size=len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    plain_only = load(tmp_path, "mamba", "cpu", "float32", lambda stage: None, lambda fraction: None)
    contenders = make_contenders(plain_only, ("autoregressive", "transformers"), SETTINGS)
    ours, theirs = (contender.answer([5, 8, 13], Limits(6)) for contender in contenders)
    assert ours.tokens == theirs.tokens
    with pytest.raises(Refused, match=r"one token a pass.*without jacobi, transformers-prompt-lookup"):
        make_contenders(plain_only, ("autoregressive", "jacobi", "transformers-prompt-lookup"), SETTINGS)
