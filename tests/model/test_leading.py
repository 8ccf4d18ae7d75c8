"""What the first process does with its runner, the others do with theirs. Here in one process: the orders are kept."""

import pickle
from typing import Any, NoReturn, cast

import pytest
import torch

from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder
from ladechat.model.eager import EagerRunner
from ladechat.model.followers import Followers
from ladechat.model.leading import LeadingRunner, obey
from ladechat.model.loading import choose_runner
from tests.tiny import plain, random_model, run, runner_for, tokens_of

PROMPT = [11, 7, 5, 3, 13, 2, 40, 41, 5, 3]


class Kept:
    """Takes orders, as they would go through a pipe, in place of `Followers`."""

    def __init__(self) -> None:
        self._orders: list[bytes] = []

    def tell(self, order: object) -> None:
        self._orders.append(pickle.dumps(order))

    def on_error(self, error: Exception) -> NoReturn:
        raise SystemExit(str(error))

    def carried_out_by(self, runner: EagerRunner) -> None:
        obey(runner, (pickle.loads(order) for order in self._orders))


def led(chunk: int = 512) -> tuple[LeadingRunner, EagerRunner, Kept]:
    orders = Kept()
    own = runner_for(random_model(0), chunk=chunk)
    return LeadingRunner(own, cast(Followers, orders)), own, orders


def assert_alike(one: EagerRunner, other: EagerRunner) -> None:
    """The same tokens, and the same keys and values of them."""
    assert one.tokens == other.tokens
    for mine, theirs in zip(
        *(cast(Any, runner)._cache.all_rows(len(one.tokens)) for runner in (one, other)), strict=True
    ):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("decoder", [LookaheadDecoder, AutoregressiveDecoder])
def test_a_led_runner_writes_the_text_and_a_follower_caches_it(decoder: Any) -> None:
    leading, own, orders = led()
    expected = plain(random_model(0), PROMPT)
    assert tokens_of(run(decoder(leading), PROMPT)) == expected
    # A second question finds the first in the cache.
    assert leading.cached_prefix([*PROMPT, *expected]) == len(leading.tokens)
    run(decoder(leading), [*PROMPT, *expected[:20], 9, 8], limit=5)
    follower = runner_for(random_model(0))
    orders.carried_out_by(follower)
    assert_alike(own, follower)


def test_a_prompt_that_is_stopped_on_the_way_is_left_at_the_same_chunk_by_a_follower() -> None:
    leading, own, orders = led(chunk=2)
    reading = leading.prefill(PROMPT)
    assert [next(reading), next(reading)] == [2, 4]
    follower = runner_for(random_model(0), chunk=2)
    orders.carried_out_by(follower)
    assert_alike(own, follower)
    assert len(own.tokens) == 4
    assert list(leading.prefill(PROMPT[:9])) == [6, 8]
    follower = runner_for(random_model(0), chunk=2)
    orders.carried_out_by(follower)
    assert_alike(own, follower)


def test_memory_is_given_back_by_all_and_the_text_goes_on() -> None:
    leading, own, orders = led()
    expected = plain(random_model(0), PROMPT)
    run(LookaheadDecoder(leading), PROMPT, limit=10)
    leading.save_memory()
    assert list(leading.tokens) == []
    assert tokens_of(run(LookaheadDecoder(leading), PROMPT)) == expected
    follower = runner_for(random_model(0))
    orders.carried_out_by(follower)
    assert_alike(own, follower)


def test_what_fails_in_a_pass_is_the_end_of_all() -> None:
    leading, _own, _orders = led()
    with pytest.raises(SystemExit, match="does not fit a context"):
        next(leading.prefill(PROMPT * 100))
    with pytest.raises(SystemExit, match="no pass whose slots"):
        leading.keep([0])


def test_a_led_runner_says_of_itself_what_the_runner_below_it_says() -> None:
    leading, own, _ = led()
    for name in ("model", "tokens", "context_length", "reach", "plain_only"):
        assert getattr(leading, name) == getattr(own, name), name
    stepwise = choose_runner(random_model(0, "bloom", n_layer=2, n_head=4, vocab_size=50), 64)
    leading = LeadingRunner(stepwise, cast(Followers, Kept()))
    assert leading.plain_only is not None and leading.plain_only == stepwise.plain_only
