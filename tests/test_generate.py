"""`lookahead_generate` returns what `generate` returns, called by itself or handed to it."""

import random
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import (
    AutoTokenizer,
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    StoppingCriteria,
    StoppingCriteriaList,
    StopStringCriteria,
    SynthIDTextWatermarkingConfig,
    T5Config,
    T5ForConditionalGeneration,
    TextStreamer,
    WatermarkingConfig,
)
from transformers.cache_utils import DynamicCache
from transformers.generation.streamers import BaseStreamer

from ladechat import lookahead_generate, lookahead_steps
from ladechat.decoder.selection import Selection
from tests.tiny import DEMO, VOCABULARY, demo_model, demo_prompt, plain, random_model, tokens_of

PROMPT = torch.tensor([[5, 8, 13, 21, 34, 5, 8, 13]])
PAD = 0


def generate(model: Any, *arguments: Any, **request: Any) -> Any:
    """What transformers makes of a request."""
    return model.generate(*arguments, **request)


def lookahead(model: PreTrainedModel, *arguments: Any, **request: Any) -> Any:
    """What lookahead decoding makes of it."""
    return lookahead_generate(model, *arguments, **request)


class Collected(BaseStreamer):
    """What a streamer was given."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []
        self.ended = False

    def put(self, value: torch.Tensor) -> None:
        assert not self.ended
        self.given.append(value.flatten().tolist())

    def end(self) -> None:
        self.ended = True


class Ban(LogitsProcessor):
    """Forbids what the text ended with three tokens ago: a processor of one's own, which looks at the text."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.scatter(1, input_ids[:, -3:-2], -torch.inf)


class AfterTwins(StoppingCriteria):
    """Ends a row when two tokens are alike modulo five."""

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return input_ids[:, -1] % 5 == input_ids[:, -2] % 5


