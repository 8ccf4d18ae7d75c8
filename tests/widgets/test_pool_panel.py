"""Claims about the panel of the n-gram pool."""

import msgspec
import pytest
from textual.message import Message

from ladechat.palette import Palette
from ladechat.protocol import DraftTree
from ladechat.widgets.panels.pool_panel import PoolPanel
from ladechat.widgets.steps.answer_steps import StepPointedAt
from ladechat.widgets.steps.births import Births
from ladechat.widgets.steps.explained import SOURCES
from tests.waiting import until
from tests.widgets.hosting import Host, drawn, hosted, lines, showing, style_of
from tests.widgets.sample_steps import answer, candidate, plain_step, pool_view, step, window_view

KNOWN = [
    candidate([" keeps", " n", "-gram", " s"], "window", matched=2),
    candidate([" is", " a", " dict"], "prompt", matched=0),
    candidate([" keeps", " n", "-grams"], "accepted", matched=3),
    candidate([" was", " full"], "accepted", tried=False),
]


def pool_step(index: int = 3) -> PoolPanel:
    panel = PoolPanel()
    panel.show_step(step([" keeps", " n", "-grams", "."], index=index, pool=pool_view(" pool", KNOWN)))
    return panel


async def test_each_candidate_tells_its_tokens_its_fate_and_its_source() -> None:
    async with hosted(pool_step(), 50, 8) as (_, panel):
        shown = lines(panel)
        assert panel.title == "n-gram pool"
        assert " ".join(shown[0].split()) == "n-gram pool 412 n-grams, 5 new · a guess in 61 %"
        assert shown[1] == "after ‹·pool›:"
        assert shown[2].split() == ["1", "✓·keeps", "✓·n", "✗-gram", "–·s", "window"]
        assert shown[3].split() == ["2", "└✓-grams", "answer"]
        assert shown[4].split() == ["3", "✗·is", "–·a", "–·dict", "prompt"]
        assert shown[5].split() == ["·was", "·full", "no", "room"], "no number, and no verdict"


async def test_the_models_answers_stand_above_the_guess_that_said_the_same() -> None:
    async with hosted(pool_step(), 60, 9) as (_, panel):
        says, best = lines(panel)[2:4]
        assert says.split() == ["·keeps", "·n", "-grams", ".", "the", "model", "says"]
        assert [says.index(piece) for piece in ("·keeps", "·n")] == [best.index(piece) for piece in ("·keeps", "·n")]


async def test_the_verdicts_of_a_pass_are_counted_as_they_are_marked() -> None:
    async with hosted(pool_step(), 60, 9) as (_, panel):
        shown = lines(panel)
        counts = [sum(line.count(mark) for line in shown[3:6]) for mark in "✓✗–"]
        assert counts == [3, 2, 3]
        assert shown[-2] == "8 drafts: 3 accepted ✓, 2 wrong ✗, 3 not reached –"


async def test_what_matched_wears_the_style_of_the_step_and_the_rest_does_not() -> None:
    async with hosted(pool_step(), 50, 8) as (_, panel):
        assert style_of(panel, "keeps").color == Palette().style_of_step(3, 4).color
        assert style_of(panel, "n").color == style_of(panel, "keeps").color
        assert style_of(panel, "-gram").color != style_of(panel, "keeps").color
        hues = {Palette().style_of_step(index, 2).color for index in range(6)}
        assert style_of(panel, "window").color not in hues, "hues are left to steps"


async def test_guesses_that_begin_alike_are_drawn_as_a_tree() -> None:
    panel = PoolPanel()
    known = [
        candidate(["a", "b", "c"], "suffix", matched=3),
        candidate(["x"], "prompt"),
        candidate(["a", "b", "d"], "suffix", matched=2),
        candidate(["a", "e", "f"], "recycling", matched=1),
        candidate(["a", "b", "c", "g"], "suffix", matched=3),
    ]
    panel.show_step(step(["a", "b", "c", "."], pool=pool_view("the", known)))
    async with Host(panel, 50, 12).run_test():
        shown = lines(panel)
        assert [line[:16].rstrip() for line in shown[3:8]] == [
            "1 ✓a ✓b ✓c",
            "2   │  │  └✗g",
            "3   │  └✗d",
            "4   └✗e –f",
            "5 ✗x",
        ]


async def test_in_a_narrow_panel_tokens_give_way_to_the_source() -> None:
    async with hosted(pool_step(), 28, 6) as (_, panel):
        shown = lines(panel)
        assert shown[2].split() == ["2", "✓·keeps", "✓·n", "✓-grams", "answer"], (
            "the one that was accepted in full first"
        )
        assert shown[3].split() == ["1", "└✗-gram…", "window"]
        assert shown[4].split() == ["3", "✗·is", "–·a", "–·dict", "prompt"]


