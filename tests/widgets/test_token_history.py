"""The history of a token says what step events prove, and nothing else."""

import math
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, strategies as st

from ladechat.protocol import Rivals, Step
from ladechat.widgets.panels.biography_panel import BiographyPanel
from ladechat.widgets.steps.token_history import MODEL, WindowGuess, last_drafted, sentences, token_history
from tests.widgets.hosting import drawn, hosted, lines
from tests.widgets.sample_steps import answer, candidate, lens_view, pool_view, sharpening, step, token_id, window_view


def window_step(emitted: Sequence[str], row: Sequence[str], fresh: Sequence[str], index: int) -> Step:
    """A step with a window of one row, N = 2: `fresh` stands at the positions 1, 2, … after its last token."""
    pool = pool_view(row[0], [candidate(emitted[:-1], "window", len(emitted) - 1)]) if emitted[1:] else None
    return step(emitted, index=index, window=window_view([row], fresh), pool=pool)


STEPS = [
    window_step(["a"], ["?", "x", "x"], ["x", "x", "x"], 0),
    window_step(["b"], ["a", "x", "d"], ["x", "y", "e"], 1),
    window_step(["c"], ["b", "c", "d"], ["x", "d", "e"], 2),
    window_step(["d", "e", "f"], ["c", "d", "e"], ["d", "e", "z"], 3),
]
"""The answer a b c d e f. For place 3, where d came, pass 1 guessed e and pass 2 d, and pass 3 verified it."""


UNRECORDED = "Its probability: 90 %. What else was likely here is not recorded."


def test_the_window_guessed_it_changed_its_mind_and_was_right() -> None:
    history = token_history(STEPS, 3)
    assert history is not None
    assert history.guesses == (WindowGuess(1, 3, token_id("e"), "e"), WindowGuess(2, 2, token_id("d"), "d"))
    assert (history.step, history.ahead, history.emitted, history.drafts, history.saved) == (3, 1, 3, 2, 2)
    assert (history.origin, history.formed, history.read) == ("window", 2, None)
    assert sentences(history) == [
        UNRECORDED,
        "Accepted in pass 4 as token 1 of 3: an n-gram of the Jacobi window.",
        "The window's guesses for this place, from 2 passes before on: ‹e› ‹d›, right from pass 3 on.",
        "Its n-gram first stood in the window in pass 3, 1 pass before.",
        "The pass checked 2 drafts at once and gave 3 tokens: 2 passes saved.",
    ]


def test_all_drafts_of_a_pass_are_counted_whether_they_were_reached_or_not() -> None:
    """It said "The pass checked 7 drafts at once" beside 19 slots, 11 of them not reached."""
    known = [candidate(["d", "e"], "window", 2), candidate(["x", "y", "z"], "prompt"), candidate(["u", "v"], "prompt")]
    steps = [*STEPS[:3], step(["d", "e", "f"], index=3, pool=pool_view("c", known))]
    history, draft = token_history(steps, 3), steps[-1].draft
    assert history is not None and draft is not None and "untested" in draft.verdicts
    assert sentences(history)[-1] == "The pass checked 7 drafts at once and gave 3 tokens: 2 passes saved."


def test_a_draft_of_jacobi_decoding_is_no_n_gram() -> None:
    steps = [msgspec.structs.replace(each, pool=None) for each in STEPS]
    history = token_history(steps, 3)
    assert history is not None and history.drafted
    told = " ".join(sentences(history)[1:])
    assert told.startswith("Accepted in pass 4 as token 1 of 3: a guess of the pass before.") and "n-gram" not in told


def test_a_right_guess_that_was_given_up_again_is_not_said_to_be_right_at_the_end() -> None:
    fresh = [["d", "x", "x"], ["x", "x", "d"], ["x", "y", "x"]]
    steps = [window_step(["abc"[index]], ["?", "x", "x"], row, index) for index, row in enumerate(fresh)]
    history = token_history([*steps, STEPS[3]], 3)
    assert history is not None
    assert [guess.piece for guess in history.guesses] == ["d", "y"]
    told = " ".join(sentences(history))
    assert "right for a time, not at the end" in told and "from step" not in told
    assert history.formed is None and "n-gram first" not in told, "no column held c d"


def test_the_models_own_token_is_no_draft() -> None:
    history = token_history(STEPS, 5)
    assert history is not None and history.origin == MODEL and not history.drafted
    assert sentences(history) == [UNRECORDED, "The model's own token in pass 4, the last of 3 tokens: no draft."]
    alone = token_history(STEPS, 2)
    assert alone is not None
    assert sentences(alone)[1] == "The model's own token in pass 3, and the only one: no draft."
    assert sentences(alone)[2].endswith("wrong."), "the window guesses at places that no draft reaches"


