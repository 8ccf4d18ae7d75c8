"""Sampling through the engine: reproducible by its seed, the same for every decoder, and changed between two steps."""

from collections.abc import Iterator

import pytest
import torch
from transformers import AutoModelForCausalLM, LogitsProcessorList

from ladechat import catalog
from ladechat.decoder.sampler import seed_of
from ladechat.protocol import Configure, Generate, Message, Settings, SettingsApplied, Step, TurnFinished, TurnStarted
from tests.engine.inside import Inside, inside
from tests.made_up_maps import save_made_up
from tests.tiny import small_demo

ASKED = [Message(role="user", content="Tell me a short story.")]


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    files = save_made_up(small_demo(), tmp_path_factory.mktemp("maps"))
    with inside(small_demo(), Settings(decoder="lookahead", seed=7), files) as wire:
        yield wire


def answer(wire: Inside, turn: int, change: Configure) -> tuple[TurnStarted, list[int], int]:
    """How the answer began, its tokens, and its steps."""
    wire.send(change)
    wire.send(Generate(turn=turn, messages=ASKED, max_new_tokens=24))
    started = wire.until(TurnStarted)
    finished = wire.until(TurnFinished)
    return started, finished.token_ids, finished.steps


def test_one_seed_gives_one_text_whatever_the_decoder(wire: Inside) -> None:
    texts = set()
    for name in catalog.DECODERS:
        change = Configure(decoder=name, temperature=1.2, top_k=40, top_p=0.95)
        started, token_ids, steps = answer(wire, 3, change)
        assert started.seed == 9  # of turn 3, where turn 1 has the seed itself
        assert steps == len(token_ids) if name == "autoregressive" else steps <= len(token_ids)
        texts.add(tuple(token_ids))
    assert len(texts) == 1
    _, other, _ = answer(wire, 4, Configure(decoder="lookahead"))
    assert tuple(other) not in texts


def test_the_text_is_the_one_that_transformers_samples_with_the_same_random_numbers(wire: Inside) -> None:
    started, token_ids, _ = answer(wire, 5, Configure(decoder="lookahead", temperature=0.9, top_k=0, top_p=0.9))
    model = AutoModelForCausalLM.from_pretrained(small_demo(), dtype=torch.float32).eval()
    assert started.seed is not None
    seed, prompt = started.seed, len(started.prompt_ids)

    def seeded(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(seed_of(seed, ids.shape[1] - prompt))
        return scores

    options = {"temperature": 0.9, "top_k": 0, "top_p": 0.9, "max_new_tokens": len(token_ids)}
    processors = LogitsProcessorList([seeded])
    ids = torch.tensor([started.prompt_ids])
    output = model.generate(ids, do_sample=True, logits_processor=processors, **options)
    assert output[0, len(started.prompt_ids) :].tolist() == token_ids


def test_a_temperature_of_nothing_is_greedy_and_may_be_set_in_the_middle_of_an_answer(wire: Inside) -> None:
    _, greedy, _ = answer(wire, 6, Configure(decoder="lookahead", temperature=0.0, top_p=1.0))
    _, again, _ = answer(wire, 7, Configure(temperature=0.0))
    assert greedy == again
    turn = wire.begin(*ASKED, max_new_tokens=24)
    [first] = wire.of_turn(Step, turn)[-1:]
    wire.send(Configure(temperature=5.0))
    wire.until(SettingsApplied)
    wire.go_on()
    _, finished = wire.finish(turn)
    assert finished.token_ids[: len(first.token_ids)] == greedy[: len(first.token_ids)]
    assert finished.token_ids != greedy
