"""A scene under way: what it wants of the engine, what it makes of what comes, and that it is never stuck."""

import pytest
from msgspec.structs import replace

from ladechat import registry
from ladechat.lessons.lesson import MISSED, PASSED_ALREADY, Lesson, Phase
from ladechat.lessons.scene import (
    Card,
    LookCard,
    Predict,
    Recall,
    Run,
    Say,
    Scene,
    Task,
    at_step,
    quoted,
    set_to,
)
from ladechat.lessons.scenes import SCENES
from ladechat.protocol import Asked, Event, Failed, Settings, SettingsApplied, Step, TurnStarted
from ladechat.widgets.steps.draft_tree import mask_of, sight, slots_of
from tests.decoder.table_runner import random_table
from tests.widgets import sample_steps
from tests.widgets.test_pass_slots import passes


def at_end(run: Run) -> bool:
    return run.ended


SAY, END = Say("It begins."), Say("It ends.")
LOOK = LookCard(at_step(2), lambda run: f"{run.passes} passes")
PREDICT = Predict(
    "How many?",
    ("one", "two"),
    lambda run: min(len(run.last.token_ids), 2) - 1,
    lambda run: f"{len(run.last.token_ids)} came",
)
TASK = Task(
    "Move W.", "window", set_to("window", "W", 1, 1), lambda before, after: f"{before.passes} then {after.passes}"
)
CARDS = (SAY, LOOK, PREDICT, LookCard(at_end, lambda run: "all"), TASK, END)


def scene(*cards: Card) -> Scene:
    return Scene("made_up", "Made up", "Why?", "lookahead", {"window": 5}, cards)


class Playing:
    """A lesson with an engine of a few steps, each of one token unless `tokens` says more."""

    def __init__(self, lesson: Lesson, tokens: tuple[int, ...] = (1, 1, 1, 1)) -> None:
        self.lesson = lesson
        self.tokens = tokens
        self.settings = Settings(decoder="lookahead", parameters={"window": 5})
        self.left: list[Step] = []
        self.given: list[Step] = []
        self.turn = 0

    def say(self, event: Event) -> bool:
        return self.lesson.take(event)

    def work(self) -> None:
        """All that the lesson wants by now."""
        while True:
            if self.lesson.wants_question:
                self.turn += 1
                self.left = [
                    replace(sample_steps.step([" a"] * count, index=place), turn=self.turn)
                    for place, count in enumerate(self.tokens)
                ]
                self.given = []
                self.say(Asked(turn=self.turn, text="Why?"))
                started = TurnStarted(
                    turn=self.turn,
                    messages=[],
                    prompt_ids=[],
                    cached_tokens=0,
                    max_new_tokens=9,
                    settings=self.settings,
                )
                self.say(started)
            elif self.lesson.wants_rest:
                self.lesson.rest_asked_for()
                assert self.waits, "the rest is asked for once"
                while self.left:
                    self.step()
            elif self.lesson.wants_step:
                self.lesson.step_asked_for()
                assert self.waits, "a second step while one is under way"
                self.step()
            else:
                return

    def step(self) -> None:
        """Take the next step, and end the answer after the last."""
        self.given.append(self.left.pop(0))
        self.say(self.given[-1])
        if not self.left:
            self.say(replace(sample_steps.finished(self.given), turn=self.turn))

    @property
    def waits(self) -> bool:
        """Does the lesson want nothing now?"""
        return not (self.lesson.wants_question or self.lesson.wants_rest or self.lesson.wants_step)

    def go_on(self) -> None:
        self.lesson.go_on()
        self.work()

    def move(self, window: int) -> None:
        self.settings = replace(self.settings, parameters={"window": window})
        self.say(SettingsApplied(settings=self.settings))

    @property
    def text(self) -> str:
        return self.lesson.page.text


def test_it_stops_at_the_step_that_a_card_is_about_and_takes_no_other() -> None:
    playing = Playing(Lesson(scene(*CARDS)))
    playing.work()
    assert (playing.text, playing.turn) == ("It begins.", 0)
    playing.go_on()
    assert (playing.text, len(playing.given)) == ("2 passes", 2)
    playing.work()
    assert len(playing.given) == 2


