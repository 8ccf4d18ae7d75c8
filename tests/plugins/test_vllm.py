"""The proposer for vLLM, in a scripted one: requests arrive, leave and are moved, and each has its own drafts."""

import gc
import random
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from ladechat.plugins.vllm import Proposer, SharingProposer
from tests.plugins.scripted_vllm import LONGEST, ROWS, Clock, Request, ScriptedVllm, configuration


def vllm(kind: type[Proposer] = Proposer, rows: int = ROWS, slot: float = 0.01) -> ScriptedVllm:
    """A scripted vLLM in which a step takes a second, and `slot` seconds for each draft in it."""
    clock = Clock(lambda: 1 + slot * sum(len(request.drafts) for request in server.rows))
    server = ScriptedVllm(kind(configuration(rows), clock))
    return server


def said(seed: int, length: int = 12) -> list[int]:
    """Tokens that no other seed says."""
    return random.Random(seed).sample(range(1000 * seed, 1000 * seed + 900), length)


def repeating(seed: int, length: int = 200) -> Request:
    """A request whose answer says its prompt again and again."""
    phrase = said(seed)
    return Request((phrase * length)[:length], len(phrase))


def passes_alone(request: Request) -> int:
    server = vllm()
    server.arrive(request)
    server.run()
    return len(request.steps)


def test_a_text_that_repeats_itself_comes_in_few_passes() -> None:
    assert passes_alone(repeating(1)) < 60


def test_rows_that_move_go_on_as_if_they_had_stayed() -> None:
    alone = passes_alone(repeating(1))
    server, moving = vllm(), repeating(1)
    others = [repeating(seed, length) for seed, length in ((2, 40), (3, 80), (4, 120))]
    server.arrive(*others, moving)
    before = [server.rows.index(moving)]
    while server.rows:
        server.step()
        if moving in server.rows and server.rows.index(moving) != before[-1]:
            before.append(server.rows.index(moving))
    assert len(before) > 1, "it was moved"
    assert len(moving.steps) <= alone


def test_a_request_that_was_interrupted_goes_on_with_its_text() -> None:
    server, request = vllm(), repeating(1)
    server.arrive(request)
    for _ in range(10):
        server.step()
    server.leave(request)
    server.arrive(repeating(2, 60))
    server.run()
    request.drafts = []
    server.arrive(request)
    server.step()
    server.step()
    assert request.steps[-1] > 1


def test_a_prompt_that_is_read_in_parts_gets_drafts_when_it_is_read() -> None:
    server, slow = vllm(), repeating(1)
    slow.prefills = 5
    server.arrive(repeating(2), slow)
    server.run()
    assert slow.drafted[4][1] == [] and max(slow.steps) > 1


def wrong_guesses(count: int) -> list[int]:
    """A text in which a token comes again and again, and something new after it each time."""
    return [token for number in range(count) for token in (1, 100 + number)]


def test_where_nothing_is_accepted_nothing_is_drafted_until_it_pays_again() -> None:
    server = vllm(slot=0.2)
    unlucky = Request([*wrong_guesses(180), *said(7, 40), *said(7, 40), *said(7, 40)], 6)
    server.arrive(unlucky)
    server.run()
    drafts = [draft for length, draft in unlucky.drafted if length < 2 * 180]
    assert any(drafts[:100]) and not any(drafts[-100:])
    assert max(unlucky.steps[-40:]) > 1


def drafts_of(request: Request) -> set[int]:
    return {token for _, draft in request.drafted for token in draft}


@pytest.mark.parametrize(("kind", "shared"), [(Proposer, False), (SharingProposer, True)])
def test_a_request_is_drafted_from_what_others_said_only_if_that_is_requested(
    kind: type[Proposer], shared: bool
) -> None:
    server, secret = vllm(kind), said(5, 30)
    known = said(1)
    server.arrive(Request([*known, *secret, *known, *secret], len(known)))
    server.run()
    curious = Request([*known, *secret[:20]], len(known))
    server.arrive(curious)
    server.run()
    guessed = drafts_of(curious) & set(secret)
    assert bool(guessed) is shared
    assert bool(max(curious.steps) > 1) is shared


def test_requests_of_the_same_text_at_once_do_not_disturb_each_other() -> None:
    server, twins = vllm(), [repeating(1) for _ in range(4)]
    server.arrive(*twins)
    server.run()
    assert {len(twin.steps) for twin in twins} == {passes_alone(repeating(1))}


texts = st.lists(st.integers(0, 3), min_size=2, max_size=60)
events = st.lists(st.one_of(texts, st.integers(0, ROWS - 1), st.none()), max_size=40)


@given(events, st.booleans(), st.randoms(use_true_random=False))
def test_whatever_comes_and_goes_drafts_are_within_bounds_and_texts_are_right(
    events: Sequence[list[int] | int | None], shares: bool, dice: random.Random
) -> None:
    """The scripted vLLM looks at all drafts; requests come, leave in the middle, and take steps of any length."""
    clock = Clock(lambda: dice.choice((0.001, 0.01, 1.0, 50.0)))
    server = ScriptedVllm((SharingProposer if shares else Proposer)(configuration(), clock))
    for event in events:
        if isinstance(event, list) and len(server.rows) < ROWS:
            server.arrive(Request(event, dice.randint(1, len(event) - 1), dice.choice((0, 0, 2))))
        elif isinstance(event, int) and event < len(server.rows):
            server.leave(server.rows[event])
        server.step()
    server.run()


def test_drafts_end_with_the_context() -> None:
    server, longest = vllm(), repeating(1, LONGEST)
    server.arrive(longest)
    server.run()
    assert longest.length == LONGEST


def test_a_row_whose_tokens_are_others_is_another_request() -> None:
    """Whatever stands in a row, drafts are for that: here another request takes it as the first one leaves."""
    server, first, second = vllm(), repeating(1), repeating(2)
    server.arrive(first)
    for _ in range(10):
        server.step()
    server.leave(first)
    server.arrive(second)
    server.run()
    assert len(second.steps) <= passes_alone(repeating(2))
    assert drafts_of(second) <= set(second.text)


def test_memory_is_bounded() -> None:
    server, seeds = vllm(rows=2), iter(range(1, 1000))

    def after(requests: int) -> int:
        for _ in range(requests):
            server.arrive(repeating(next(seeds), 300))
            server.run()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        few, many = after(4), after(12)
    finally:
        tracemalloc.stop()
    assert many < 1.3 * few


def drafted(slot: float) -> int:
    """How much is drafted for a text in which a phrase comes again and again between others."""
    server, phrase = vllm(slot=slot), said(1)
    request = Request([token for seed in range(2, 22) for token in (*phrase, *said(seed))], len(phrase))
    server.arrive(request)
    server.run()
    return sum(len(draft) for _, draft in request.drafted)


def test_the_dearer_drafts_are_the_fewer_are_taken() -> None:
    """The time of a step is learnt."""
    assert drafted(slot=1.0) < drafted(slot=0.3) < drafted(slot=0.01)
    assert drafted(slot=1.0) < drafted(slot=0.01) / 2
