"""Claims about the panel of pseudo states."""

from collections.abc import Sequence

import msgspec
import pytest
from rich.cells import cell_len

from ladechat.palette import Palette
from ladechat.protocol import Candidate, LensView, TrainedPart
from ladechat.widgets.panels.lens_panel import LensPanel, spread
from tests.waiting import until
from tests.widgets.hosting import Host, drawn, hosted, lines, style_of
from tests.widgets.sample_steps import answer, candidate, draft_tree, lens_view, plain_step, sharpening, step

# Layers 2 to 5; the third position begins at layer 3.
ROWS = [[" of", "\n"], [" keeps", " a", "."], [" keeps", " all", " all"], [" keeps", " all", " the"]]
VIEW = lens_view(" pool", ROWS)


def shown(*pieces: str, index: int = 4, view: LensView = VIEW, drafts: Sequence[Candidate] | None = None) -> LensPanel:
    """The panel after a step whose drafts are these, or else the guesses on top of the view."""
    panel = LensPanel()
    emitted = step(pieces, index=index, lens=view)
    top = view.rows[-1]
    matched = next((place for place, (a, b) in enumerate(zip(top, pieces, strict=False)) if a != b), len(pieces) - 1)
    tree = draft_tree([candidate(top, "hidden_transfer", matched)] if drafts is None else drafts)
    panel.show_step(msgspec.structs.replace(emitted, draft=tree))
    return panel


async def test_layers_rise_to_the_guess_below_what_the_model_says_and_bars_mark_where_it_stays_the_same() -> None:
    async with hosted(shown(" keeps", " the"), 60, 10) as (_, panel):
        header, head, model, between, *grid, maps, legend = lines(panel)
        assert header.startswith("pseudo states")
        assert head.split() == ["layer", "t+1", "t+2", "t+3", "t+4"]
        assert model.split() == ["model", "·pool", "·keeps", "·the"], "as far as this pass has said it"
        assert between.index("checked by this pass") < between.index("guessed by the pass before")
        assert [line.replace("│", " ").split() for line in grid] == [
            ["5", "·pool", "✓·keeps", "✗·all", "–·the"],
            ["4", "·keeps", "·all", "·all"],
            ["3", "·keeps", "·a", "."],
            ["2", "·of", "⏎"],
        ]
        assert "│ the guess stays the same" in legend
        places = [head.index("t+3"), *(line.index("·a") for line in grid[:3]), maps.index("┴", maps.index("M2"))]
        assert len(set(places)) == 1, "columns are aligned"
        for position, settled in (("t+2", "✓││ "), ("t+3", "✗│  "), ("t+4", "–   ")):
            place = head.index(position) - 1
            assert "".join(line.ljust(60)[place] for line in grid) == settled
        assert maps.split("─")[0].split() == ["maps", "[t]"]
        assert [name for name in ("M1", "M2", "M3", "M4") if name in maps] == ["M1", "M2", "M3"]
        text = panel.explain()
        assert "‹·pool› (t+1) came from the pass before" in text and "t+2 to t+4" in text
        assert "From the layers 3, 4, 5 up it stays the same" in text and "1 draft accepted" in text


TREES = {
    "the second guess of a place is accepted": (
        [" keeps", " the", " window"],
        [candidate([" keeps", " all", " the"], "x", 1), candidate([" keeps", " the", "."], "x", 2)],
        ["·keeps", "✓·the", "·window"],
        ["✓·keeps", "✗·all", "–·the"],
    ),
    "the model writes what was guessed for a place but not drafted": (
        [" keeps", " all"],
        [candidate([" keeps"], "x", 1), candidate([" of"], "x")],
        ["·keeps", "·all"],
        ["✓·keeps", "·all", "·the"],
    ),
    "all guesses of the first place are wrong": (
        [" so"],
        [candidate([" keeps", " all"], "x"), candidate([" of"], "x")],
        ["·so"],
        ["✗·keeps", "–·all", "·the"],
    ),
}


