"""Whatever fails in an answer costs that answer alone: it ends on the stream, and the next question is answered."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ladechat.decoder.drafters.window import WindowDrafter
from ladechat.engine import turn as turns
from ladechat.engine.chat_format import ChatFormat
from ladechat.engine.decoders import Decoders
from ladechat.engine.detokenizer import Detokenizer
from ladechat.engine.plain_cost import PlainStepCost
from ladechat.engine.service import Service
from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.single_token import SingleTokenRunner
from ladechat.model.runners.tree import TreeRunner
from ladechat.protocol import (
    Configure,
    Event,
    Failed,
    Message,
    TurnFinished,
    TurnStarted,
)
from tests.checkpoints import save_recurrent, service_of
from tests.engine.asking import Scripted, assert_adds_up, end_of, failure, of_kind, said_by
from tests.scripted_checkpoint import SPECIAL, byte_tokenizer, scripted_checkpoint

TEXT = "Hello world, how are you?"
QUESTION = "the dog"
STAGES: dict[str, tuple[type | object, str, int]] = {
    "the prompt is made": (ChatFormat, "fit", 1),
    "what is cached is looked up": (TreeRunner, "cached_prefix", 1),
    "the sampler is made": (Decoders, "begin", 1),
    "the prompt is read": (TreeRunner, "_read", 1),
    "plain passes are timed": (PlainStepCost, "refresh", 1),
    "drafts are proposed": (WindowDrafter, "propose", 2),
    "a pass is run": (TreeRunner, "_model_pass", 3),
    "the argmax is taken": (TreeRunner, "argmax", 2),
    "accepted slots are committed": (TreeRunner, "commit", 3),
    "the cache moves what was accepted": (SlabCache, "commit", 3),
    "drafters learn": (WindowDrafter, "observe", 2),
    "a step is compared with a plain one": (PlainStepCost, "milliseconds", 2),
    "tokens become text": (Detokenizer, "push", 2),
    "the first step becomes an event": (turns, "step_event", 1),
    "a later step becomes an event": (turns, "step_event", 3),
    "the policy is shown": (Decoders, "policy_choice", 1),
}
"""What can fail in an answer, in the order in which it happens, and at which call it does here."""


@pytest.fixture(scope="module")
def service(checkpoint: Path) -> Service:
    return service_of(checkpoint)


def ask(engine: Scripted, *said: Message | str, turn: int = 1) -> list[Event]:
    return engine.ask(*said, turn=turn, max_new_tokens=10)


def fail_at(monkeypatch: pytest.MonkeyPatch, owner: type | object, name: str, call: int) -> None:
    """Have the given call of a function raise."""
    function, calls = getattr(owner, name), count(1)

    def failing(*arguments: Any, **options: Any) -> Any:
        if next(calls) == call:
            raise IndexError("index out of range in self")
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, failing)


@pytest.fixture(scope="module")
def expected(service: Service) -> TurnFinished:
    """The answer to `QUESTION`, before anything has failed."""
    return end_of(ask(Scripted(service), QUESTION))


@pytest.mark.parametrize("stage", STAGES)
def test_whatever_stage_of_an_answer_fails_it_ends_once_and_the_next_question_is_answered(
    stage: str, service: Service, expected: TurnFinished, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Scripted(service)
    with monkeypatch.context() as patch:
        fail_at(patch, *STAGES[stage])
        broken = ask(engine, "the cat sat on the mat and", turn=2)
    failed = failure(broken)
    assert (failed.code, failed.turn, failed.fatal) == ("internal", 2, False)
    started = bool(of_kind(broken, TurnStarted))
    assert [end.reason for end in of_kind(broken, TurnFinished)] == ["failed"] * started
    assert isinstance(broken[-1], TurnFinished if started else Failed)
    if started:
        assert_adds_up(broken)
    again = ask(engine, QUESTION, turn=3)
    assert not of_kind(again, Failed)
    assert (end_of(again).token_ids, end_of(again).text) == (expected.token_ids, expected.text)


def test_an_answer_that_goes_on_and_fails_at_once_comes_to_an_end(
    service: Service, expected: TurnFinished, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Scripted(service)
    with monkeypatch.context() as patch:
        fail_at(patch, Detokenizer, "resume", 1)
        broken = ask(engine, QUESTION, said_by(expected), turn=2)
    assert failure(broken) and (end_of(broken).reason, end_of(broken).token_ids) == ("failed", [])


def test_a_model_with_a_recurrent_state_answers_after_a_pass_that_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = Scripted(service_of(save_recurrent(tmp_path)))
    expected = end_of(ask(engine, QUESTION)).token_ids
    with monkeypatch.context() as patch:
        fail_at(patch, SingleTokenRunner, "commit", 2)
        broken = ask(engine, QUESTION)
    assert end_of(broken).reason == "failed"
    assert end_of(ask(engine, QUESTION)).token_ids == expected


def test_a_setting_that_cannot_be_carried_out_is_said_once_and_the_engine_goes_on(
    service: Service, expected: TurnFinished, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Scripted(service)
    with monkeypatch.context() as patch:
        fail_at(patch, Decoders, "apply", 1)
        said = engine.carry_out(Configure(temperature=0.5))
    assert (failure(said).turn, failure(said).fatal) == (None, False)
    again = ask(engine, QUESTION)
    assert not of_kind(again, Failed) and end_of(again).token_ids == expected.token_ids


# --- tokens that the model does not know ------------------------------------------------------------------------------

TOOL = "<|tool|>"
WITH_A_TOOL = (
    "{% for message in messages %}{% if 'tool' in message['content'] %}{{ '" + TOOL + "' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


@pytest.fixture(scope="module")
def not_resized(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A model whose tokenizer has one token more than it has embeddings, which its template uses now and then."""
    special = (*SPECIAL, TOOL)
    rows = byte_tokenizer(TEXT, special).get_vocab_size() - 1
    folder = tmp_path_factory.mktemp("not_resized")
    return service_of(scripted_checkpoint(folder, TEXT, WITH_A_TOOL, special=special, rows=rows))


