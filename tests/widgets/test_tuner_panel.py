"""Claims about the panel of `auto`: what was taken stands out, and lies where its slots and tokens are."""

import msgspec
import pytest

from ladechat.protocol import Expectation, PassCost, Tuned
from ladechat.widgets.tuner_panel import COST, HOPED, TAKEN, TRIED, TunerPanel
from tests.widgets.hosting import Host, lines


def expectation(
    settings: tuple[int, int, int], slots: float, tokens: float, rate: float, known: bool = True
) -> Expectation:
    window, ngram, guesses = settings
    return Expectation(
        window=window,
        ngram=ngram,
        guesses=guesses,
        slots=slots,
        tokens_per_step=tokens,
        tokens_per_second=rate,
        known=known,
    )


PLAIN = expectation((0, 2, 0), 1.0, 1.0, 100.0)
GUESSES = expectation((0, 8, 5), 4.0, 1.6, 140.0)
TRIED_WINDOW = expectation((5, 3, 5), 16.0, 1.9, 90.0)
HOPED_WINDOW = expectation((15, 5, 15), 60.0, 2.4, 60.0, known=False)


def tuned(taken: Expectation, exploring: bool = False) -> Tuned:
    return Tuned(
        turn=1,
        window=taken.window,
        ngram=taken.ngram,
        guesses=taken.guesses,
        exploring=exploring,
        expectations=[PLAIN, GUESSES, TRIED_WINDOW, HOPED_WINDOW],
        costs=[PassCost(slots=1, ms=10.0), PassCost(slots=16, ms=15.0), PassCost(slots=64, ms=30.0)],
    )


def shown(event: Tuned) -> TunerPanel:
    panel = TunerPanel()
    panel.show(event)
    return panel


async def test_before_anything_is_known_it_says_what_auto_does() -> None:
    panel = TunerPanel()
    async with Host(panel, 50, 8).run_test():
        assert "follow what they yield" in " ".join(lines(panel))


async def test_what_was_taken_is_marked_once_and_told_in_words() -> None:
    panel = shown(tuned(GUESSES))
    async with Host(panel, 60, 12).run_test():
        text = lines(panel)
        assert text[0].endswith("≈1.40× plain")
        assert sum(line.count(TAKEN) for line in text[1:-2]) == 1
        assert sum(line.count(TRIED) for line in text[1:-2]) == 1
        assert sum(line.count(HOPED) for line in text[1:-2]) == 1
        assert text[-1] == f"{TAKEN} guesses where they pay · 1.60 tok/step at 4.0 slots"
        assert [part for part in text[-2].split() if part.isdigit()] == ["1", "4", "16", "64"]


async def test_what_yields_more_lies_higher_and_what_has_more_slots_lies_to_the_right() -> None:
    panel = shown(tuned(GUESSES))
    async with Host(panel, 60, 12).run_test():
        text = lines(panel)[1:-2]

        def place(mark: str) -> tuple[int, int]:
            return next((row, line.index(mark)) for row, line in enumerate(text) if mark in line)

        (taken_row, taken_column), (tried_row, tried_column) = place(TAKEN), place(TRIED)
        hoped_row, hoped_column = place(HOPED)
        assert taken_row > tried_row > hoped_row
        assert taken_column < tried_column < hoped_column
        # A pass of 4 slots costs 1.1 plain ones, and yields 1.6 tokens: the circle lies above the line.
        line_below = [row for row, line in enumerate(text) if line[taken_column] == COST]
        assert line_below and min(line_below) > taken_row


@pytest.mark.parametrize(
    ("taken", "exploring", "words"),
    [
        (TRIED_WINDOW, False, "W 5 N 3 G 5 · 1.90"),
        (TRIED_WINDOW, True, "trying W 5 N 3 G 5"),
        (expectation((0, 8, 5), 1.0, 1.0, 100.0), False, "plain: no guess is worth its slots"),
    ],
)
async def test_it_says_what_it_does(taken: Expectation, exploring: bool, words: str) -> None:
    event = tuned(taken, exploring)
    expectations = [PLAIN, *(one for one in (taken, HOPED_WINDOW))]
    panel = shown(
        Tuned(
            turn=1,
            window=event.window,
            ngram=event.ngram,
            guesses=event.guesses,
            exploring=exploring,
            expectations=expectations,
            costs=event.costs,
        )
    )
    async with Host(panel, 60, 12).run_test():
        assert words in lines(panel)[-1]


async def test_a_recording_that_tells_too_little_shows_what_auto_does() -> None:
    event = tuned(GUESSES)
    for changed in (
        msgspec.structs.replace(event, costs=[]),
        msgspec.structs.replace(event, expectations=[]),
        msgspec.structs.replace(event, window=33),
        msgspec.structs.replace(event, expectations=[msgspec.structs.replace(PLAIN, tokens_per_second=0.0), GUESSES]),
    ):
        panel = shown(changed)
        async with Host(panel, 50, 8).run_test():
            assert "follow what they yield" in " ".join(lines(panel))


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 6, 8, 20])
@pytest.mark.parametrize("width", [8, 20, 36, 84])
async def test_it_fits_any_room(width: int, height: int) -> None:
    panel = shown(tuned(TRIED_WINDOW))
    async with Host(panel, width, height).run_test():
        assert len(lines(panel)) <= height