async def test_every_source_is_a_whole_word_at_any_width_and_explained_while_it_is_on_the_screen() -> None:
    async with hosted(PoolPanel(), 80, 6) as (_, panel):
        for source in SOURCES:
            panel.show_step(step([" one"], pool=pool_view(" pool", [candidate([" long", " words"] * 9, source)])))
            words = SOURCES[source].name
            for width in (28, 36, 43, 80):
                line = "".join(text for text, _ in panel.rows(width, 6)[3])
                assert line.endswith((f" {words}", f" {words.split()[0]}"))
            assert f"Where drafts come from: {words}, " in panel.explain()


async def test_what_was_accepted_is_seen_however_little_room_there_is() -> None:
    others = [candidate([f"x{place}", "y"], "prompt") for place in range(9)]
    known = [*others, candidate(["a", "b"], "prompt", matched=2)]
    async with hosted(showing(PoolPanel(), step(["a", "b", "."], pool=pool_view("the", known))), 50, 5) as (_, panel):
        assert lines(panel)[3].startswith("10 ✓a ✓b"), "it keeps its number"
        assert lines(panel)[1].endswith("+8 more")


@pytest.mark.parametrize(
    ("tokens", "matched", "words"),
    [
        ([], 0, "This pass checked no drafts."),
        (["a"], 0, "This pass checked 1 draft: 1 wrong ✗."),
        (["a", "b"], 2, "This pass checked 2 drafts: 2 accepted ✓."),
        (
            ["a", "b"],
            0,
            "This pass checked 2 drafts: 1 wrong ✗, 1 not reached –. Not reached: it follows a wrong draft.",
        ),
    ],
)
def test_it_says_in_sound_english_what_was_drafted(tokens: list[str], matched: int, words: str) -> None:
    known = [candidate(tokens, "suffix", matched=matched)] if tokens else []
    panel = showing(PoolPanel(), step([*tokens[:matched], "."], pool=pool_view("x", known)))
    assert panel.explain().startswith(words)


def test_verdicts_are_counted_and_so_are_guesses_without_room() -> None:
    explained = pool_step().explain()
    assert "8 drafts: 3 accepted ✓, 2 wrong ✗, 3 not reached –." in explained
    assert "It has 1 guess more than G lets in." in explained


async def test_the_mark_of_a_draft_that_was_not_reached_is_no_dot_as_a_space_is_and_is_explained_at_any_width() -> None:
    async with hosted(pool_step(), 80, 14) as (_, panel):
        for width in (28, 36, 50, 80):
            text = ["".join(part for part, _ in row) for row in panel.rows(width, 14)]
            assert any(last in text[-2] for last in ("3 not reached", "3–"))
            assert "–·s" in text[3] or width < 36


async def test_a_token_that_was_never_in_the_tree_is_not_called_refused() -> None:
    cut = candidate([" keeps", " n"], "window", matched=1)
    only_first = candidate([" keeps"], "window", matched=1)
    tree = step([" keeps", " n"], pool=pool_view(" pool", [only_first])).draft
    shown_step = step([" keeps", " n"], pool=pool_view(" pool", [cut]))
    async with hosted(showing(PoolPanel(), msgspec.structs.replace(shown_step, draft=tree)), 50, 8) as (_, panel):
        assert lines(panel)[3].startswith("1 ✓·keeps –·n")


async def test_tested_and_accepted_drafts_are_counted_over_the_answer_each_node_once() -> None:
    async with hosted(pool_step(), 50, 8) as (pilot, panel):
        # keeps ✓, n ✓, -gram ✗, s untested, is ✗, a and dict untested, -grams ✓ (keeps and n are shared)
        assert lines(panel)[-1].startswith("answer: 3 of 5 reached drafts accepted")
        panel.show_step(step([" keeps", " n", "-grams", "."], pool=pool_view(" pool", KNOWN)))
        assert (await drawn(pilot, panel))[-1].startswith("answer: 6 of 10 reached drafts accepted")
        panel.clear()
        panel.show_step(step(["."], pool=pool_view(" pool", [])))
        assert (await drawn(pilot, panel))[-1].startswith("no draft reached yet")


async def test_what_is_not_known_yet_is_not_said_to_be_a_nought() -> None:
    panel = showing(PoolPanel(), step(["."], pool=pool_view("\n", [], ngrams=0, lookups=0, hits=0)))
    async with Host(panel, 40, 6).run_test():
        assert lines(panel)[0].endswith("0 n-grams, 5 new") and "%" not in lines(panel)[0]
        assert lines(panel)[1] == "no guess after ‹⏎›"