@pytest.mark.parametrize(("choice", "right"), [(0, False), (1, True)])
def test_the_next_step_answers_a_prediction(choice: int, right: bool) -> None:
    playing = Playing(Lesson(scene(*CARDS)), tokens=(1, 1, 2, 1))
    playing.go_on()
    playing.go_on()
    playing.go_on()  # does nothing: the lesson waits for a prediction
    assert (playing.lesson.page.phase, len(playing.given)) == (Phase.WAITING, 2)
    playing.lesson.choose(7)  # there is no such choice
    playing.lesson.choose(choice)
    playing.work()
    page = playing.lesson.page
    assert (page.text, page.outcome, page.right, len(playing.given)) == ("2 came", 1, right, 3)
    assert playing.lesson.choices == [choice] and playing.lesson.predictions == [page]


def test_the_result_of_a_prediction_is_gone_to_until_it_is_there_and_from_earlier_cards_too() -> None:
    playing = Playing(Lesson(scene(*CARDS)), tokens=(1, 1, 2, 1))
    playing.go_on()
    playing.go_on()
    assert not playing.lesson.skip(), "nothing was predicted yet"
    playing.lesson.choose(1)
    playing.lesson.back()
    assert (playing.lesson.looking_back, playing.lesson.wants_step) == (True, False)
    assert playing.lesson.skip()
    assert (playing.lesson.looking_back, playing.lesson.wants_step, playing.lesson.hurried) == (False, True, True)
    playing.work()
    assert playing.lesson.page.outcome == 1 and not playing.lesson.skip()


def test_a_task_waits_for_its_slider_and_is_done_by_another_answer() -> None:
    playing = Playing(Lesson(scene(*CARDS)))
    playing.go_on()
    playing.go_on()
    playing.lesson.choose(0)
    playing.work()
    playing.go_on()
    playing.go_on()
    assert playing.lesson.missing == "W is 5 now; move it to 1."
    playing.go_on()
    assert playing.turn == 1
    playing.move(1)
    playing.tokens = (1, 1, 1)
    playing.go_on()
    assert (playing.turn, playing.text) == (2, "4 then 3")
    playing.move(2)
    assert (playing.text, playing.lesson.page.phase) == ("Move W.", Phase.WAITING)  # another slider, another try


def test_what_never_comes_up_is_said_and_nothing_is_stuck() -> None:
    never = LookCard(lambda run: False, lambda run: "never")
    playing = Playing(Lesson(scene(SAY, never, PREDICT, LookCard(at_end, lambda run: "all"), END)))
    texts = []
    for _ in range(4):
        playing.go_on()
        texts.append(playing.text)
    assert texts == [MISSED, MISSED, "all", "It ends."] and playing.lesson.at_last_card


def test_an_answer_that_fails_is_not_waited_for() -> None:
    lesson = Lesson(scene(SAY, LOOK, END))
    lesson.go_on()
    lesson.take(Asked(turn=1, text="Why?"))
    lesson.take(Failed(code="internal", message="It broke.", hint="Try again.", turn=1))
    assert lesson.page.text == MISSED and not lesson.wants_step


def test_looking_back_shows_the_events_that_were_there_and_holds_the_engine() -> None:
    playing = Playing(Lesson(scene(*CARDS)))
    playing.go_on()
    before = list(playing.lesson.events)
    playing.go_on()
    playing.lesson.choose(0)
    playing.lesson.back()
    assert playing.lesson.shown_events == before and not playing.lesson.wants_step
    assert playing.text == "2 passes"
    playing.go_on()
    assert playing.text == "1 came" and playing.lesson.shown_events == playing.lesson.events


def test_steps_of_another_turn_are_none_of_this_scene() -> None:
    playing = Playing(Lesson(scene(*CARDS)))
    playing.go_on()
    count = len(playing.lesson.events)
    assert not playing.say(replace(sample_steps.step([" old"]), turn=99))
    assert len(playing.lesson.events) == count


def test_one_goes_on_where_one_was_without_being_asked_again() -> None:
    playing = Playing(Lesson(scene(*CARDS), reached=4, choices=[1]), tokens=(1, 1, 2, 1))
    playing.work()
    assert (playing.lesson.place, playing.lesson.choices, playing.turn) == (4, [1], 1)
    assert playing.lesson.page.phase is Phase.WAITING
    beyond = Playing(Lesson(scene(*CARDS), reached=99, choices=[1]))
    beyond.work()
    assert beyond.lesson.at_last_card
    beyond.lesson.back()
    assert beyond.text == PASSED_ALREADY


