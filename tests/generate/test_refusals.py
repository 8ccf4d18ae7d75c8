"""What lookahead decoding cannot do is done by transformers' own loop; what has no text is refused in a sentence."""

from typing import Any

import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from transformers import MaxLengthCriteria, PreTrainedModel, StoppingCriteriaList, T5Config, T5ForConditionalGeneration
from transformers.cache_utils import DynamicCache

from ladechat import lookahead_generate, lookahead_steps
from ladechat.model.runners.kv_cache import CACHE
from tests.generate.requests import (
    PAD,
    PROMPT,
    Collected,
    asked,
    assert_as_generate,
    fast,
    generate,
    handed_on,
    lookahead,
)
from tests.tiny import VOCABULARY, new_model, random_model


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"ngram": 1}, "ngram must be at least 2"),
        ({"window": -1}, "window must be at least 0"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "contrastive search"),
        ({"dola_layers": "low"}, "dola generation"),
        ({"num_beams": 2, "force_words_ids": [[[7]]]}, "constrained beam search"),
        ({"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0}, "group beam search"),
        ({"num_beams": 2, "streamer": Collected()}, "cannot follow beam search"),
        ({"stop_strings": ["a"]}, "need the tokenizer"),
    ],
)  # fmt: skip
def test_what_has_no_text_is_refused_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    request = {"max_new_tokens": 4, "pad_token_id": PAD, **arguments}
    for door in (False, True):
        with pytest.raises(ValueError, match=sentence):
            asked(random_model(1), PROMPT, door=door, **request)


def begun_cache(model: PreTrainedModel) -> DynamicCache:
    cache = DynamicCache(config=model.config)
    model(PROMPT[:, :4], **{CACHE: cache}, use_cache=True)
    return cache


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"attention_mask": torch.tensor([[1, 1, 1, 1, 1, 1, 1, 0]])}, "the attention mask has zeros"),
        ({"attention_mask": torch.tensor([[1, 1, 0, 1, 1, 1, 1, 1]])}, "the attention mask has zeros"),
        ({"attention_mask": torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1]])}, "the attention mask has zeros"),
        ({"attention_mask": torch.zeros((1, 8), dtype=torch.long)}, "the attention mask has zeros"),
        ({"output_attentions": True, "return_dict_in_generate": True}, "output_attentions"),
        ({"output_hidden_states": True, "return_dict_in_generate": True}, "output_hidden_states"),
        ({"position_ids": torch.arange(8)[None] * 2}, "positions are not counted from 0 on"),
        ({CACHE: DynamicCache}, f"{CACHE} is given"),
        ({CACHE: begun_cache}, f"{CACHE} is given"),
        ({"inputs_embeds": torch.ones((1, 8, 32))}, "given inputs_embeds besides the text"),
        ({"ngram": 40}, "window 5 and ngram 40 look 42 positions ahead"),
        ({"window": 10_000}, "the model's 32 positions are fewer"),
        ({"max_new_tokens": 30}, "may come to 38, but the model has 32 positions"),
        ({"num_beams": 2}, "beam search"),
        ({"use_cache": False}, "use_cache=False"),
    ],
)
@pytest.mark.parametrize("door", [True, False])
def test_what_is_no_lookahead_decoding_is_handed_on_with_one_warning(
    arguments: dict[str, Any], why: str, door: bool
) -> None:
    model = random_model(1, max_position_embeddings=32)

    def request() -> dict[str, Any]:
        made = {name: value(model) if value is begun_cache else value for name, value in arguments.items()}
        made = {name: value() if value is DynamicCache else value for name, value in made.items()}
        return {"max_new_tokens": 4, "pad_token_id": PAD, "eos_token_id": 7, **made}

    plain = {name: value for name, value in request().items() if name not in ("window", "ngram")}
    expected = generate(model, PROMPT, **plain)
    with handed_on(why) as said:
        result = asked(model, PROMPT, door=door, **request())
    assert len(said) == 1
    texts = [one if isinstance(one, torch.Tensor) else one.sequences for one in (result, expected)]
    assert torch.equal(*texts)
    for name in ("attentions", "hidden_states"):
        if f"output_{name}" in arguments:
            assert len(getattr(result, name)) == len(getattr(expected, name)) > 1


