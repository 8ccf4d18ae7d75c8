"""What the scene about the pool says of a pass."""

import random

import pytest
from msgspec.structs import replace

from ladechat import registry
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.lessons import pool, questions
from ladechat.lessons.scene import Predict, Recall, Run, Say
from tests.decoder.table_runner import random_table
from tests.widgets.sample_steps import candidate, pool_view, step
from tests.widgets.test_pass_slots import passes

ORDER = "longest match first (four at most), of equals the latest"


@pytest.mark.parametrize("ngram", range(2, 8))
def test_the_order_that_the_cards_name_is_that_of_the_pool_for_any_n(ngram: int) -> None:
    """They said "first what followed the same four", which an n-gram of three tokens cannot match."""
    assert any(ORDER in card.text for card in pool.SCENE.cards if isinstance(card, Say))
    assert any(ORDER in card.answer for card in questions.SCENE.cards if isinstance(card, Recall))
    text = bytes(random.Random(ngram).choices(range(3), k=400))
    known = NGramPool()
    known.add_all(text, ngram, "prompt")
    found = known.guesses(text[-9:], ngram - 1, 99)
    matches = [guess.context for guess in found]
    assert matches == sorted(matches, reverse=True) and matches[0] == min(4, ngram - 1)
    for match in set(matches):
        ngrams = [(text[-match:] + bytes(one.tail))[:ngram] for one in found if one.context == match]
        added = [text.rindex(one) for one in ngrams]
        assert added == sorted(added, reverse=True)


def after_the_question(*sources: str) -> str:
    """Return what the card says after the prediction, of a pass with a guess of each of these sources."""
    known = [candidate([" is"], source) for source in sources]
    view = replace(pool_view(" pool", known), lookups=4, hits=2)
    card = next(card for card in pool.SCENE.cards if isinstance(card, Predict))
    return card.text(Run(turn=1, steps=[step([" a"], pool=view)]))


def test_it_says_where_the_guesses_came_from_and_not_that_nobody_could_know() -> None:
    """It said "You could not know" of what stands in the prompt."""
    text = after_the_question("window", "prompt", "prompt")
    assert text.startswith("3 guesses after ‹·pool›: from window and prompt.") and "know" not in text
    assert "one in 2 of 4 passes" in text
    assert after_the_question().startswith("None after ‹·pool›. So far")


def test_a_pool_that_is_switched_off_had_a_guess_in_no_pass() -> None:
    """Beside G = 0 it said that 95 % of passes had a guess: those that G did not let in."""
    for guesses in (0, 5):
        runner = random_table(9, seed=9)
        views = [each.pool for _, each in passes(runner, registry.lookahead(runner, 5, 3, guesses))]
        assert any(view is not None and view.candidates for view in views), "it knows some all the same"
        last = views[-1]
        assert last is not None and (last.hits > 0) == (guesses > 0) and last.lookups == len(views)
