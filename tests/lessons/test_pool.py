"""What the scene about the pool says of a pass."""

from msgspec.structs import replace

from ladechat.lessons import pool
from ladechat.lessons.scene import Predict, Run
from tests.widgets.sample_steps import candidate, pool_view, step


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
    assert "2 of 4 passes, its hit rate" in text
    assert after_the_question().startswith("None after ‹·pool›. So far")