class Enough(StoppingCriteria):
    """Ends a row at the eleventh token: one that counts."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        self.asked += 1
        return torch.full((input_ids.shape[0],), self.asked >= 11)


def padded_batch(dice: random.Random, rows: int) -> dict[str, torch.Tensor]:
    lengths = [dice.randint(1, 20) for _ in range(rows)]
    longest = max(lengths)
    ids = [[PAD] * (longest - n) + [dice.randrange(3, VOCABULARY) for _ in range(n)] for n in lengths]
    mask = [[0] * (longest - n) + [1] * n for n in lengths]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


SCORES = {"return_dict_in_generate": True, "output_scores": True, "output_logits": True}


def random_request(dice: random.Random) -> dict[str, Any]:
    """Arguments of `generate`. Sampling only with one row: in `generate` rows share their draws.

    Beams only with one row or without a draw, for the same reason, and stop strings elsewhere: they need a tokenizer.
    """
    rows = dice.choice([1, 1, 2, 3])
    request: dict[str, Any] = {
        "max_new_tokens": dice.randint(1, 30),
        "pad_token_id": PAD,
        "eos_token_id": dice.choice([[96], [7, 40, 77], [2]]),
        "do_sample": rows == 1 and dice.random() < 0.5,
    }
    options: dict[str, Any] = {
        "repetition_penalty": 1.3,
        "no_repeat_ngram_size": 3,
        "min_new_tokens": 5,
        "bad_words_ids": [[11], [12, 13]],
        "suppress_tokens": [20, 21],
        "forced_eos_token_id": 96,
        "exponential_decay_length_penalty": (4, 1.2),
        "sequence_bias": {(30,): 3.0},
        "renormalize_logits": True,
        "logits_processor": LogitsProcessorList([Ban()]),
        "stopping_criteria": StoppingCriteriaList([AfterTwins(), Enough()]),
        "begin_suppress_tokens": [8, 13],
        "watermarking_config": WatermarkingConfig(bias=2.0),
        "min_length": 24,
    }
    if rows == 1:
        options |= {
            "encoder_repetition_penalty": 1.2,
            "encoder_no_repeat_ngram_size": 2,
            "guidance_scale": 1.5,
            "prefix_allowed_tokens_fn": evens,
        }
    if request["do_sample"]:
        options |= {
            "top_h": 0.6,
            "eta_cutoff": 1e-3,
            "temperature": 0.7,
            "top_k": 5,
            "top_p": 0.9,
            "min_p": 0.05,
            "typical_p": 0.9,
            "epsilon_cutoff": 1e-3,
        }
    request |= {name: value for name, value in options.items() if dice.random() < 0.2}
    if dice.random() < 0.1:
        request |= {"num_beams": 2}
    elif dice.random() < 0.2:
        request |= SCORES
    return {**request, **padded_batch(dice, rows)}


def evens(_: int, ids: torch.Tensor) -> list[int]:
    """Every other token, by the last one."""
    return list(range(int(ids[-1]) % 2, VOCABULARY, 2))


def as_config(dice: random.Random, request: dict[str, Any]) -> dict[str, Any]:
    """The same request, at times with a generation config in the place of its options."""
    if dice.random() < 0.7:
        return request
    outside = ("input_ids", "attention_mask", "logits_processor", "stopping_criteria", "prefix_allowed_tokens_fn")
    given = {name: request[name] for name in outside if name in request}
    return {**given, "generation_config": GenerationConfig(**{k: v for k, v in request.items() if k not in given})}


def assert_same(result: Any, expected: Any, about: object = None) -> None:
    """Sequences are equal; scores, where there are any and the row has not ended, nearly."""
    if isinstance(expected, torch.Tensor):
        assert torch.equal(result, expected), about
        return
    assert torch.equal(result.sequences, expected.sequences), about
    for ours, theirs in ((result.scores, expected.scores), (result.logits, expected.logits)):
        for mine, other in zip(ours, theirs, strict=True):
            running = ~mine.isnan().all(dim=1)
            torch.testing.assert_close(mine[running], other[running], atol=1e-3, rtol=1e-3, equal_nan=True)


def check_a_random_request(seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(dice.randrange(6), num_key_value_heads=dice.choice([1, 2, 4]))
    request = random_request(dice)
    request = as_config(dice, request)
    numbers = {"window": dice.randint(1, 9), "ngram": dice.randint(2, 6), "guesses": dice.randint(0, 9)}
    door = dice.random() < 0.5
    ask = partial(generate, custom_generate=lookahead_generate) if door else lookahead
    torch.manual_seed(seed)
    try:
        expected = generate(model, **deepcopy(request))
    except (ValueError, RuntimeError):  # options that together leave no token at all
        torch.manual_seed(seed)
        with pytest.raises((ValueError, RuntimeError, FloatingPointError)):
            ask(model, **request, **numbers)
        return
    torch.manual_seed(seed)
    assert_same(ask(model, **request, **numbers), expected, f"seed {seed}")


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_output_is_that_of_generate(first: int) -> None:
    for seed in range(first, first + 10):
        check_a_random_request(seed)


@pytest.mark.full
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_output_is_that_of_generate_in_five_hundred_more_cases(first: int) -> None:
    for seed in range(first, first + 50):
        check_a_random_request(seed)


@pytest.mark.parametrize("do_sample", [False, True])
def test_scores_and_logits_are_those_of_generate(do_sample: bool) -> None:
    model = random_model(2)
    request = {"max_new_tokens": 12, "repetition_penalty": 1.2, "do_sample": do_sample, "pad_token_id": PAD, **SCORES}
    torch.manual_seed(1)
    expected = generate(model, PROMPT, **request)
    torch.manual_seed(1)
    result = lookahead(model, PROMPT, **request)
    assert len(result.scores) == len(result.logits) == 12
    assert_same(result, expected)


def test_a_row_that_has_ended_has_no_scores_any_more() -> None:
    model = random_model(1)
    batch = padded_batch(random.Random(3), 2)
    first = plain(model, batch["input_ids"][0][batch["attention_mask"][0].bool()].tolist(), 3)
    second = plain(model, batch["input_ids"][1][batch["attention_mask"][1].bool()].tolist(), 8)
    end = first[2]
    assert end not in second and end not in first[:2]
    result = lookahead(
        model, **batch, max_new_tokens=8, eos_token_id=end, pad_token_id=PAD, return_dict_in_generate=True,
        output_scores=True,
    )  # fmt: skip
    assert result.sequences[0, -5:].tolist() == [PAD] * 5
    assert [bool(score[0].isnan().all()) for score in result.scores] == [False] * 3 + [True] * 5
    assert not any(bool(score[1].isnan().any()) for score in result.scores)


@pytest.mark.parametrize("door", [True, False])
@pytest.mark.parametrize("more", [{}, {"do_sample": True}, {"num_return_sequences": 2}, SCORES])
def test_beam_search_is_that_of_transformers(door: bool, more: dict[str, Any]) -> None:
    model = random_model(4)
    request = {**padded_batch(random.Random(1), 2), "max_new_tokens": 10, "num_beams": 3, "pad_token_id": PAD, **more}
    torch.manual_seed(2)
    expected = generate(model, **request)
    torch.manual_seed(2)
    if door:
        result = generate(model, **request, custom_generate=lookahead_generate, window=4)
    else:
        result = lookahead(model, **request, window=4)
    assert_same(result, expected)


def test_what_keeps_a_state_keeps_one_for_each_row() -> None:
    model = random_model(4)
    batch = {**padded_batch(random.Random(1), 3), "max_new_tokens": 14, "pad_token_id": PAD, "eos_token_id": 96}

    def with_state(ask: Callable[..., Any], *processors: LogitsProcessor) -> Any:
        criteria = StoppingCriteriaList([Enough()])
        return ask(model, **batch, logits_processor=LogitsProcessorList(processors), stopping_criteria=criteria)

    expected = with_state(generate, BanAtTheThird())
    assert torch.equal(with_state(lookahead, BanAtTheThird()), expected)
    assert not torch.equal(with_state(generate), expected)


class BanAtTheThird(LogitsProcessor):
    """Counts the tokens of a text, and forbids the likeliest one where it comes to three: one that keeps a state."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.asked += 1
        return scores.scatter(1, scores.argmax(1, keepdim=True), -torch.inf) if self.asked == 3 else scores


