"""Text: what a streamer is given, and where stop strings cut."""

from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import (
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    StoppingCriteriaList,
    StopStringCriteria,
    TextStreamer,
)

from ladechat import lookahead_generate
from tests.generate.requests import PROMPT, Collected, asked, fast, generate, handed_on, lookahead
from tests.tiny import DEMO, demo_model, demo_prompt, random_model


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
    answer = generate(model, prompt, max_new_tokens=24)[0, prompt.shape[1] :]
    text = tokenizer.decode(answer, skip_special_tokens=True)
    cut = 0
    for start in range(2, len(text) - 4, len(text) // 4):
        stop = text[start : start + 3]
        request = {"max_new_tokens": 24}
        expected = generate(model, prompt, **request, stop_strings=[stop], tokenizer=tokenizer)
        ours = lookahead(model, prompt, **request, stop_strings=[stop], tokenizer=tokenizer)
        assert torch.equal(ours, expected), stop
        criteria = StoppingCriteriaList([StopStringCriteria(tokenizer, [stop])])
        door = generate(model, prompt, **request, stopping_criteria=criteria, custom_generate=lookahead_generate)
        assert torch.equal(door, expected), stop
        cut += expected.shape[1] < prompt.shape[1] + len(answer)
    assert cut > 2


def test_stop_strings_of_a_generation_config_count_too() -> None:
    model, tokenizer, prompt = text_model()
    config = GenerationConfig(stop_strings=["pool"], max_new_tokens=30, pad_token_id=2)
    expected = generate(model, prompt, generation_config=config, tokenizer=tokenizer)
    assert expected.shape[1] < prompt.shape[1] + 30
    assert torch.equal(lookahead(model, prompt, generation_config=config, tokenizer=tokenizer), expected)
    with patch.object(model.generation_config, "stop_strings", ["pool"]):
        assert torch.equal(lookahead(model, prompt, max_new_tokens=30, tokenizer=tokenizer), expected)


def test_a_streamer_and_a_tokenizer_that_generate_was_given_are_seen() -> None:
    """transformers drops both on the way to a `custom_generate`: who waits for a streamer's end would wait for ever."""
    model, tokenizer, prompt = text_model()
    request: dict[str, Any] = {"max_new_tokens": 24, "stop_strings": ["pool"], "tokenizer": tokenizer}
    expected, ours = Collected(), Collected()
    text = generate(model, prompt, **request, streamer=expected)
    assert text.shape[1] < prompt.shape[1] + 24
    with fast():
        result = generate(model, prompt, **request, streamer=ours, custom_generate=lookahead_generate)
    assert torch.equal(result, text)
    assert ours.given == expected.given and ours.ended


@pytest.mark.parametrize("door", [True, False])
def test_a_text_that_is_handed_on_is_streamed_too(door: bool) -> None:
    model, ours, expected = random_model(1), Collected(), Collected()
    request = {"max_new_tokens": 8, "use_cache": False}
    generate(model, PROMPT, **request, streamer=expected)
    with handed_on("use_cache=False"):
        asked(model, PROMPT, door=door, streamer=ours, **request)
    assert ours.given == expected.given and ours.ended


def test_one_of_two_streamers_would_wait_for_ever() -> None:
    loop = partial(lookahead_generate, streamer=Collected())
    with pytest.raises(ValueError, match="Two streamers are given"):
        generate(random_model(1), PROMPT, max_new_tokens=3, streamer=Collected(), custom_generate=loop)


def test_a_tokenizer_that_nobody_gave_is_asked_for() -> None:
    with pytest.raises(ValueError, match="need the tokenizer"):
        generate(random_model(1), PROMPT, stop_strings=["a"], custom_generate=lookahead_generate)
