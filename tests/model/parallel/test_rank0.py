"""What the first process does with its runner, the others do with theirs. Here in one process: the orders are kept."""

import pickle
from typing import Any, NoReturn, cast

import pytest
import torch

from ladechat.decoder.loop import Decoder
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.parallel.rank0 import Rank0Runner
from ladechat.model.parallel.workers import Workers, follow_orders
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead
from tests.tiny import plain, random_model, run, runner_for, tokens_of

PROMPT = [11, 7, 5, 3, 13, 2, 40, 41, 5, 3]


class Kept:
    """Takes orders, as they would go through a pipe, in place of `Workers`."""

    def __init__(self) -> None:
        self._orders: list[bytes] = []

    def send(self, order: object) -> None:
        self._orders.append(pickle.dumps(order))

    def on_error(self, error: Exception) -> NoReturn:
        raise SystemExit(str(error))

    def carried_out_by(self, runner: TreeRunner) -> None:
        follow_orders(runner, (pickle.loads(order) for order in self._orders))


def shared(chunk: int = 512) -> tuple[Rank0Runner, TreeRunner, Kept]:
    orders = Kept()
    own = runner_for(random_model(0), chunk=chunk)
    return Rank0Runner(own, cast(Workers, orders)), own, orders


def assert_alike(one: TreeRunner, other: TreeRunner) -> None:
    """The same tokens, and the same keys and values of them."""
    assert one.tokens == other.tokens
    for mine, theirs in zip(*(runner.cache.all_rows(len(one.tokens)) for runner in (one, other)), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("decoder", [lookahead, Decoder])
def test_a_led_runner_writes_the_text_and_a_worker_caches_it(decoder: Any) -> None:
    rank0, own, orders = shared()
    expected = plain(random_model(0), PROMPT)
    assert tokens_of(run(decoder(rank0), PROMPT)) == expected
    # A second question finds the first in the cache.
    assert rank0.cached_prefix([*PROMPT, *expected]) == len(rank0.tokens)
    run(decoder(rank0), [*PROMPT, *expected[:20], 9, 8], limit=5)
    worker = runner_for(random_model(0))
    orders.carried_out_by(worker)
    assert_alike(own, worker)


def test_a_prompt_that_is_stopped_on_the_way_is_left_at_the_same_chunk_by_a_worker() -> None:
    rank0, own, orders = shared(chunk=2)
    reading = rank0.prefill(PROMPT)
    assert [next(reading), next(reading)] == [2, 4]
    worker = runner_for(random_model(0), chunk=2)
    orders.carried_out_by(worker)
    assert_alike(own, worker)
    assert len(own.tokens) == 4
    assert list(rank0.prefill(PROMPT[:9])) == [6, 8]
    worker = runner_for(random_model(0), chunk=2)
    orders.carried_out_by(worker)
    assert_alike(own, worker)


def test_memory_is_given_back_by_all_and_the_text_goes_on() -> None:
    rank0, own, orders = shared()
    expected = plain(random_model(0), PROMPT)
    run(lookahead(rank0), PROMPT, limit=10)
    rank0.save_memory()
    assert list(rank0.tokens) == []
    assert tokens_of(run(lookahead(rank0), PROMPT)) == expected
    worker = runner_for(random_model(0))
    orders.carried_out_by(worker)
    assert_alike(own, worker)


def test_what_fails_in_a_pass_is_the_end_of_all() -> None:
    rank0, _own, _orders = shared()
    with pytest.raises(SystemExit, match="does not fit a context"):
        next(rank0.prefill(PROMPT * 100))
    with pytest.raises(SystemExit, match="no pass whose slots"):
        rank0.commit([0])


def test_a_led_runner_says_of_itself_what_the_runner_below_it_says() -> None:
    rank0, own, _ = shared()
    assert rank0.capabilities.tree_attention and own.capabilities.tree_attention
    for name in ("device", "tokens", "context_length", "max_positions"):
        assert getattr(rank0, name) == getattr(own, name), name
    single = choose_runner(random_model(0, "bloom", n_layer=2, n_head=4, vocab_size=50), 64)
    rank0 = Rank0Runner(single, cast(Workers, Kept()))
    assert rank0.capabilities.single_token == single.capabilities.single_token is not None
    assert rank0.capabilities.logits_only is not None