@pytest.mark.parametrize("name", TREES)
async def test_each_verdict_stands_at_the_draft_that_it_is_on(name: str) -> None:
    """A place may have several drafts: the verdict on one must not be shown beside another, or beside none."""
    emitted, drafts, said, guessed = TREES[name]
    panel = shown(*emitted, drafts=drafts)
    tree = draft_tree(drafts)
    assert tree is not None
    accepted = tree.verdicts.count("accepted")
    async with hosted(panel, 60, 10) as (_, panel):
        model, top = (lines(panel)[line].replace("│", " ").split()[2:] for line in (2, 4))
        assert (model, top) == (said, guessed)
        assert "".join([*model, *top]).count("✓") == accepted and f"{accepted} draft" in panel.explain()


async def test_only_an_accepted_draft_wears_the_style_of_the_step() -> None:
    """A guess that was not drafted did too, where the model wrote the same token by itself."""
    async with hosted(shown(" keeps", " all", drafts=[candidate([" keeps"], "x", 1)]), 60, 10) as (_, panel):
        assert style_of(panel, "keeps", 4).color == Palette().style_of_step(4, 2).color
        assert style_of(panel, "all", 4).color != style_of(panel, "keeps", 4).color


async def test_of_what_the_model_says_only_accepted_drafts_are_coloured_as_the_legend_has_it() -> None:
    async with hosted(shown(" keeps", " the"), 60, 10) as (_, panel):
        assert style_of(panel, "keeps", 2).color == Palette().style_of_step(4, 2).color
        assert style_of(panel, "the", 2).color != style_of(panel, "keeps", 2).color, "the model's own, no draft"


async def test_in_a_narrow_panel_the_real_token_stands_in_the_header() -> None:
    async with hosted(shown(" keeps", " the"), 40, 8) as (_, panel):
        header, head, model, *_ = lines(panel)
        assert header.endswith("t+1 is ‹·pool›") and "t+1" not in head
        assert model.split() == ["model", "·keeps", "·the"]


async def test_what_came_true_wears_the_style_of_the_step_and_what_is_not_settled_steps_back() -> None:
    async with hosted(shown(" keeps", " the", " window"), 60, 10) as (_, panel):
        marked = Palette().style_of_step(4, 3)
        for line in (2, 4, 5, 6):
            assert style_of(panel, "keeps", line).color == marked.color
        assert style_of(panel, "of").color != style_of(panel, "all", 4).color
        assert style_of(panel, "all", 4).underline is None, "settled, and wrong"


async def test_without_colours_shapes_tell_the_same() -> None:
    panel = shown(" keeps", " the")
    panel.palette = Palette(colour=False)
    async with Host(panel, 60, 10).run_test():
        assert style_of(panel, "keeps", 4).underline
        assert not style_of(panel, "all", 4).underline
        assert "✓" in lines(panel)[4] and "│" in lines(panel)[5]
        assert "marked: accepted" in lines(panel)[-1] and "coloured" not in lines(panel)[-1]


@pytest.mark.parametrize(
    ("count", "most", "places"),
    [(4, 9, [0, 1, 2, 3]), (9, 3, [0, 4, 8]), (16, 4, [0, 5, 10, 15]), (5, 1, [4]), (5, 0, []), (1, 1, [0])],
)
def test_of_many_layers_evenly_spread_ones_are_shown(count: int, most: int, places: list[int]) -> None:
    assert list(spread(count, most)) == places


@pytest.mark.parametrize("most", range(2, 30))
def test_no_layer_is_shown_twice_and_both_ends_are(most: int) -> None:
    for count in range(most, 80):
        places = list(spread(count, most))
        assert places == sorted(set(places)) and (places[0], places[-1], len(places)) == (0, count - 1, most)


async def test_layers_that_do_not_fit_are_counted() -> None:
    panel = shown(" keeps", view=sharpening("x", [" keeps", " all", " the"], seed=1, layers=24))
    async with Host(panel, 60, 9).run_test() as pilot:
        assert lines(panel)[0].endswith(" +18 layers")
        assert [line.split()[0].strip("│") for line in lines(panel)[3:]] == ["25", "20", "16", "11", "7", "2"]
        panel.styles.height = 30
        await until(lambda: panel.content_size.height == 30, pilot)
        assert len(lines(panel)) == 30 and "layers" not in lines(panel)[0] + lines(panel)[-1]