def test_of_a_token_of_hidden_transfer_it_says_from_which_layer_on_it_was_read() -> None:
    lens = lens_view("c", [["x", "x"], ["d", "x"], ["x", "e"], ["d", "e"], ["d", "e"]], first=3)
    origins = ["hidden_transfer", "hidden_transfer", MODEL]
    pool = pool_view("c", [candidate(["d", "e"], "hidden_transfer", 2)])
    last = msgspec.structs.replace(step(["d", "e", "f"], pool=pool, lens=lens), origins=origins)
    reads = [history.read for place in range(3) if (history := token_history([last], place)) is not None]
    assert reads == [(6, 7), (5, 7), None]
    unseen = token_history([msgspec.structs.replace(last, lens=None)], 0)
    assert unseen is not None and not any("layer" in text for text in sentences(unseen)), "nobody looked"


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.5, "The likeliest, at 50 %; then ‹x› 30 %, ‹·a› <1 %. Entropy: 1.5 bits."),
        (0.3, "Sampled at 30 % instead of ‹·the› 50 %; then ‹·a› <1 %. Entropy: 1.5 bits."),
        (0.002, "Sampled at <1 % instead of ‹·the› 50 %; then ‹x› 30 %, ‹·a› <1 %. Entropy: 1.5 bits."),
    ],
)
def test_what_else_was_likely_and_whether_sampling_took_another(share: float, said: str) -> None:
    logprobs = [math.log(one) for one in (0.5, 0.3, 0.004)]
    rivals = Rivals(pieces=[" the", "x", " a"], logprobs=logprobs, entropy=1.5 * math.log(2))
    last = msgspec.structs.replace(STEPS[0], logprobs=[round(math.log(share), 5)], rivals=[rivals])
    history = token_history([last], 0)
    assert history is not None and sentences(history)[0] == said


def test_what_the_steps_lack_has_no_biography() -> None:
    assert token_history(STEPS, 6) is token_history(STEPS, -1) is token_history([], 0) is None
    assert last_drafted(STEPS) == 4
    assert last_drafted(STEPS[:3]) is last_drafted([]) is None


@given(st.integers(1, 9), st.integers(2, 6), st.integers(0, 1000), st.integers(0, 60), st.integers(0, 6), st.booleans())
def test_it_claims_nothing_that_the_events_do_not_show(
    width: int, ngram: int, seed: int, place: int, missing: int, read: bool
) -> None:
    steps = answer(width, ngram, seed=seed)
    if read:
        steps = [msgspec.structs.replace(each, lens=sharpening("", each.pieces, seed)) for each in steps]
    kept = steps[missing:]
    history = token_history(kept, place)
    if history is None:
        assert place >= sum(len(each.token_ids) for each in kept)
        return
    own = next(each for each in kept if each.index == history.step)
    before = [token for each in kept if each.index < own.index for token in each.token_ids]
    assert [*before, *own.token_ids][place] == history.token == own.token_ids[history.ahead - 1]
    assert own.origins[history.ahead - 1] == history.origin
    assert history.emitted == len(own.token_ids) and history.drafts == len(own.draft.verdicts if own.draft else [])
    done = 0
    claimed = {guess.step: guess for guess in history.guesses}
    for each in kept[: kept.index(own)]:
        assert each.window is not None
        written = {ngram - 1 + column + done - 1: token for column, token in enumerate(each.window.fresh_ids)}
        done += len(each.token_ids)
        assert (place in written) == (each.index in claimed)
        if place in written:
            assert claimed[each.index].token == written[place]
    assert history.step not in claimed, "a pass cannot guess what it verifies itself"
    if history.formed is not None:
        text = [*before, *own.token_ids][: place + 1]
        first = next(each for each in kept if each.index == history.formed)
        assert history.formed < history.step and first.window is not None
        columns = zip(*first.window.row_ids, first.window.fresh_ids, strict=True)
        drafted = tuple(text[len(text) - history.ahead :])
        assert any(drafted == column[at : at + len(drafted)] for column in columns for at in range(1, ngram))
    assert history.read is None or history.origin == "hidden_transfer"
    told = sentences(history)
    assert 2 <= len(told) <= 6
    assert ("n-gram first" in " ".join(told)) == (history.formed is not None)
    assert ("guesses for this place" in " ".join(told)) == bool(history.guesses)


async def test_the_panel_follows_the_answer_until_a_token_is_chosen() -> None:
    async with hosted(BiographyPanel(), 60, 10) as (pilot, panel):
        assert "as soon as there is one" in " ".join(await drawn(pilot, panel))
        for each in STEPS:
            panel.show_step(each)
        assert (await drawn(pilot, panel))[0].endswith("‹e›")
        panel.show_token(STEPS, 3)
        assert (await drawn(pilot, panel))[0].endswith("‹d›")
        assert lines(panel)[1].startswith("Its probability: 90 %")
        assert "‹d›: Its probability" in panel.explain() and "Accepted in pass 4 as token 1 of 3" in panel.explain()
        panel.clear()
        for each in STEPS:
            panel.show_step(each)
        assert (await drawn(pilot, panel))[0].endswith("‹e›")
        panel.clear()
        assert "‹" not in " ".join(await drawn(pilot, panel))
