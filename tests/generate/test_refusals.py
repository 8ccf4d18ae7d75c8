"""What lookahead decoding cannot do is refused in a sentence, and nothing that it was given is dropped."""

from typing import Any

import pytest
import torch
from transformers import (
    MaxLengthCriteria,
    PreTrainedModel,
    StoppingCriteriaList,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.cache_utils import DynamicCache

from ladechat import lookahead_generate, lookahead_steps
from tests.generate.requests import PAD, PROMPT, Collected, generate, lookahead
from tests.tiny import VOCABULARY, random_model


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


@pytest.mark.parametrize("unknown", [VOCABULARY, -1])
def test_a_token_id_without_an_embedding_is_named(unknown: int) -> None:
    prompt = PROMPT.clone()
    prompt[0, 3] = unknown
    model = random_model(1)
    with pytest.raises(ValueError, match=f"input_ids has {unknown}, .* ids 0 to {VOCABULARY - 1} only"):
        lookahead(model, prompt, max_new_tokens=4, pad_token_id=PAD)
    with pytest.raises(ValueError, match=f"input_ids has {unknown}, "):
        lookahead_steps(model, prompt, max_new_tokens=4)


def test_padding_may_have_an_id_without_an_embedding() -> None:
    padded = torch.cat([torch.full((1, 2), VOCABULARY), PROMPT], dim=1)
    mask = (padded != VOCABULARY).long()
    model = random_model(1)
    plain = lookahead(model, PROMPT, max_new_tokens=4, pad_token_id=PAD)
    found = lookahead_generate(model, padded, attention_mask=mask, max_new_tokens=4, pad_token_id=PAD)
    assert isinstance(plain, torch.Tensor) and isinstance(found, torch.Tensor)
    assert found[0, -4:].tolist() == plain[0, -4:].tolist()


def prepared_config(model: PreTrainedModel) -> Any:
    """A generation config as `generate` hands it to its loops."""
    seen: list[Any] = []

    def loop(model: Any, input_ids: torch.Tensor, generation_config: Any, **_: Any) -> torch.Tensor:
        seen.append(generation_config)
        return input_ids

    generate(model, PROMPT, max_new_tokens=3, custom_generate=loop)
    return seen[0]


def test_what_else_a_model_might_be_given_is_not_dropped() -> None:
    model, request = random_model(1), {"max_new_tokens": 12, "pad_token_id": PAD}
    other, usual = torch.arange(8)[None] * 2, torch.arange(8)[None]
    with pytest.warns(UserWarning, match="positions are not counted from 0 on"):
        result = lookahead(model, PROMPT, position_ids=other, **request)
    assert torch.equal(result, generate(model, PROMPT, position_ids=other, **request))
    assert torch.equal(lookahead(model, PROMPT, position_ids=usual, **request), generate(model, PROMPT, **request))
    criteria = StoppingCriteriaList([MaxLengthCriteria(12)])
    with pytest.warns(UserWarning, match="the model is given pixel_values besides the text"):
        lookahead_generate(
            model, PROMPT, None, criteria, prepared_config(model), pixel_values=PROMPT, use_cache=True
        )  # fmt: skip


def test_a_streamer_cannot_follow_beams() -> None:
    with pytest.raises(ValueError, match="cannot follow beam search"):
        lookahead(random_model(1), PROMPT, num_beams=2, streamer=Collected(), max_new_tokens=3, pad_token_id=PAD)


@pytest.mark.parametrize("name", ["window", "ngram", "guesses"])
@pytest.mark.parametrize("value", [4.0, "4", None, True, torch.tensor(4)])
def test_numbers_that_are_no_integers_are_named(name: str, value: Any) -> None:
    sentence = rf"^{name[0].upper()} must be an integer, not "
    with pytest.raises(ValueError, match=sentence):
        lookahead(random_model(1), PROMPT, max_new_tokens=3, **{name: value})
    with pytest.raises(ValueError, match=sentence):
        generate(random_model(1), PROMPT, max_new_tokens=3, custom_generate=lookahead_generate, **{name: value})
    with pytest.raises(ValueError, match=sentence):
        lookahead_steps(random_model(1), PROMPT, max_new_tokens=3, **{name: value})


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