@pytest.mark.parametrize("size", [(28, 4), (36, 6), (43, 9), (60, 12), (84, 20), (10, 2), (3, 1)])
@pytest.mark.parametrize(("positions", "layers"), [(1, 1), (3, 5), (3, 40), (30, 4), (0, 2)])
async def test_any_states_fit_any_size(size: tuple[int, int], positions: int, layers: int) -> None:
    rows = [[" token"] * positions for _ in range(layers)]
    panel = shown(" token", " x", view=lens_view(" a very long token\n" * 9, rows, first=9_999_999))
    async with Host(panel, *size).run_test():
        shown_lines = lines(panel)
        assert not any("+-" in line for line in shown_lines)
        if size[0] >= 28 and positions:
            of_layers = [line for line in shown_lines[2:] if line.lstrip().startswith("9")]
            places = {min(line.index(mark) for mark in "│✓✗–" if mark in line) for line in of_layers}
            assert len(places) <= 1 or size[0] >= 44, "a long number moves no column"


@pytest.mark.parametrize(
    "odd", ["日本語の文", "👩\u200d🚀", "e\u0301te\u0301", "\x1b[31m", "", "\n    ", "\x9b2J\u202e"]
)
async def test_odd_tokens_leave_the_columns_where_they_are_and_steer_nothing(odd: str) -> None:
    async with hosted(shown(" x", view=lens_view(odd, [[odd, "mark"], ["a", "mark"]])), 40, 6) as (_, panel):
        text = lines(panel)
        assert len({cell_len(line[: line.index("mark")]) for line in text if "mark" in line}) == 1
        assert not any(sign in line for line in text for sign in "\x1b\x9b\u202e\n")


async def test_without_pseudo_states_a_sentence_says_why() -> None:
    panel = LensPanel()
    drafting = msgspec.structs.replace(answer(5, 3, 5)[2], window=None, pool=None)
    assert drafting.draft is not None
    async with Host(panel, 60, 5).run_test() as pilot:
        assert "Fills with the second pass" in lines(panel)[1]
        panel.show_step(plain_step())
        assert "Plain decoding" in (await drawn(pilot, panel))[1]
        panel.show_step(drafting)
        assert "nobody looked" in " ".join(await drawn(pilot, panel))
        panel.clear()
        assert "Fills with the second pass" in (await drawn(pilot, panel))[1]
        panel.awaits_answer = True
        assert "Fills with the next answer" in (await drawn(pilot, panel))[1]


PICTURED = TrainedPart(kind="transfer", layers=[3, 3, 3], width=192, right=[0.69, 0.55, 0.47], steps=500)


def pictured(part: TrainedPart = PICTURED, layers: int = 6) -> LensPanel:
    panel = LensPanel()
    panel.show_model(layers, [part])
    return panel


@pytest.mark.parametrize("width", [36, 50, 84])
async def test_until_there_are_states_the_method_is_drawn_for_the_model_that_runs(width: int) -> None:
    async with hosted(pictured(), width, 20) as (pilot, panel):
        text = lines(panel)
        found = {line.split()[1]: row for row, line in enumerate(text) if line.startswith("layer ")}
        assert list(found) == ["6", "4", "3", "1"], "from the top down, those that matter"
        for name, foot in (("M1", "t+2"), ("M2", "t+3"), ("M3", "t+4")):
            row = next(row for row, line in enumerate(text) if f"─{name}─" in line)
            assert found["4"] < row <= found["3"], "a map leads from the real state of layer 3 to a state below layer 4"
            assert text[row].index("┘") == text[found["4"]].index(f"[{foot}]") + 2
        words = " ".join(text)
        assert "192 × 192" in words and "Medusa" in words
        if width > 36:  # else there is room for neither
            assert words.index("Carriers make") < words.index("Medusa, an"), "a slider of this screen is named so"
        panel.show_step(step([" keeps"], lens=VIEW))
        assert "layer 4" not in " ".join(await drawn(pilot, panel))


@pytest.mark.parametrize("size", [(8, 4), (28, 12), (36, 6), (50, 12), (60, 30)])
@pytest.mark.parametrize("start", [0, 1, 2, 22, 23])
@pytest.mark.parametrize("maps", [1, 3, 16])
async def test_any_model_can_be_drawn_in_any_room(size: tuple[int, int], start: int, maps: int) -> None:
    part = TrainedPart(kind="transfer", layers=[start] * maps, width=4096, right=[0.5], steps=1)
    async with hosted(pictured(part, 24), *size) as (_, panel):
        assert len(lines(panel)) <= size[1]