async def test_candidates_without_a_line_are_counted() -> None:
    async with hosted(pool_step(), 40, 4) as (_, panel):
        assert lines(panel)[1].split() == ["after", "‹·pool›:", "+2", "more"]
        assert len(lines(panel)) == 4


async def test_a_tail_cut_short_says_so() -> None:
    panel = PoolPanel()
    panel.show_step(step(["x"], pool=pool_view(" pool", [candidate([" one", " two", " three", " four"], "window")])))
    async with Host(panel, 28, 6).run_test():
        assert lines(panel)[3].split()[-2].endswith("…")


@pytest.mark.parametrize("size", [(28, 4), (28, 6), (44, 10), (70, 20), (10, 2), (3, 1)])
@pytest.mark.parametrize("settings", [(7, 5, 5), (1, 2, 0), (5, 16, 64)])
async def test_any_pool_fits_any_size(size: tuple[int, int], settings: tuple[int, int, int]) -> None:
    async with hosted(PoolPanel(), *size) as (pilot, panel):
        for each in answer(*settings)[:6]:
            panel.show_step(each)
            await drawn(pilot, panel)


@pytest.mark.parametrize("odd", ["日本語の文", "👩\u200d🚀", "e\u0301te\u0301", "\x1b[31m", "", "\n    ", "\ufffd"])
async def test_odd_tokens_leave_the_source_at_the_edge(odd: str) -> None:
    panel = showing(PoolPanel(), step([odd], pool=pool_view(odd, [candidate([odd, odd, "x"], "prompt")])))
    async with Host(panel, 28, 6).run_test():
        assert lines(panel)[3].endswith(" prompt")


async def test_without_a_pool_the_branches_of_the_draft_tree_are_shown_and_counted() -> None:
    drafted = step([" keeps", " n", "-grams", "."], index=3, pool=pool_view(" pool", KNOWN))
    async with hosted(showing(PoolPanel(), msgspec.structs.replace(drafted, pool=None)), 60, 7) as (_, panel):
        shown = [line.split() for line in lines(panel)]
        assert shown[:5] == [
            ["drafts"],
            ["·keeps", "·n", "-grams", ".", "the", "model", "says"],
            ["1", "✓·keeps", "✓·n", "✗-gram", "–·s", "window"],
            ["2", "└✓-grams", "answer"],
            ["3", "✗·is", "–·a", "–·dict", "prompt"],
        ]
        assert lines(panel)[-1].startswith("answer: 3 of 5 reached drafts accepted")


async def test_beside_the_pool_stand_the_branches_of_other_drafters() -> None:
    panel = PoolPanel()
    other = candidate([" like", " so"], "suffix", matched=0)
    both = step([" keeps", " n", "-grams", "."], pool=pool_view(" pool", [*KNOWN, other]))
    panel.show_step(msgspec.structs.replace(both, pool=pool_view(" pool", KNOWN)))
    async with Host(panel, 60, 9).run_test():
        shown = lines(panel)
        assert shown[0].startswith("drafts")
        assert panel.title == "drafts"
        assert [line.split()[-1] for line in shown[2:7]] == ["window", "answer", "prompt", "suffix", "room"]


async def test_a_damaged_tree_ends_a_branch_instead_of_turning_in_a_circle() -> None:
    tree = DraftTree(token_ids=[1, 2], pieces=["a", "b"], parents=[1, 0], sources=["x", ""], verdicts=["rejected"] * 2)
    async with hosted(showing(PoolPanel(), msgspec.structs.replace(step(["."]), draft=tree)), 60, 6) as (_, panel):
        lines(panel)


async def test_plain_decoding_says_so() -> None:
    async with hosted(PoolPanel(), 40, 4) as (pilot, panel):
        assert lines(panel)[1] == "Fills with the first pass."
        panel.show_step(plain_step())
        assert (await drawn(pilot, panel))[1] == "Plain decoding: nothing is drafted."


async def test_the_hit_rate_is_of_the_whole_answer_also_after_plain_decoding_in_its_middle() -> None:
    panel = PoolPanel()
    for lookups, hits in ((1, 0), (2, 1), (3, 2), (3, 2)):  # in the last pass nothing was drafted
        panel.show_step(step(["."], pool=pool_view(" pool", [], lookups=lookups, hits=hits)))
    panel.show_step(plain_step())
    panel.show_step(step(["."], pool=pool_view(" pool", [], lookups=1, hits=1)))
    async with Host(panel, 60, 8).run_test():
        assert lines(panel)[0].endswith("a guess in 75 % of passes")
        assert "in 3 of 4 passes:" in panel.explain()
        panel.clear()
        panel.show_step(step(["."], pool=pool_view(" pool", [], lookups=1, hits=0)))
        assert "in 0 of 1 pass:" in panel.explain()


