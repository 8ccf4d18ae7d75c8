"""What lookahead decoding cannot do, or cannot do for several rows, is refused in a sentence."""

from typing import Any

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    PreTrainedModel,
    StoppingCriteriaList,
    SynthIDTextWatermarkingConfig,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.cache_utils import DynamicCache

from ladechat import lookahead_generate
from tests.generate.requests import PAD, PROMPT, AfterTwins, Collected, generate, lookahead
from tests.tiny import random_model


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


def prepared_config(model: PreTrainedModel) -> Any:
    """A generation config as `generate` hands it to its loops."""
    seen: list[Any] = []

    def loop(model: Any, input_ids: torch.Tensor, generation_config: Any, **_: Any) -> torch.Tensor:
        seen.append(generation_config)
        return input_ids

    generate(model, PROMPT, max_new_tokens=3, custom_generate=loop)
    return seen[0]


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