def test_a_model_that_cannot_verify_drafts_is_decoded_plainly_and_says_so() -> None:
    model = random_model(1, "bloom", n_head=4, n_layer=2)
    request = {"max_new_tokens": 12, "pad_token_id": PAD}
    with pytest.warns(UserWarning, match="ALiBi"):
        result = lookahead(model, PROMPT, **request)
    assert torch.equal(result, generate(model, PROMPT, **request))
    with pytest.warns(UserWarning, match="ALiBi"):
        steps = list(lookahead_steps(model, PROMPT, max_new_tokens=12))
    assert [len(step.tokens) for step in steps] == [1] * 12


def test_several_answers_to_one_prompt_are_rows_of_their_own() -> None:
    model = random_model(4)
    request = {"max_new_tokens": 10, "do_sample": True, "num_return_sequences": 3, "pad_token_id": PAD}
    torch.manual_seed(5)
    result = lookahead(model, PROMPT, **request)
    assert result.shape == (3, PROMPT.shape[1] + 10)
    assert len({tuple(row) for row in result.tolist()}) == 3


# --- text ------------------------------------------------------------------------------------------------------------


def text_model() -> tuple[PreTrainedModel, Any, torch.Tensor]:
    """The bundled model, its tokenizer and a question."""
    return demo_model(), AutoTokenizer.from_pretrained(DEMO), torch.tensor([demo_prompt("What is the n-gram pool?")])


@pytest.mark.parametrize("door", [True, False])
def test_a_streamer_gets_what_generate_gives_it(door: bool) -> None:
    model = random_model(1)
    expected, ours = Collected(), Collected()
    generate(model, PROMPT, max_new_tokens=15, streamer=expected, eos_token_id=[7, 40])
    if door:
        loop = partial(lookahead_generate, streamer=ours)
        result = generate(model, PROMPT, max_new_tokens=15, eos_token_id=[7, 40], custom_generate=loop)
    else:
        result = lookahead(model, PROMPT, max_new_tokens=15, streamer=ours, eos_token_id=[7, 40])
    assert ours.given == expected.given and ours.ended
    assert [token for piece in ours.given for token in piece] == result[0].tolist()


def test_streamed_text_is_the_returned_text(capsys: pytest.CaptureFixture[str]) -> None:
    model, tokenizer, prompt = text_model()
    streamer = TextStreamer(tokenizer, skip_prompt=True)
    result = lookahead(model, prompt, max_new_tokens=30, streamer=streamer)
    assert capsys.readouterr().out == tokenizer.decode(result[0, prompt.shape[1] :]) + "\n"


