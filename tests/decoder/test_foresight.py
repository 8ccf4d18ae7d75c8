"""How much of a text the pool has foreseen, and what steps take: learnt from many steps as from one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.foresight import Foresight
from ladechat.decoder.means import SETTLING, Aftermath
from ladechat.decoder.ngram_pool import Guess

TOKENS = st.lists(st.integers(0, 1), max_size=12).map(tuple)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=7).map(tuple), TOKENS, st.data())
def test_steps_of_plain_decoding_say_together_what_they_say_one_by_one(
    tail: tuple[int, ...], came: tuple[int, ...], data: st.DataObject
) -> None:
    together, one_by_one = Foresight(), Foresight()
    cut = data.draw(st.integers(0, len(came)))
    for foresight in (together, one_by_one):
        foresight.look([Guess(tail, "prompt")])
    for part in (came[:cut], came[cut:]):
        if part:
            together.take(part, len(part))
        for token in part:
            one_by_one.take((token,))
    assert (together.count, together.following) == (one_by_one.count, one_by_one.following)


def test_the_token_behind_a_guess_that_was_verified_was_not_foreseen_and_those_before_it_were() -> None:
    foresight = Foresight()
    foresight.look([Guess((1, 2, 3), "prompt")])
    foresight.take((1, 2, 3, 9))
    assert (foresight.count, foresight.following) == (3, 0)
    foresight.look([Guess((4, 5), "prompt")])
    foresight.take((4,))
    assert (foresight.count, foresight.following) == (4, 1)
    foresight.take((6,))
    assert (foresight.count, foresight.following) == (0, 0)


@given(st.lists(st.floats(0.9, 1.4), min_size=1, max_size=40), st.data())
def test_what_follows_a_step_with_guesses_hangs_on_no_partition(passes: list[float], data: st.DataObject) -> None:
    together, one_by_one = Aftermath(), Aftermath()
    for aftermath in (together, one_by_one):
        aftermath.add([1.0] * (SETTLING + 1))
        aftermath.disturb()
    cut = data.draw(st.integers(0, len(passes)))
    together.add(passes[:cut])
    together.add(passes[cut:])
    for seconds in passes:
        one_by_one.add([seconds])
    for aftermath in (together, one_by_one):
        aftermath.disturb()
    assert abs(together.extra.value - one_by_one.extra.value) < 1e-9
    assert abs(together.settled.value - one_by_one.settled.value) < 1e-9
