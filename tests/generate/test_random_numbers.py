"""Random numbers belong to whoever draws: the check of a model neither takes them nor winds them back."""

import copy
import threading
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from tests.generate.requests import PROMPT, assert_as_generate, generate, handed_on, lookahead
from tests.tiny import new_model, random_model

REQUEST: dict[str, Any] = {"max_new_tokens": 6, "pad_token_id": 0, "eos_token_id": []}


class WatchedFromOutside(LlamaForCausalLM):
    """While it is passed through, another thread draws a number."""

    drawn: list[float]

    def forward(self, *arguments: Any, **given: Any) -> Any:
        thread = threading.Thread(target=lambda: self.drawn.append(float(torch.rand(()))))
        thread.start()
        thread.join()
        return super().forward(*arguments, **given)


def test_numbers_that_another_thread_draws_during_the_check_do_not_come_again() -> None:
    torch.manual_seed(0)
    kind: Any = WatchedFromOutside
    model = kind(copy.deepcopy(random_model(3).config)).eval()
    model.drawn = []
    lookahead(model, PROMPT, **REQUEST)
    model.drawn += torch.rand(50).tolist()
    assert len(set(model.drawn)) == len(model.drawn) > 55


class Noisy(LlamaForCausalLM):
    """Draws in each pass."""

    def forward(self, *arguments: Any, **given: Any) -> Any:
        output = super().forward(*arguments, **given)
        output.logits = output.logits + torch.rand(output.logits.shape) * 3
        return output


def test_a_model_that_draws_in_its_passes_writes_what_it_writes_by_itself() -> None:
    kind: Any = Noisy
    model = kind(copy.deepcopy(random_model(3).config)).eval()
    for _ in range(2):
        with handed_on("draws random numbers in its passes"):
            assert_as_generate(model, PROMPT, **REQUEST)
        ours = torch.get_rng_state()
        torch.manual_seed(1)
        generate(model, PROMPT, **REQUEST)
        assert torch.equal(torch.get_rng_state(), ours)


@pytest.mark.full
def test_threads_that_draw_beside_many_calls_never_draw_twice() -> None:
    models = [new_model(seed) for seed in range(60)]  # before: making one restores the generator's state
    drawn, ended = list[float](), threading.Event()

    def draw() -> None:
        while not ended.is_set():
            drawn.extend(torch.rand(4, dtype=torch.float64).tolist())

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    for model in models:
        lookahead(model, PROMPT, **REQUEST)  # a new one, which is checked
    ended.set()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == len(drawn) > 1000