def test_stop_strings_cut_where_transformers_cuts() -> None:
    model, tokenizer, prompt = text_model()
    answer = generate(model, prompt, max_new_tokens=40)[0, prompt.shape[1] :]
    text = tokenizer.decode(answer, skip_special_tokens=True)
    cut = 0
    for start in range(2, len(text) - 4, 25):
        stop = text[start : start + 3]
        request = {"max_new_tokens": 40}
        expected = generate(model, prompt, **request, stop_strings=[stop], tokenizer=tokenizer)
        ours = lookahead(model, prompt, **request, stop_strings=[stop], tokenizer=tokenizer)
        assert torch.equal(ours, expected), stop
        criteria = StoppingCriteriaList([StopStringCriteria(tokenizer, [stop])])
        door = generate(model, prompt, **request, stopping_criteria=criteria, custom_generate=lookahead_generate)
        assert torch.equal(door, expected), stop
        cut += expected.shape[1] < prompt.shape[1] + len(answer)
    assert cut > 3


def test_stop_strings_of_a_generation_config_count_too() -> None:
    model, tokenizer, prompt = text_model()
    config = GenerationConfig(stop_strings=["pool"], max_new_tokens=30, pad_token_id=2)
    expected = generate(model, prompt, generation_config=config, tokenizer=tokenizer)
    assert expected.shape[1] < prompt.shape[1] + 30
    assert torch.equal(lookahead(model, prompt, generation_config=config, tokenizer=tokenizer), expected)
    with patch.object(model.generation_config, "stop_strings", ["pool"]):
        assert torch.equal(lookahead(model, prompt, max_new_tokens=30, tokenizer=tokenizer), expected)


def test_transformers_still_drops_streamer_and_tokenizer_at_its_door() -> None:
    """Where this fails, transformers passes them on: the way round in docs/in-your-own-code.md can go."""
    model = random_model(1)
    streamer = Collected()
    generate(model, PROMPT, max_new_tokens=5, streamer=streamer, custom_generate=lookahead_generate)
    assert streamer.given == PROMPT.tolist() and not streamer.ended
    _, tokenizer, _ = text_model()
    with pytest.raises(ValueError, match="generate does not hand it on"):
        generate(model, PROMPT, stop_strings=["a"], tokenizer=tokenizer, custom_generate=lookahead_generate)


# --- steps -----------------------------------------------------------------------------------------------------------


def test_steps_add_up_to_the_text_and_say_what_they_drafted() -> None:
    model = random_model(1)
    steps = list(lookahead_steps(model, PROMPT, max_new_tokens=20, eos_token_id=[], window=4, ngram=4, guesses=4))
    assert tokens_of(steps) == plain(model, PROMPT[0].tolist(), 20)
    assert all(step.window is not None and step.draft is not None for step in steps[:5])


def test_steps_end_with_the_models_own_end_of_text_and_may_be_sampled() -> None:
    model = random_model(1)
    selection = Selection(sample=True, generator=torch.Generator().manual_seed(3))
    sampled = tokens_of(list(lookahead_steps(model, PROMPT, max_new_tokens=400, selection=selection)))
    assert sampled.index(2) == len(sampled) - 1


