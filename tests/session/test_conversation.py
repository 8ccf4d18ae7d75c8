"""The conversation is told whole for each answer, and holds what was answered, and nothing else."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from ladechat.protocol import FinishReason, Message, Settings, TurnFinished, TurnStarted
from ladechat.session.conversations.conversation import (
    COMPLETE,
    NOT_ITS_OWN,
    NOTHING_ANSWERED,
    UNANSWERED,
    CannotContinue,
    Conversation,
    SingleQuestions,
)
from ladechat.session.conversations.store import ConversationStore
from tests.session.conversations import exchange, write
from tests.widgets.sample_steps import step


def finished(
    turn: int, text: str = "Yes.", ids: tuple[int, ...] = (5, 6), reason: FinishReason = "eos"
) -> TurnFinished:
    return TurnFinished(
        turn=turn,
        reason=reason,
        text=text,
        token_ids=list(ids),
        steps=len(ids),
        prefill_seconds=0.1,
        decode_seconds=0.1,
    )


def test_the_second_question_carries_the_first_and_the_tokens_of_its_answer() -> None:
    conversation = Conversation()
    conversation.answered(finished(conversation.ask("One?").turn), "auto")
    assert conversation.ask("Two?").messages == [
        Message(role="user", content="One?"),
        Message(role="assistant", content="Yes.", token_ids=[5, 6]),
        Message(role="user", content="Two?"),
    ]


def test_turns_are_numbered_from_one_and_never_again_the_same() -> None:
    conversation = Conversation()
    turns = [conversation.ask("One?").turn, conversation.ask("Two?").turn]
    conversation.begin_new()
    assert [*turns, conversation.ask("Three?").turn] == [1, 2, 3]


def test_the_usual_system_message_comes_first_in_each_new_conversation() -> None:
    conversation = Conversation("Be brief.")
    conversation.answered(finished(conversation.ask("One?").turn), "auto")
    conversation.begin_new()
    assert [message.role for message in conversation.ask("Two?").messages] == ["system", "user"]


def test_a_system_message_is_of_the_conversation_that_it_was_given_in_and_of_no_other(tmp_path: Path) -> None:
    write(tmp_path, "a", exchange("Old?"), when="2030-01-02T12:00:00")
    write(tmp_path, "b", exchange("Rhymed?"), when="2030-01-01T12:00:00", system="Rhyme.")
    store = ConversationStore(tmp_path)
    conversation = Conversation(store=store)
    conversation.instruct("Be brief.")
    old, rhymed = store.conversations()
    conversation.open(old)
    assert conversation.system == ""
    conversation.answered(finished(conversation.ask("One?").turn), "auto")
    conversation.open(rhymed)
    assert conversation.system == "Rhyme."
    conversation.begin_new()
    assert conversation.system == ""
    conversation.answered(finished(conversation.ask("Two?").turn), "auto")
    assert {kept.title: kept.system for kept in store.conversations()} == {
        "Old?": None,
        "Rhymed?": "Rhyme.",
        "Two?": None,
    }


def test_the_longest_answer_is_passed_on() -> None:
    assert Conversation(max_new_tokens=7).ask("One?").max_new_tokens == 7
    assert Conversation().ask("One?").max_new_tokens is None


def test_half_an_answer_is_kept() -> None:
    conversation = Conversation()
    conversation.answered(finished(conversation.ask("One?").turn, "Ye", (5,), "stopped"), "auto")
    assert [message.content for message in conversation.messages] == ["One?", "Ye"]
    assert conversation.give_up() is None


@pytest.mark.parametrize(("conversation", "kept"), [(Conversation(), [True, False]), (SingleQuestions(), [False] * 2)])
def test_half_an_answer_whose_engine_died_takes_no_whole_ones_place_and_is_nothing_to_a_lesson(
    conversation: Conversation, kept: list[bool]
) -> None:
    halves: list[TurnFinished | None] = []
    for place in (None, 0):
        turn = conversation.ask("One?", place).turn
        begun(conversation, turn, seed=77)
        conversation.note(replace(step(["Ye"]), turn=turn))
        halves.append(conversation.half_answer())
        conversation.answered(finished(turn), "auto")
    assert [
        half is not None and (half.text, half.steps, half.reason) == ("Ye", 1, "stopped") for half in halves
    ] == kept


def test_a_question_without_an_answer_is_given_back_once_and_not_kept() -> None:
    conversation = Conversation()
    conversation.answered(finished(conversation.ask("One?").turn, "", (), "stopped"), "auto")
    assert conversation.give_up() == "One?"
    assert conversation.give_up() is None
    assert [message.content for message in conversation.ask("Two?").messages] == ["Two?"]


def test_an_answer_to_an_earlier_question_is_not_taken_for_one_to_this() -> None:
    conversation = Conversation()
    earlier = conversation.ask("One?").turn
    conversation.give_up()
    conversation.ask("Two?")
    conversation.answered(finished(earlier), "auto")
    assert conversation.messages == []
    assert conversation.pending == Message(role="user", content="Two?")


def test_a_command_that_was_sent_does_not_change_with_the_conversation() -> None:
    conversation = Conversation()
    sent = conversation.ask("One?")
    conversation.answered(finished(sent.turn), "auto")
    assert sent.messages == [Message(role="user", content="One?")]


def begun(conversation: Conversation, turn: int, seed: int = 1, settings: Settings | None = None) -> None:
    """The engine begins an answer."""
    said = conversation.messages or [Message(role="user", content="One?")]
    event = TurnStarted(
        turn=turn,
        messages=said,
        prompt_ids=[1],
        cached_tokens=0,
        max_new_tokens=9,
        settings=settings or Settings(),
        seed=seed,
    )
    conversation.note(event)


def test_an_answer_goes_on_in_its_turn_behind_its_tokens_and_is_one_answer_again(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    conversation = Conversation(max_new_tokens=7, store=store)
    turn = conversation.ask("One?").turn
    begun(conversation, turn, seed=77)
    conversation.answered(finished(turn, "Ye", (5, 6), "stopped"), "auto")
    for place, (text, ids) in enumerate([("s", (7,)), (".", (8, 9))]):
        command = conversation.go_on([2])
        assert command.messages[-1].token_ids == [5, 6, 7][: 2 + place]
        assert (command.turn, command.seed, command.first_step) == (turn, 77, 2 + place)
        assert command.max_new_tokens == 7 and conversation.continuing
        conversation.answered(finished(turn, text, ids, "stopped"), "suffix")
        assert not conversation.continuing
    assert [message.content for message in conversation.messages] == ["One?", "Yes."]
    (kept,) = store.conversations()
    assert [one.answer for one in kept.exchanges] == ["Yes."] and kept.exchanges[0].token_ids == [5, 6, 7, 8, 9]
    assert len(conversation.ask("Once more?", 0).messages) == 1


def test_an_answer_goes_on_with_the_switch_for_thinking_that_it_began_with(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    conversation = Conversation(store=store)
    turn = conversation.ask("One?").turn
    begun(conversation, turn, settings=Settings(thinking="on"))
    conversation.answered(finished(turn, "Ye", (5, 6), "stopped"), "auto")
    assert conversation.go_on([2]).thinking == "on"
    begun(conversation, turn, settings=Settings(thinking="off"))  # of an engine that takes it from the settings
    conversation.answered(finished(turn, "s", (7,), "stopped"), "auto")
    assert conversation.go_on([2]).thinking == "on"
    (kept,) = store.conversations()
    again = Conversation()
    again.open(kept)
    assert again.go_on([2]).thinking == "on"
    assert again.ask("Two?").thinking is None


def test_an_answer_goes_on_with_the_system_prompt_that_it_began_with(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    conversation = Conversation("Be brief.", store=store)
    turn = conversation.ask("One?").turn
    conversation.instruct("Rhyme.")
    conversation.answered(finished(turn, "Ye", (5, 6), "stopped"), "auto")
    assert conversation.go_on([2]).messages[0].content == "Be brief."
    assert conversation.messages[0].content == "Rhyme."
    conversation.give_up()
    (kept,) = store.conversations()
    again = Conversation()
    (one,) = again.open(kept)
    assert (one.system, again.system) == ("Be brief.", "Rhyme.")
    assert again.messages[0].content == "Rhyme."


@pytest.mark.parametrize("tokens", [0, 1])
def test_behind_a_question_that_got_no_answer_nothing_goes_on_and_it_is_the_one_to_race_on(tokens: int) -> None:
    conversation = Conversation()
    conversation.answered(finished(conversation.ask("One?").turn, "Ye", (5, 6), "stopped"), "auto")
    turn = conversation.ask("Two?").turn
    if tokens:
        conversation.note(step(["Ye"]))
    conversation.answered(finished(turn, "Ye" * tokens, (5,) * tokens, "failed"), "auto")
    assert conversation.give_up() == conversation.unanswered == "Two?"
    with pytest.raises(CannotContinue, match=re.escape(UNANSWERED)):
        conversation.go_on([2])
    command = conversation.race_command("")
    assert command is not None and [message.content for message in command.messages] == ["One?", "Ye", "Two?"]
    conversation.begin_new()
    with pytest.raises(CannotContinue, match=NOTHING_ANSWERED):
        conversation.go_on([2])


def test_an_exchange_that_was_to_be_replaced_is_there_again_and_goes_on_where_no_answer_came() -> None:
    conversation = Conversation()
    conversation.answered(finished(conversation.ask("One?").turn, "Ye", (5, 6), "stopped"), "auto")
    assert [message.content for message in conversation.ask("Two?", 0).messages] == ["Two?"]
    assert len(conversation.replaced) == 1 and conversation.give_up() == "Two?"
    assert conversation.unanswered is None and conversation.exchanges[-1].question == "One?"
    assert conversation.go_on([2]).messages[-1].content == "Ye"


def test_the_end_of_another_turn_adds_nothing_to_an_answer_that_goes_on() -> None:
    conversation = Conversation()
    first = conversation.ask("One?").turn
    conversation.answered(finished(first, "Ye", (5,), "stopped"), "auto")
    late = conversation.ask("Two?", 0).turn
    conversation.give_up()
    conversation.go_on([2])
    conversation.answered(finished(late, "No.", (8,)), "auto")
    assert conversation.continuing
    assert [message.content for message in conversation.messages] == ["One?", "Ye"]


def test_an_answer_of_an_earlier_session_goes_on_in_a_turn_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, "a", exchange("Old?", "Yes.", model="demo"))
    store = ConversationStore(tmp_path)
    conversation = Conversation(model="demo", store=store)
    conversation.ask("One?")
    conversation.open(store.conversations()[0])
    command = conversation.go_on([2])
    assert (command.turn, command.seed, command.first_step) == (2, None, 0)
    conversation.answered(finished(2, " And more.", (7,)), "auto")
    assert path == store.path and store.conversations()[0].exchanges[0].answer == "Yes. And more."


def test_a_saved_answer_goes_on_after_its_steps_and_is_saved_with_the_figures_of_all_its_parts(tmp_path: Path) -> None:
    conversation = Conversation(model="demo", store=ConversationStore(tmp_path))
    turn = conversation.ask("One?").turn
    for index, piece in enumerate(("Y", "e")):
        conversation.note(step([piece], index=index))
    conversation.answered(finished(turn, "Ye", (5, 6), "stopped"), "auto")
    for slowed, seconds in ((False, 0.2), (True, 0.0), (False, 0.0)):
        conversation.begin_new()
        conversation.open(ConversationStore(tmp_path).conversations()[0])
        command = conversation.go_on([2])
        ended = conversation.exchanges[0].ended
        assert ended is not None and ended.steps == command.first_step
        conversation.note(step(["s"], index=command.first_step), slowed=slowed)
        conversation.answered(finished(command.turn, "s", (7,), "max_new_tokens"), "auto")
        ended = ConversationStore(tmp_path).conversations()[0].exchanges[0].ended
        assert ended is not None and (ended.reason, ended.steps) == ("max_new_tokens", command.first_step + 1)
        assert (ended.decode_seconds, ended.text, ended.token_ids) == (seconds, "", [])


def test_what_brings_nothing_leaves_the_answer_as_it_was() -> None:
    conversation = Conversation()
    turn = conversation.ask("One?").turn
    conversation.answered(finished(turn, "Ye", (5,), "stopped"), "auto")
    conversation.go_on([2])
    conversation.answered(finished(turn, "", (), "stopped"), "auto")
    assert conversation.continuing
    assert (conversation.give_up(), conversation.continuing) == (None, False)
    assert [message.content for message in conversation.messages] == ["One?", "Ye"]


def test_why_an_answer_cannot_go_on_is_said() -> None:
    conversation = Conversation(model="a")
    with pytest.raises(CannotContinue, match=NOTHING_ANSWERED):
        conversation.go_on([2])
    conversation.answered(finished(conversation.ask("One?").turn, ids=(5, 2)), "auto")
    with pytest.raises(CannotContinue, match=COMPLETE):
        conversation.go_on([2])
    conversation.use_model("b")
    with pytest.raises(CannotContinue, match=NOT_ITS_OWN):
        conversation.go_on([2])
    assert not conversation.continuing


def test_an_answer_has_its_tokens_again_when_its_model_is_there_again() -> None:
    conversation = Conversation(model="a")
    conversation.answered(finished(conversation.ask("One?").turn), "auto")
    conversation.use_model("b")
    assert conversation.messages[1].token_ids is None
    conversation.use_model("a")
    assert conversation.messages[1].token_ids == [5, 6]
