"""An answer that goes on, after a stop or its length limit, is the one that would have been without."""

from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from ladechat.engine.chat_format import MOST_MESSAGE, ChatFormat, MessageTooLong, NothingToAnswer
from ladechat.engine.detokenizer import UNDECODABLE
from ladechat.engine.service import Service
from ladechat.protocol import Message, Settings, Step, TurnFinished, TurnStarted
from tests.checkpoints import load_on_cpu, save_tiny, service_of
from tests.engine import tokenizers
from tests.engine.asking import ask, end_of, of_kind, stop_after
from tests.engine.messages import answered, user
from tests.engine.tokenizers import decoded, encoded, token_id
from tests.gguf_files import write_gguf
from tests.scripted_checkpoint import scripted_checkpoint
from tests.tiny import random_model

pytestmark = pytest.mark.usefixtures("unasked_in_the_prompt")

CONTEXT = 160
WHOLE = 48
GREEDY, SAMPLED = 0.0, 1.5
OTHERS = [
    pytest.param(decoder, temperature, marks=pytest.mark.full)
    for decoder in ("autoregressive", "prompt_lookup", "jacobi", "suffix", "auto")
    for temperature in (GREEDY, SAMPLED)
]


@pytest.fixture(scope="module", params=["checkpoint", "GGUF"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Service:
    """Of a model each token of which is a few bytes: a stop is often in the middle of a character."""
    folder = tmp_path_factory.mktemp("tiny")
    if request.param == "checkpoint":
        return service_of(save_tiny(folder, max_position_embeddings=CONTEXT), Settings())
    tokenizer = tokenizers.byte_level()
    model = random_model(5, vocab_size=len(tokenizer), max_position_embeddings=CONTEXT)
    return Service.of(load_on_cpu(write_gguf(folder / "tiny.gguf", model, tokenizer), "auto"), Settings())


class Answer:
    """One answer, in as many parts as it was asked for."""

    def __init__(self, service: Service, limit: int = WHOLE) -> None:
        self.service = service
        self.limit = limit
        self.parts: list[TurnFinished] = []
        self.started: list[TurnStarted] = []
        self.steps: list[Step] = []
        self.messages = [user("Are you there?")]

    def go_on(self, stop: int | None = None, *, fresh: bool = True) -> "Answer":
        """Begin it, or have it go on, up to its end or a stop."""
        said = Message(role="assistant", content=self.text, token_ids=self.token_ids)
        messages = [*self.messages, said] if self.parts else self.messages
        seed = self.started[0].seed if self.parts else 1
        options = {"max_new_tokens": self.limit, "seed": seed, "first_step": len(self.steps)}
        # Decoders that know nothing: they would know the answer from the times before, and be done at once.
        with self.service.decoders.fresh() if fresh else nullcontext():
            events = ask(self.service, *messages, listener=stop_after(stop), **options)
        self.started += of_kind(events, TurnStarted)
        self.parts += of_kind(events, TurnFinished)
        self.steps += of_kind(events, Step)
        return self

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)

    @property
    def token_ids(self) -> list[int]:
        return [token for part in self.parts for token in part.token_ids]


@pytest.mark.parametrize(("decoder", "temperature"), [("recycling", GREEDY), ("lookahead", SAMPLED), *OTHERS])
def test_stops_change_no_token_and_no_character(service: Service, decoder: str, temperature: float) -> None:
    service.decoders.apply(Settings(decoder=decoder, temperature=temperature))
    whole = Answer(service).go_on()
    for first, second in ((1, 1), (2, 3), (4, 2)):
        parts = Answer(service).go_on(first).go_on(second).go_on()
        assert [part.reason for part in parts.parts[:2]] == ["stopped", "stopped"]
        assert parts.token_ids == whole.token_ids and parts.parts[-1].reason == whole.parts[-1].reason
        assert parts.text == whole.text
        assert [step.index for step in parts.steps] == list(range(len(parts.steps)))
        assert "".join(piece for step in parts.steps for piece in step.pieces) == whole.text
        for before, after in pairwise(parts.started):
            assert after.prompt_ids[: len(before.prompt_ids)] == before.prompt_ids
        for part in parts.started[1:]:  # the last token goes into the first step
            assert part.cached_tokens == len(part.prompt_ids) - 1 and part.continued_tokens


@pytest.mark.parametrize("service", ["checkpoint"], indirect=True)  # whose text repeats what it has
@pytest.mark.parametrize("other", [False, True], ids=["at once", "after another answer"])
def test_drafts_from_the_answer_itself_are_not_called_an_earlier_ones_when_it_goes_on(
    service: Service, other: bool
) -> None:
    service.decoders.apply(Settings(decoder="lookahead"))
    with service.decoders.fresh():
        parts = Answer(service).go_on(12, fresh=False)
        trigrams = set(zip(*(parts.token_ids[place:] for place in range(3)), strict=False))
        if other:
            between = Answer(service, 1)
            between.messages = [user("Who are you?")]
            between.go_on(fresh=False)
        parts.go_on(fresh=False)
    sources, text = [], parts.steps[0].token_ids
    for step in parts.steps[1:]:
        if step.index >= 12 and step.pool is not None:
            guesses = [((text[-1], *one.token_ids[:2]), one.source) for one in step.pool.candidates]
            sources += [source for trigram, source in guesses if trigram in trigrams]
        text = [*text, *step.token_ids]
    assert sources and "earlier" not in sources


def test_an_answer_that_begins_with_its_question_is_whole(tmp_path: Path) -> None:
    """What stands in the last message is text that was shown before only where an answer goes on."""
    echo = Answer(service_of(scripted_checkpoint(tmp_path, "the cat sat on the mat")))
    echo.messages = [user("the")]
    assert echo.go_on().text == "the cat sat on the mat"


@pytest.mark.parametrize("temperature", [pytest.param(GREEDY, marks=pytest.mark.full), SAMPLED])
def test_behind_its_limit_an_answer_has_as_many_tokens_again(service: Service, temperature: float) -> None:
    service.decoders.apply(Settings(decoder="lookahead", temperature=temperature))
    whole = Answer(service, WHOLE).go_on()
    parts = Answer(service, WHOLE // 4).go_on(2).go_on().go_on()
    assert len(parts.parts[0].token_ids) + len(parts.parts[1].token_ids) == WHOLE // 4
    assert len(parts.parts[2].token_ids) == parts.started[2].max_new_tokens == WHOLE // 4
    assert parts.token_ids == whole.token_ids[: WHOLE // 2]
    assert whole.text.startswith(parts.text)


def test_an_answer_that_was_stopped_inside_a_character_can_go_on() -> None:
    tokenizer = tokenizers.byte_level()
    token_ids = [token_id(tokenizer, name) for name in ("a", "ð", "Ł")]
    half = Message(role="assistant", content="a", token_ids=token_ids)
    assert decoded(tokenizer, token_ids).endswith(UNDECODABLE)
    assert ChatFormat(tokenizer).fit([user("Say it."), half], CONTEXT, WHOLE).answer == token_ids


def test_an_answer_at_the_end_of_the_context_goes_on_without_the_oldest_turns(service: Service) -> None:
    chat, tokenizer = service.chat, service.loaded.tokenizer
    past = [user("the cat sat"), answered(tokenizer, encoded(tokenizer, "on the mat"))]
    question = user("and then?")
    room = CONTEXT - len(chat.encode([*past, question]))
    long = answered(tokenizer, encoded(tokenizer, "a" * (room - 1)))
    assert chat.fit([*past, question, long], CONTEXT, WHOLE).all_ids == [
        *chat.encode([*past, question]),
        *(long.token_ids or []),
    ]
    longer = answered(tokenizer, [*(long.token_ids or []), *encoded(tokenizer, "a")])
    shorter = chat.fit([*past, question, longer], CONTEXT, WHOLE)
    assert shorter.dropped_turns == 1 and shorter.all_ids == [*chat.encode([question]), *(longer.token_ids or [])]
    with pytest.raises(MessageTooLong, match="fill the model's context"):
        chat.fit([question, answered(tokenizer, encoded(tokenizer, "a" * CONTEXT))], CONTEXT, WHOLE)


def test_what_cannot_go_on_is_refused_with_the_reason(service: Service) -> None:
    tokenizer = service.loaded.tokenizer
    said = answered(tokenizer, encoded(tokenizer, "on the mat"))
    for token_ids in (None, [], [10**6], encoded(tokenizer, "off")):
        with pytest.raises(NothingToAnswer, match="another model's or another text's"):
            service.chat.fit([user("Where?"), replace(said, token_ids=token_ids)], CONTEXT, WHOLE)
    ended = [*(said.token_ids or []), tokenizer.eos_token_id]
    with pytest.raises(NothingToAnswer, match="is complete"):
        ask(service, "Where?", replace(said, token_ids=ended))
    for before in ([], [said], [user("Where?"), said]):
        with pytest.raises(NothingToAnswer, match="behind the question"):
            service.chat.fit([*before, said], CONTEXT, WHOLE)
    with pytest.raises(MessageTooLong, match="no more than"):
        service.chat.fit([user("x" * (MOST_MESSAGE + 1)), said], CONTEXT, WHOLE)


def test_a_question_that_carries_the_tokens_of_an_end_is_answered(service: Service) -> None:
    ended = [service.loaded.tokenizer.eos_token_id]
    assert end_of(ask(service, replace(user("Where?"), token_ids=ended), max_new_tokens=1)).token_ids