def test_a_prediction_that_was_made_is_not_asked_for_again_with_its_answer_known() -> None:
    playing = Playing(Lesson(scene(*CARDS), reached=2, choices=[1]), tokens=(1, 1, 2, 1))
    playing.work()
    assert playing.lesson.place == 2 and playing.lesson.page.right


def test_where_a_prediction_is_not_known_any_more_it_is_asked_for_again() -> None:
    playing = Playing(Lesson(scene(*CARDS), reached=5))
    playing.work()
    assert (playing.lesson.place, playing.lesson.page.phase) == (2, Phase.WAITING)


def test_a_task_first_has_its_answer_end_at_full_speed_and_only_those_times_count() -> None:
    playing = Playing(Lesson(scene(SAY, LOOK, TASK, END)), tokens=(1, 1, 1, 1))
    playing.go_on()
    assert (playing.lesson.untimed, playing.lesson.runs[0].times) == (None, None)
    playing.go_on()
    first = playing.lesson.runs[0]
    assert (playing.lesson.page.phase, first.ended, first.paced) == (Phase.WAITING, True, 2)
    times = [step.timing.step_ms for step in first.steps]
    assert first.times is not None and first.times.pass_ms == pytest.approx(times[3]) and playing.lesson.untimed == 3
    playing.move(1)
    playing.go_on()
    second = playing.lesson.runs[1]
    assert (second.paced, second.times is not None, playing.lesson.untimed) == (0, True, 1)


def test_the_rest_of_an_answer_waits_while_the_reader_looks_back() -> None:
    playing = Playing(Lesson(scene(SAY, LOOK, TASK, END)))
    playing.go_on()
    playing.lesson.go_on()
    playing.lesson.back()
    assert playing.waits
    playing.go_on()
    assert playing.lesson.runs[0].ended


def test_the_answer_to_a_question_is_hidden_until_it_is_asked_for() -> None:
    lesson = Lesson(scene(Recall("What is W?", "Its places."), END))
    assert (lesson.page.text, lesson.page.phase, lesson.enter_acts) == ("What is W?", Phase.WAITING, True)
    lesson.go_on()
    assert lesson.page.text == "What is W?\nIts places." and lesson.place == 0
    lesson.go_on()
    assert lesson.at_last_card
    again = Lesson(scene(Recall("What is W?", "Its places."), END), reached=1)
    assert again.place == 1


def test_what_a_card_marks_stays_with_it_while_the_answer_goes_on() -> None:
    marked = LookCard(at_step(1), lambda run: "a", diagonal=lambda run: run.passes, slot=lambda run: 3 * run.passes)
    lesson = Lesson(scene(SAY, marked, LOOK, END))
    playing = Playing(lesson)
    for _ in range(2):
        playing.go_on()
    assert (lesson.page.card, lesson.page.diagonal, lesson.page.slot) == (LOOK, None, None)
    lesson.back()
    assert (lesson.page.card, lesson.page.diagonal, lesson.page.slot) == (marked, 1, 3)


def test_the_diagonal_that_scene_3_names_is_the_one_that_it_marks() -> None:
    run = Run(1, steps=[sample_steps.answer(5, 4)[2]])
    card = next(one for one in SCENES[2].cards if isinstance(one, LookCard) and one.diagonal is not None)
    window, place = run.last.window, card.diagonal and card.diagonal(run)
    assert window is not None and place is not None
    assert quoted(*(row[place] for row in window.rows), window.fresh[place]) in card.text(run)
    assert "↘" not in card.text(run), "in a narrow panel it stands upright"


def test_scene_5_first_lights_what_a_cell_of_the_newest_row_sees() -> None:
    """It lit a guess of the pool, whose sight is a plain path: what the rows of the window see was never shown."""
    card = next(one for one in SCENES[4].cards if isinstance(one, LookCard) and one.slot is not None)
    runner = random_table(9, seed=9)
    lit = 0
    for _, step in passes(runner, registry.lookahead(runner, 5, 3, 5)):
        slot = card.slot and card.slot(Run(1, steps=[step]))
        if slot is not None and step.window is not None and (one := slots_of(step)[slot]).row is not None:
            assert one.row == len(step.window.rows) - 1 and one.column > 0
            assert f"row −1, +{one.row + one.column}" in sight(slots_of(step), slot, len(step.window.rows))
            lit += 1
    assert lit


