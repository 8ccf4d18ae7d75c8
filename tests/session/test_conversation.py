"""The conversation is told whole for each answer, and holds what was answered, and nothing else."""

from ladechat.protocol import FinishReason, Message, TurnFinished
from ladechat.session.conversation import Conversation


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
    conversation.restart()
    assert [*turns, conversation.ask("Three?").turn] == [1, 2, 3]


def test_the_system_message_comes_first_and_stays_after_a_new_beginning() -> None:
    conversation = Conversation("Be brief.")
    conversation.answered(finished(conversation.ask("One?").turn), "auto")
    conversation.restart()
    assert [message.role for message in conversation.ask("Two?").messages] == ["system", "user"]


def test_the_longest_answer_is_passed_on() -> None:
    assert Conversation(max_new_tokens=7).ask("One?").max_new_tokens == 7
    assert Conversation().ask("One?").max_new_tokens is None


def test_half_an_answer_is_kept() -> None:
    conversation = Conversation()
    conversation.answered(finished(conversation.ask("One?").turn, "Ye", (5,), "stopped"), "auto")
    assert [message.content for message in conversation.messages] == ["One?", "Ye"]
    assert conversation.give_up() is None


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