def test_the_embeddings_of_a_prompt_may_stand_alone() -> None:
    model = random_model(1)
    request = {"inputs_embeds": model.get_input_embeddings()(PROMPT), "max_new_tokens": 5, "pad_token_id": PAD}
    with handed_on("inputs_embeds"):
        assert_as_generate(model, **request)


def test_an_encoder_decoder_model_is_handed_on() -> None:
    config = T5Config(vocab_size=32, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, pad_token_id=0)
    config.decoder_start_token_id = 0
    model = T5ForConditionalGeneration(config).eval()
    with handed_on("T5ForConditionalGeneration is an encoder-decoder model"):
        assert_as_generate(model, PROMPT % 32, max_new_tokens=3)


def test_a_model_in_training_is_handed_on_with_the_random_numbers_that_it_would_have() -> None:
    model: Any = new_model(3, attention_dropout=0.3).train()
    with handed_on("training mode"):
        assert_as_generate(model, PROMPT, max_new_tokens=12)


@pytest.mark.parametrize("unknown", [VOCABULARY, -1])
def test_a_token_id_without_an_embedding_is_named(unknown: int) -> None:
    prompt = PROMPT.clone()
    prompt[0, 3] = unknown
    model = random_model(1)
    with pytest.raises(ValueError, match=f"input_ids has {unknown}, .* ids 0 to {VOCABULARY - 1} only"):
        lookahead(model, prompt, max_new_tokens=4, pad_token_id=PAD)
    with pytest.raises(ValueError, match=f"input_ids has {unknown}, "):
        lookahead_steps(model, prompt, max_new_tokens=4)


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
    with fast():
        result = lookahead(model, PROMPT, position_ids=torch.arange(8)[None], **request)
    assert torch.equal(result, generate(model, PROMPT, **request))
    criteria = StoppingCriteriaList([MaxLengthCriteria(12)])
    with handed_on("the model is given pixel_values besides the text"):
        lookahead_generate(model, PROMPT, None, criteria, prepared_config(model), pixel_values=PROMPT, use_cache=True)


@pytest.mark.parametrize("name", ["window", "ngram", "guesses"])
@pytest.mark.parametrize("value", [4.0, "4", None, True, torch.tensor(4)])
def test_numbers_that_are_no_integers_are_named(name: str, value: Any) -> None:
    sentence = f"^{name} must be an integer, not "
    for door in (False, True):
        with pytest.raises(ValueError, match=sentence):
            asked(random_model(1), PROMPT, door=door, max_new_tokens=3, **{name: value})
    with pytest.raises(ValueError, match=sentence):
        lookahead_steps(random_model(1), PROMPT, max_new_tokens=3, **{name: value})


def test_a_text_may_be_given_under_the_name_that_generate_has_for_it() -> None:
    model, request = random_model(1), {"max_new_tokens": 5, "pad_token_id": PAD}
    with fast():
        assert_as_generate(model, inputs=PROMPT, **request)
    with pytest.raises(ValueError, match="given twice, as input_ids and as inputs"):
        lookahead(model, PROMPT, inputs=PROMPT, **request)


@pytest.mark.parametrize("register", [register_module_forward_hook, register_module_forward_pre_hook])
def test_a_hook_that_torch_calls_in_every_module_is_seen_after_the_first_call_too(register: Any) -> None:
    model, request = random_model(1), {"max_new_tokens": 5, "pad_token_id": PAD}
    lookahead(model, PROMPT, **request)
    hook = register(lambda *_: None)
    try:
        with handed_on("the model has hooks"):
            lookahead(model, PROMPT, **request)
    finally:
        hook.remove()


@pytest.mark.parametrize("more", [{}, {"do_sample": True, "repetition_penalty": 1.3}], ids=str)
def test_the_default_device_may_be_unlike_that_of_the_model(more: dict[str, Any]) -> None:
    model, texts, streams = random_model(1), [], []
    for write in (generate, lookahead):
        torch.manual_seed(3)
        streams.append(Collected())
        request = {"max_new_tokens": 9, "pad_token_id": PAD, "streamer": streams[-1], **more}
        with torch.device("meta"), fast():
            texts.append(write(model, PROMPT, **request))
    assert torch.equal(*texts) and streams[0].given == streams[1].given
