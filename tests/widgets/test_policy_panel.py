"""Claims about the panel of the adaptive policy: words and figures say what the pass costs and should bring."""

from itertools import product

import msgspec
import pytest

from ladechat.protocol import Decision, ExpectedTokens, PassCost, PolicyChoice
from ladechat.widgets.panels.cost_chart import HERE
from ladechat.widgets.panels.panel import longest
from ladechat.widgets.panels.policy_panel import PolicyPanel, Shown
from tests.fake_model import POLICY_CHOICE
from tests.widgets.hosting import hosted, lines
from tests.widgets.sample_steps import step, timing

PLAIN = msgspec.structs.replace(POLICY_CHOICE, slots=1.0, tokens=1.0)


def shown(choice: PolicyChoice) -> PolicyPanel:
    panel = PolicyPanel()
    panel.show(choice)
    return panel


async def test_before_anything_is_known_it_says_what_the_policy_does() -> None:
    async with hosted(PolicyPanel(), 50, 8) as (_, panel):
        assert "as many tokens as pay" in " ".join(lines(panel))


def figures(text: list[str], name: str) -> list[float]:
    """The figures of a row, below 1, 2, 4 … slots."""
    return [float(figure) for figure in next(line for line in text if line.lstrip().startswith(name)).split()[1:]]


async def test_the_latest_choices_are_told_in_words_and_figures_stand_below_their_slots() -> None:
    """As of a recording that does not say what was decided for each pass."""
    async with hosted(shown(POLICY_CHOICE), 80, 13) as (_, panel):
        text = lines(panel)
        assert text[0].endswith("lately 9 slots a pass")
        assert text[-1] == "Lately passes of 9 slots cost 1.4 plain ones, and should bring 2.1 tokens"
        axis = next(line for line in text if HERE in line)
        assert axis.replace(HERE, " ").split() == ["slots", "1", "2", "4", "8", "16", "32", "64"]
        assert figures(text, "tokens") == [1.0, 1.4, 1.8, 2.0, 2.2, 2.4]
        assert sum("█" in line for line in text) >= 4, "bars"


async def test_the_speed_is_tokens_over_cost() -> None:
    """So drafting pays where it is above 1."""
    async with hosted(shown(POLICY_CHOICE), 80, 20) as (_, panel):
        costs = [1.0, 1.03, 10.4 / 9.5, 12.9 / 9.5, 2.0, 3.33]
        brings = [1.0, 1.4, 1.75, 2.05, 2.25, 2.35]
        wanted = [token / cost for token, cost in zip(brings, costs, strict=True)]
        assert figures(lines(panel), "speed") == pytest.approx(wanted, abs=0.06)


async def test_what_the_bars_are_is_said_in_figures_below_them() -> None:
    """Bars were without a name, and 1.3 tokens at a speed of 0.5 could not be followed."""
    async with hosted(shown(POLICY_CHOICE), 54, 9) as (_, panel):
        costs, tokens, speeds = (figures(lines(panel), name) for name in ("cost", "tokens", "speed"))
        assert len(costs) >= len(tokens) == len(speeds) > 3
        for cost, token, speed in zip(costs, tokens, speeds, strict=False):
            assert abs(token / cost - speed) < 0.16, "as far as one decimal goes"


def test_a_trial_says_what_it_costs_where_the_whole_sentence_does_not_fit() -> None:
    trial = Shown(6, 1.4, 2.5, Decision(why="trial", tokens=1.4, cost=2.5))
    assert longest(54, trial.wordings) == "Tried at a loss: cost 2.5×, should bring 1.4 tokens"
    assert longest(44, trial.wordings) == "Tried: cost 2.5×, should bring 1.4 tokens"


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (PLAIN, ["1 slot", "Lately no draft was worth its slot"]),
        (POLICY_CHOICE, ["9 slots", "2.1 tokens at 1.4× cost"]),
        (msgspec.structs.replace(POLICY_CHOICE, slots=1.4), ["1.4 slots", "2.1 tokens at"]),
    ],
)
async def test_two_lines_are_enough_for_the_choice(choice: PolicyChoice, words: list[str]) -> None:
    async with hosted(shown(choice), 36, 2) as (_, panel):
        text = lines(panel)
        assert [word in line for word, line in zip(words, text, strict=True)] == [True, True]


