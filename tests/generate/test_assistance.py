"""Where `generate` is told to draft by itself: the text that it writes then."""

from typing import Any

import pytest
import torch
from transformers import LogitsProcessorList, StoppingCriteriaList, SynthIDTextWatermarkingConfig

from tests.generate.requests import PAD, PROMPT, AfterTwins, asked, generate, handed_on, lookahead
from tests.generate.test_output import BanAtTheThird
from tests.tiny import VOCABULARY, random_model

REQUEST: dict[str, Any] = {"max_new_tokens": 20, "pad_token_id": PAD, "eos_token_id": [7, 40]}


@pytest.mark.parametrize("option", [{"prompt_lookup_num_tokens": 3}, {"assistant_model": "another model"}])
def test_a_greedy_text_is_the_same_with_assistance(option: dict[str, Any]) -> None:
    def ask(with_what: Any, **also: Any) -> torch.Tensor:
        assistant = {"assistant_model": random_model(4)} if "assistant_model" in option else {}
        text: torch.Tensor = with_what(random_model(2), PROMPT, **{**REQUEST, **option, **assistant}, **also)
        return text

    expected = ask(generate)
    assert all(torch.equal(ask(asked, door=door), expected) for door in (False, True))


@pytest.mark.parametrize("door", [True, False])
@pytest.mark.parametrize("name", ["prompt_lookup_num_tokens", "assistant_model"])
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"do_sample": True}, "draws other random numbers"),
        ({"stopping_criteria": StoppingCriteriaList([AfterTwins()])}, "asks stopping criteria once a pass"),
        ({"logits_processor": BanAtTheThird}, "shows rejected drafts to processors"),
    ],
)
def test_where_assistance_would_change_the_text_it_assists(
    name: str, more: dict[str, Any], why: str, door: bool
) -> None:
    """What `generate` itself is given together with `custom_generate` is seen, too."""

    def ask(with_what: Any, **also: Any) -> torch.Tensor:
        torch.manual_seed(1)
        # An assistant of its own: what it drafts is up to what it has drafted before.
        request = {**REQUEST, name: 3 if name == "prompt_lookup_num_tokens" else random_model(4), **more}
        fresh = {"logits_processor": LogitsProcessorList([BanAtTheThird()])} if "logits_processor" in more else {}
        text: torch.Tensor = with_what(random_model(2), PROMPT, **{**request, **fresh}, **also)
        return text

    expected = ask(generate)
    with handed_on(f"with {name} generate {why}"):
        result = ask(asked, door=door)
    assert torch.equal(result, expected)


@pytest.mark.parametrize(
    "option",
    [
        {"guidance_scale": 1.7},
        {"prefix_allowed_tokens_fn": "one that counts"},
        {"watermarking_config": SynthIDTextWatermarkingConfig(keys=[654, 400, 836], ngram_len=3)},
    ],
    ids=str,
)
def test_a_processor_of_transformers_that_remembers_is_not_shown_rejected_drafts_here_either(
    option: dict[str, Any],
) -> None:

    def ask(with_what: Any) -> torch.Tensor:
        fresh = {"prefix_allowed_tokens_fn": Alternating()} if "prefix_allowed_tokens_fn" in option else {}
        prompt = PROMPT.repeat(1, 2)
        text: torch.Tensor = with_what(
            random_model(2), prompt, prompt_lookup_num_tokens=3, **{**REQUEST, **option, **fresh}
        )
        return text

    expected = ask(generate)
    with handed_on("with prompt_lookup_num_tokens generate shows rejected drafts to processors"):
        assert torch.equal(ask(lookahead), expected)


class Alternating:
    """Allows the odd tokens, then the even ones, and so on."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, row: int, text: torch.Tensor) -> list[int]:
        self.asked += 1
        return list(range(8, VOCABULARY)[self.asked % 2 :: 2])