def test_a_token_beyond_the_embeddings_is_named_and_the_next_question_is_answered(
    not_resized: Service,
) -> None:
    engine = Scripted(not_resized)
    (failed,) = ask(engine, "a tool, please")
    assert isinstance(failed, Failed)
    assert (failed.code, failed.turn, failed.fatal) == ("bad_command", 1, False)
    unknown = not_resized.loaded.embeddings
    assert TOOL in failed.message and f"id {unknown}" in failed.message and "IndexError" not in failed.message
    assert "resized" in failed.hint
    assert end_of(ask(engine, "hello")).text == TEXT


def test_that_a_tokenizer_has_tokens_which_the_model_lacks_is_known_at_load(not_resized: Service) -> None:
    assert any(TOOL in notice and "embeddings" in notice for notice in not_resized.loaded.notices)


@pytest.mark.parametrize("token_id", [-1, 10**6])
def test_ids_of_no_model_in_an_answer_that_goes_on_are_refused_and_the_next_question_is_answered(
    token_id: int, not_resized: Service
) -> None:
    engine = Scripted(not_resized)
    unknown = not_resized.loaded.embeddings
    for ids in ([token_id], [unknown]):
        (failed,) = ask(engine, "hello", Message(role="assistant", content="", token_ids=ids))
        assert isinstance(failed, Failed) and failed.turn == 1
    assert end_of(ask(engine, "hello")).text == TEXT


def test_an_id_that_the_tokenizer_does_not_know_has_no_text_and_a_number_for_a_name(tmp_path: Path) -> None:
    rows = byte_tokenizer(TEXT).get_vocab_size() + 3
    service = service_of(scripted_checkpoint(tmp_path, TEXT, rows=rows))
    assert Detokenizer(service.texts).push([rows - 1, rows - 2]) == ["", ""]
    assert service.texts.names([rows - 1]) == [f"‹{rows - 1}›"]