# --- what cannot be done ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"ngram": 1}, "N must be at least 2"),
        ({"window": -1}, "W must be at least 0"),
        ({"max_new_tokens": 600}, "512 positions"),
        ({"ngram": 600}, "N 600 look 602 positions ahead"),
        ({"window": 10_000}, "lower window or ngram"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "contrastive search"),
        ({"dola_layers": "low"}, "dola generation"),
        ({"num_beams": 2, "force_words_ids": [[[7]]]}, "constrained beam search"),
        ({"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0}, "group beam search"),
        ({"num_beams": 2, "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 1, 1, 0]])}, "padding_side = 'left'"),
        ({"past_key_values": DynamicCache()}, "leave past_key_values out"),
        ({"attention_mask": torch.tensor([[1, 1, 1, 1, 1, 1, 1, 0]])}, "padding_side = 'left'"),
        ({"attention_mask": torch.zeros((1, 8), dtype=torch.long)}, "padding from end to end"),
        ({"output_attentions": True, "return_dict_in_generate": True}, "output_attentions is not supported"),
        ({"stop_strings": ["a"]}, "need the tokenizer"),
        ({"num_return_sequences": 2, "do_sample": True, "streamer": Collected()}, "takes one row"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    request = {"max_new_tokens": 4, "pad_token_id": PAD, **arguments}
    with pytest.raises(ValueError, match=sentence):
        lookahead(random_model(1), PROMPT, **request)


def test_what_else_a_model_might_be_given_is_refused_and_not_dropped() -> None:
    request = {"max_new_tokens": 3, "pad_token_id": PAD}
    with pytest.raises(ValueError, match="positions from 0 on"):
        lookahead(random_model(1), PROMPT, position_ids=torch.arange(8)[None] + 2, **request)
    model = random_model(1)
    assert torch.equal(
        lookahead(model, PROMPT, position_ids=torch.arange(8)[None], **request), generate(model, PROMPT, **request)
    )
    with pytest.raises(ValueError, match="cannot follow beam search"):
        lookahead(model, PROMPT, num_beams=2, streamer=Collected(), **request)
    with pytest.raises(ValueError, match="does not know what pixel_values is"):
        lookahead_generate(
            model, PROMPT, LogitsProcessorList(), StoppingCriteriaList(), prepared_config(model), pixel_values=PROMPT
        )


def prepared_config(model: PreTrainedModel) -> Any:
    """A generation config as `generate` hands it to its loops."""
    seen: list[Any] = []

    def loop(model: Any, input_ids: torch.Tensor, generation_config: Any, **_: Any) -> torch.Tensor:
        seen.append(generation_config)
        return input_ids

    generate(model, PROMPT, max_new_tokens=3, custom_generate=loop)
    return seen[0]


def test_the_shortest_text_is_written_too() -> None:
    model = random_model(1)
    request = {"max_new_tokens": 1, "pad_token_id": PAD}
    assert torch.equal(lookahead(model, PROMPT[:, :1], **request), generate(model, PROMPT[:, :1], **request))


def test_the_window_looks_beyond_the_last_token_that_may_be_written() -> None:
    steps = list(lookahead_steps(random_model(1), PROMPT, max_new_tokens=12, eos_token_id=[], window=15, ngram=5))
    assert all(step.window is not None for step in steps)


def test_processors_and_criteria_that_concern_all_rows_are_refused_for_more_than_one() -> None:
    model, batch = random_model(1), {"input_ids": PROMPT.repeat(2, 1), "max_new_tokens": 4, "pad_token_id": PAD}
    only = {"prefix_allowed_tokens_fn": lambda row, ids: [10 + row, 20]}
    refused: list[tuple[dict[str, Any], str]] = [
        (only, "asks for each row by its number"),
        ({"encoder_no_repeat_ngram_size": 2}, "keeps the prompts of all rows"),
        ({"encoder_repetition_penalty": 1.2}, "keeps the prompts of all rows"),
        ({"watermarking_config": SynthIDTextWatermarkingConfig(keys=[1, 2, 3], ngram_len=3)}, "a state of all rows"),
        ({"guidance_scale": 1.5}, "a state of all rows"),
        ({"max_time": 1e6}, "one clock for all rows"),
    ]
    for option, why in refused:
        with pytest.raises(ValueError, match=why):
            lookahead(model, **batch, **option)
    with pytest.raises(ValueError, match="AfterTwins"):
        lookahead(model, **batch, eos_token_id=None, stopping_criteria=StoppingCriteriaList([AfterTwins()]))
    assert lookahead(model, **batch, eos_token_id=None).shape == (2, 12)
    one = {"max_new_tokens": 4, "pad_token_id": PAD, **only}
    assert torch.equal(lookahead(model, PROMPT, **one), generate(model, PROMPT, **one))


def test_a_cache_from_elsewhere_is_refused() -> None:
    model = random_model(1)
    cache = DynamicCache(config=model.config)
    model(PROMPT[:, :4], past_key_values=cache, use_cache=True)
    with pytest.raises(ValueError, match="past_key_values"):
        lookahead(model, PROMPT, past_key_values=cache, max_new_tokens=3)


def test_an_encoder_decoder_model_is_refused() -> None:
    config = T5Config(vocab_size=32, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, pad_token_id=0)
    with pytest.raises(ValueError, match="encoder-decoder"):
        lookahead(T5ForConditionalGeneration(config).eval(), PROMPT % 32, max_new_tokens=3)


def test_several_rows_have_no_common_steps() -> None:
    with pytest.raises(ValueError, match="one row at a time"):
        lookahead_steps(random_model(1), PROMPT.repeat(2, 1), max_new_tokens=3)


def test_a_models_generation_is_what_it_was_after_a_call() -> None:
    model = random_model(5)
    before = generate(model, PROMPT, max_new_tokens=12)
    lookahead(model, PROMPT, max_new_tokens=12)
    assert torch.equal(generate(model, PROMPT, max_new_tokens=12), before)
