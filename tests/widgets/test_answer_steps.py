"""The steps of answers are kept as bytes, within a bound, and show again what was shown."""

import msgspec
from hypothesis import given, settings, strategies as st
from textual.app import App, ComposeResult
from textual.reactive import reactive
from textual.widgets import Label

from ladechat.palette import Palette
from ladechat.protocol import Event, Settings, Step, TurnStarted
from ladechat.screens.view import ConversationView
from ladechat.widgets.bars.message_line import ShownMessage
from ladechat.widgets.panels.biography_panel import BiographyPanel
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.steps.answer_steps import AnswerSteps, Arrangement, RecentAnswers
from tests.fake_model import POLICY_CHOICE
from tests.widgets.sample_steps import answer, finished, plain_step, pool_view, sharpening, window_view

STEPS = answer(5, 3, 5)


def kept(steps: int) -> AnswerSteps:
    found = AnswerSteps()
    for step in STEPS[:steps]:
        found.add(step, Arrangement())
    return found


def test_steps_come_back_as_they_were() -> None:
    found = kept(6)
    assert [found.step(place) for place in range(len(found))] == list(STEPS[:6])


def test_tokens_that_were_drafted_from_earlier_answers_are_counted() -> None:
    found = AnswerSteps()
    for origins in (["model"], ["earlier", "earlier", "model"], ["suffix", "model"], ["earlier", "model"]):
        step = msgspec.structs.replace(STEPS[0], token_ids=[1] * len(origins), pieces=origins, origins=origins)
        found.add(step, Arrangement())
    assert found.remembered == 3


def test_a_choice_holds_from_the_step_that_follows_it() -> None:
    found = AnswerSteps()
    for number, step in enumerate(STEPS[:4]):
        if number in (1, 3):
            found.add_choice(msgspec.structs.replace(POLICY_CHOICE, slots=float(number)))
        found.add(step, Arrangement())
    choices = [found.choice(place) for place in range(4)]
    assert [choice and choice.slots for choice in choices] == [None, 1, 1, 3]


def test_the_oldest_answers_go_first_and_the_latest_never() -> None:
    most = kept(4).size
    answers = RecentAnswers(most_bytes=most)
    for turn in (1, 2, 3):
        answers.begin(turn, kept(3), block=turn)
    assert [turn for turn in (1, 2, 3) if answers.get(turn)] == [2, 3]
    answers.begin(4, kept(9), block=4)
    answers.begin(5, kept(1), block=5)
    assert [turn for turn in (2, 3, 4, 5) if answers.get(turn)] == [5], "longer than all may be, but for the latest"
    answers.keep(5)
    assert answers.latest is None


def test_what_came_of_a_continuation_that_never_ended_is_dropped_and_that_is_said() -> None:
    found = kept(3)
    assert not found.go_on()
    found.add(STEPS[3], Arrangement())
    assert found.go_on() and len(found) == 3
    found.add(STEPS[3], Arrangement())
    found.settle()
    assert not found.go_on() and len(found) == 4


class Two(App[None]):
    """A conversation in which one looks back, and one that came only so far."""

    palette: reactive[Palette] = reactive(Palette)
    said: reactive[tuple[ShownMessage, ...]] = reactive(())

    def compose(self) -> ComposeResult:
        self.one, self.other = ConversationView(Label()), ConversationView(Label())
        yield self.one
        yield self.other


def shown(view: ConversationView) -> list[object]:
    """All panels, but for the biography, which is of the chosen token: whether they are there, and what they draw."""
    panels = [panel for panel in view.side.query(Panel) if not isinstance(panel, BiographyPanel)]
    return [(panel.id, panel.display, panel.rows(60, 12) if panel.display else None) for panel in panels]


def stream(lengths: list[int], decoder: str, choices: bool) -> list[Event]:
    """An answer of steps of these kinds: 0 is plain, 1 has a window, 2 has pseudo states."""
    start = TurnStarted(
        turn=1, messages=[], prompt_ids=[], cached_tokens=0, max_new_tokens=99, settings=Settings(decoder=decoder)
    )
    events: list[Event] = [start]
    for index, kind in enumerate(lengths):
        step = plain_step() if kind == 0 else STEPS[index % len(STEPS)]
        if kind == 2:
            step = msgspec.structs.replace(step, window=None, lens=sharpening("a", ["b", "c"], seed=index))
        if choices and index % 3 == 1:
            events.append(msgspec.structs.replace(POLICY_CHOICE, turn=1, slots=1.0 + index))
        events.append(msgspec.structs.replace(step, turn=1, index=index))
    return events


async def test_at_a_step_the_panels_show_what_they_do_where_no_more_has_come() -> None:
    app = Two()
    async with app.run_test(size=(160, 100)):

        @settings(max_examples=25, deadline=None)
        @given(
            st.lists(st.integers(0, 2), min_size=1, max_size=14),
            st.sampled_from(["auto", "lookahead", "hidden_transfer", "autoregressive"]),
            st.booleans(),
            st.data(),
        )
        def same(kinds: list[int], decoder: str, choices: bool, data: st.DataObject) -> None:
            events = stream(kinds, decoder, choices)
            steps = [place for place, event in enumerate(events) if isinstance(event, Step)]
            end = msgspec.structs.replace(finished(STEPS[: len(kinds)]), turn=1)
            one, other = app.one.presenter, app.other.presenter
            one.begin(Settings(decoder=decoder))
            one.show([*events, end])
            for place in data.draw(st.lists(st.integers(0, len(kinds) - 1), min_size=1, max_size=4)):
                assert one.inspection.look_at_step(1, place)
                other.begin(Settings(decoder=decoder))
                other.show(events[: steps[place] + 1])
                assert shown(app.one) == shown(app.other)
            one.inspection.leave()
            other.show([*events[steps[place] + 1 :], end])
            assert shown(app.one) == shown(app.other), "and behind it all is there again"

        same()


def block_of(guesses: int) -> Step:
    """A pass of Jacobi decoding that accepts nothing, with a block of so many guesses."""
    row = ["a"] * (guesses + 1)
    return msgspec.structs.replace(plain_step(), window=window_view([row], row))


def test_panels_stay_at_the_last_pass_with_the_longest_block_where_nothing_was_accepted() -> None:
    """With W = 64 and 64 tokens at the most no block is whole, and they stayed at the last one, of no guess at all."""
    found = AnswerSteps()
    for guesses in (3, 5, 5, 2, 0):
        found.add(block_of(guesses), Arrangement(window_set=64))
    assert found.telling == 2
    assert not found.go_on()
    found.add(block_of(9), Arrangement(window_set=64))
    assert found.telling == 5
    assert found.go_on() and found.telling == 2, "what came of the continuation is dropped"


def test_of_lookahead_decoding_that_accepted_nothing_the_last_pass_is_shown() -> None:
    found, window = AnswerSteps(), window_view([["a", "b"]], ["c", "d"])
    for _ in range(3):
        found.add(msgspec.structs.replace(plain_step(), window=window, pool=pool_view("a", [])), Arrangement())
    assert found.telling is None


def test_the_latest_step_that_accepted_drafts_is_known() -> None:
    found = AnswerSteps()
    assert found.last_accepting is None
    for step in (STEPS[0], *[step for step in STEPS if len(step.token_ids) > 1][:1], plain_step()):
        found.add(step, Arrangement())
    assert found.last_accepting == found.telling == 1