def messages_of(panel: PoolPanel, monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The messages that the panel posts from now on."""
    posted: list[Message] = []
    post = panel.post_message

    def noted(message: Message) -> bool:
        posted.append(message)
        return post(message)

    monkeypatch.setattr(panel, "post_message", noted)
    return posted


NEW_WINDOW = window_view(
    [["to", " is", " a"], [" be", " the", " way"], [" exact", " method", " to"]], [",", " for", " x"]
)


async def test_an_ngram_drops_into_the_pool_with_its_ends_when_its_diagonal_is_marked() -> None:
    panel = showing(PoolPanel(), step([" be"], window=NEW_WINDOW, pool=pool_view("to", [])))
    async with hosted(panel, 50, 12) as (pilot, _):
        assert lines(panel)[0].endswith("412 n-grams, 5 new · a guess in 61 %")
        assert lines(panel)[1:6] == [
            "no guess after ‹to›",
            "diagonals into the pool:",
            "+ to → ·be ·exact ,",
            "+ ·is → ·the ·method ·for",
            "+ ·a → ·way ·to ·x",
        ]
        panel.diagonal = 1
        shown = await drawn(pilot, panel)
        assert shown[3:6] == ["+ ·is → ·the ·method ·for", "+ ·the → ·method ·for", "+ ·method → ·for"]
        assert style_of(panel, "·the → ·method ·for").reverse
        assert not style_of(panel, "to → ·be ·exact ,").reverse


async def test_only_lines_are_counted_where_diagonals_are_listed() -> None:
    """It said "4 new · +3 more" over two lines: the one is by how much the pool grew, the other counts lines."""
    async with hosted(showing(PoolPanel(), step([" be"], window=NEW_WINDOW, pool=pool_view("to", []))), 50, 6) as (
        _,
        p,
    ):
        heading, *listed = (line for line in lines(p) if line.startswith(("diagonals", "+ ")))
        assert heading.split()[4:] == ["+1", "more"] and len(listed) == 2


async def test_an_ngram_of_two_diagonals_is_listed_once() -> None:
    twice = window_view([["to", "to", "a"], [" be", " be", " b"]], [" or", " or", " c"])
    panel = showing(PoolPanel(), step([" be"], window=twice, pool=pool_view("to", [])))
    async with hosted(panel, 50, 12) as (pilot, _):
        assert [line for line in lines(panel) if line.startswith("+")] == ["+ to → ·be ·or", "+ a → ·b ·c"]
        panel.diagonal = 0
        shown = await drawn(pilot, panel)
        assert [line for line in shown if line.startswith("+")] == ["+ to → ·be ·or", "+ ·be → ·or", "+ a → ·b ·c"]


async def test_of_jacobi_decoding_it_speaks_of_no_n_grams_and_no_guesses_of_a_pool() -> None:
    """It said "5 stand in a guess too, and count once" and "window, n-grams of the Jacobi window"."""
    block = step(
        ["a"], pool=pool_view("x", [candidate(["b", "c"], "window")]), window=window_view([["x", "b", "c"]], "abc")
    )
    panel = showing(PoolPanel(), msgspec.structs.replace(block, pool=None))
    text = panel.explain()
    assert text.startswith("This pass checked 2 drafts: 1 wrong ✗, 1 not reached –. They are the row that went in.")
    assert not any(word in text for word in ("n-gram", "pool", "guess", "count once"))


async def test_a_guess_that_the_window_has_formed_points_back_to_that_pass_and_a_click_on_it_goes_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    births = Births()
    births.add(step(["to"], index=4, window=NEW_WINDOW))
    guess = candidate([" method", " for"], "window", 2)
    here = window_view([[" the", "x"], ["y", "z"]], ["y", "z"])
    panel = showing(
        PoolPanel(births), step([" method", " for", "."], index=9, window=here, pool=pool_view(" the", [guess]))
    )
    async with hosted(panel, 60, 9) as (pilot, _):
        assert lines(panel)[3].endswith(" window, pass 5")
        posted = messages_of(panel, monkeypatch)
        await pilot.click(panel, offset=(6, 3))
        await until(lambda: any(isinstance(one, StepPointedAt) for one in posted), pilot)
    assert [(one.step, one.diagonal) for one in posted if isinstance(one, StepPointedAt)] == [(4, 1)]
