"""Claims about the panel of the adaptive policy: the point taken stands out, and words say what it costs and brings."""

import msgspec
import pytest

from ladechat.protocol import ExpectedTokens, PassCost, PolicyChoice
from ladechat.widgets.policy_panel import COST, TAKEN, TOKENS, PolicyPanel
from tests.fake_engine import POLICY_CHOICE
from tests.widgets.hosting import Host, lines

PLAIN = msgspec.structs.replace(POLICY_CHOICE, slots=1.0, tokens=1.0)


def shown(choice: PolicyChoice) -> PolicyPanel:
    panel = PolicyPanel()
    panel.show(choice)
    return panel


async def test_before_anything_is_known_it_says_what_the_policy_does() -> None:
    panel = PolicyPanel()
    async with Host(panel, 50, 8).run_test():
        assert "as many tokens as pay" in " ".join(lines(panel))


async def test_the_choice_is_told_in_words_and_its_axes_are_named() -> None:
    panel = shown(POLICY_CHOICE)
    async with Host(panel, 80, 13).run_test():
        text = lines(panel)
        assert text[0].endswith("9 slots a pass")
        assert text[-1] == f"{TAKEN} 9 slots: a step costs 1.4 plain ones and should bring 2.1 tokens"
        assert text[-2] == f"{COST} cost of a step, in plain steps   {TOKENS} tokens it should bring"
        assert text[-3].split() == ["slots", "1", "4", "16", "64"]
        assert sum(line.count(TAKEN) for line in text[1:-3]) == 1


async def test_where_drafting_pays_the_tokens_lie_above_the_cost() -> None:
    panel = shown(POLICY_CHOICE)
    async with Host(panel, 80, 20).run_test():
        text = lines(panel)[1:-3]
        column = next(line.index(TAKEN) for line in text if TAKEN in line)
        taken = next(row for row, line in enumerate(text) if TAKEN in line)
        cost = next(row for row, line in enumerate(text) if line[column : column + 1] == COST)
        assert taken < cost


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (PLAIN, ["plain decoding", "no draft is worth its slots now"]),
        (POLICY_CHOICE, ["9 slots a pass", f"{TAKEN} 9 slots: 2.1 tokens at 1.4× cost"]),
        (msgspec.structs.replace(POLICY_CHOICE, slots=1.4), ["1.4 slots a pass", f"{TAKEN} 1.4 slots"]),
    ],
)
async def test_two_lines_are_enough_for_the_choice(choice: PolicyChoice, words: list[str]) -> None:
    panel = shown(choice)
    async with Host(panel, 36, 2).run_test():
        text = lines(panel)
        assert [word in line for word, line in zip(words, text, strict=True)] == [True, True]


async def test_the_window_is_named_where_it_takes_part() -> None:
    panel = shown(msgspec.structs.replace(POLICY_CHOICE, window=True))
    async with Host(panel, 100, 2).run_test():
        assert lines(panel)[-1].endswith("with the Jacobi window")


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
    panel = shown(choice)
    async with Host(panel, 60, 13).run_test():
        lines(panel)


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 6, 7, 8, 13, 20])
@pytest.mark.parametrize("width", [8, 20, 36, 84])
async def test_it_fits_any_room(width: int, height: int) -> None:
    panel = shown(POLICY_CHOICE)
    async with Host(panel, width, height).run_test():
        assert len(lines(panel)) <= height