@pytest.mark.parametrize("ngram", [2, 3, 4, 5])
def test_a_cell_of_the_window_sees_what_scene_5_says(ngram: int) -> None:
    """It said "what it follows" alone, which no reader could apply to a row between the oldest and the newest."""
    texts = [card.text(Run(1)) for card in SCENES[4].cards if isinstance(card, LookCard) and card.slot is not None]
    assert "in the window: up its diagonal, then left in the top row" in texts[0]
    runner = random_table(9, seed=9)
    for _, step in passes(runner, registry.lookahead(runner, 5, ngram, 5)):
        slots, mask = slots_of(step), mask_of(slots_of(step))
        rows = [] if step.window is None else step.window.rows
        for index, slot in enumerate(slots):
            if slot.row is not None:
                seen = [slots[other].piece for other in range(len(slots)) if mask[index] >> other & 1]
                left_in_top_row, diagonal = rows[0][: slot.column + 1], rows[1 : slot.row + 1]
                assert seen == [*left_in_top_row, *(row[slot.column] for row in diagonal)]


def test_scene_5_says_where_drafts_share_a_slot() -> None:
    """It said "11 slots, 10 drafts" beside a sign for a draft that had none of its own."""
    card = next(one for one in SCENES[4].cards if isinstance(one, LookCard))
    said = set()
    for guesses in (0, 5):
        runner = random_table(40, seed=9)
        for _, step in passes(runner, registry.lookahead(runner, 5, 3, guesses)):
            if step.draft is not None and "accepted" in step.draft.verdicts and step.window is not None:
                tried = [one for one in step.pool.candidates if one.tried] if step.pool is not None else []
                offered = sum(map(len, step.window.rows)) - 1 + sum(len(one.pieces) for one in tried)
                alike = "(alike drafts share one)" in card.text(Run(1, steps=[step]))
                assert alike == (offered > step.timing.slots - 1)
                said.add(alike)
    assert said == {False, True}


def test_scene_7_names_the_layers_at_which_the_states_are_read() -> None:
    """It said "after the last", which read like the last token."""
    lens = sample_steps.lens_view(" a", [[" b"], [" c"], [" d"]], first=3)
    card = next(one for one in SCENES[6].cards if isinstance(one, LookCard))
    text = card.text(Run(1, steps=[replace(sample_steps.step([" d", " e"]), lens=lens)]))
    assert "After layer 3 the states say ‹·b›, after layer 5 ‹·d›." in text


def test_each_of_w_n_and_g_is_moved_alone_in_a_task() -> None:
    """N never was."""
    alone = {card.slider for scene in SCENES for card in scene.cards if isinstance(card, Task) and single(scene, card)}
    assert alone >= {"window", "ngram", "guesses"}


def single(scene: Scene, card: Task) -> bool:
    """Is the task not done by any slider but its own?"""
    moved = [
        Settings(decoder=scene.decoder, parameters={**scene.parameters, name: int(value) + 1})
        for name, value in scene.parameters.items()
        if name != card.slider
    ]
    return all(card.missing(settings) for settings in moved)


def test_scene_2_waits_for_the_right_word_at_the_wrong_place() -> None:
    """The scene is about the right word at the wrong place, so it stops at such a pass."""
    card = [one for one in SCENES[1].cards if isinstance(one, LookCard)][1]
    block = sample_steps.window_view([["What", " is", " a"]], ["x", "y", "z"])
    right_place = sample_steps.window_view([["What", " a", " b"]], ["x", "y", "z"])
    for window, stops in ((right_place, False), (block, True)):
        run = Run(1, steps=[sample_steps.step([" a"], window=window)] * 9)
        assert card.until(run) is stops
    assert card.text(run) == (
        "At +1 stood ‹·is›, but the model says ‹·a›, which stood at +2: the right word at the wrong place."
    )
    nowhere = sample_steps.window_view([["What", " b", " c"]], ["x", "y", "z"])
    run = Run(1, steps=[sample_steps.step([" a"], window=nowhere)] * 9)
    assert not card.until(run)
    run.steps *= 5
    assert card.until(run) and "wrong place" not in card.text(run)
