"""What the scene about the pool says of a pass."""

from msgspec.structs import replace

from ladechat import registry
from ladechat.lessons import pool
from ladechat.lessons.scene import Predict, Run
from tests.decoder.table_runner import random_table
from tests.widgets.sample_steps import candidate, pool_view, step
from tests.widgets.test_pass_slots import passes


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