PASSES = [
    (1, Decision(why="paused", tokens=1.0, cost=1.0), "No draft in this pass: drafting has not paid lately"),
    (1, Decision(why="none", tokens=1.0, cost=1.1), "No draft in this pass: none was worth its slot"),
    (3, Decision(why="pays", tokens=1.9, cost=1.3), "This pass: 3 slots cost 1.3 plain passes and should bring 1.9"),
    (
        3,
        Decision(why="trial", tokens=1.2, cost=1.9),
        "Tried although it should not pay: 3 slots cost 1.9 plain passes and should bring 1.2 tokens",
    ),
    (34, Decision(why="window", tokens=1.0, cost=1.1), "The Jacobi window is in every pass here: 34 slots cost"),
    (7, Decision(why="of a later version", tokens=1.4, cost=1.2), "This pass: 7 slots cost 1.2 plain passes"),
]


async def test_what_is_said_of_a_pass_is_what_was_decided_for_it() -> None:
    """Whatever the means of the latest choices are: they may be half a second old."""
    async with hosted(shown(POLICY_CHOICE), 100, 13) as (_, panel):
        for choice, (slots, decision, words) in product((PLAIN, POLICY_CHOICE), PASSES):
            panel.show(choice)
            panel.show_step(msgspec.structs.replace(step(["a"], time=timing(slots)), decision=decision))
            text = ["".join(part for part, _ in row) for row in panel.rows(100, 13)]
            assert text[0].rstrip().endswith(f"this pass: {slots} slot{'s' * (slots > 1)}")
            assert text[-1].startswith(words)
            assert words in panel.explain()


@pytest.mark.parametrize("slots", [2, 4, 16, 32])
async def test_bars_and_figures_are_those_that_were_decided_for_the_pass(slots: int) -> None:
    """The decision expects as many tokens as the pass costs, a speed of 1, unlike the recent means."""
    async with hosted(shown(POLICY_CHOICE), 80, 20) as (_, panel):
        for taken in (1.4, 2.2, 3.4):
            decided = Decision(why="pays", tokens=taken, cost=taken, expected=[1.0, *[1.0 if slots > 2 else taken] * 6])
            panel.show_step(msgspec.structs.replace(step(["a"], time=timing(slots)), decision=decided))
            text = ["".join(part for part, _ in row) for row in panel.rows(80, 20)]
            place = slots.bit_length() - 1
            assert (figures(text, "tokens")[place], figures(text, "speed")[place]) == (taken, 1.0)


@pytest.mark.parametrize(("slots", "decision", "_words"), PASSES)
def test_no_wording_of_any_length_speaks_of_drafts_where_there_are_none(
    slots: int, decision: Decision, _words: str
) -> None:
    for wording in Shown(slots, decision.tokens, decision.cost, decision).wordings:
        assert wording.startswith("No draft") == (slots == 1)


@pytest.mark.parametrize(
    "choice",
    [
        msgspec.structs.replace(POLICY_CHOICE, costs=[]),
        msgspec.structs.replace(POLICY_CHOICE, expected=[]),
        msgspec.structs.replace(POLICY_CHOICE, costs=[PassCost(slots=1, ms=0.0)]),
        msgspec.structs.replace(POLICY_CHOICE, costs=[PassCost(slots=4, ms=9.0)] * 3),
        msgspec.structs.replace(POLICY_CHOICE, slots=0.0, tokens=-1.0),
        msgspec.structs.replace(POLICY_CHOICE, slots=9e9, expected=[ExpectedTokens(slots=-4, tokens=3.0)]),
    ],
)
async def test_a_recording_that_tells_too_little_or_nonsense_is_drawn_all_the_same(choice: PolicyChoice) -> None:
    async with hosted(shown(choice), 60, 13) as (_, panel):
        lines(panel)


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 6, 7, 8, 13, 20])
@pytest.mark.parametrize("width", [8, 20, 36, 84])
async def test_it_fits_any_room(width: int, height: int) -> None:
    async with hosted(shown(POLICY_CHOICE), width, height) as (_, panel):
        assert len(lines(panel)) <= height
