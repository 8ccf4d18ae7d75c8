"""An answer in plain text ends where the model goes on with the next question, which is never shown."""

import pytest
from hypothesis import given, strategies as st

from ladechat.engine.chat_format import NothingToAnswer
from ladechat.engine.detokenizer import TokenTexts
from ladechat.engine.service import Service
from ladechat.engine.stop_text import StopText
from ladechat.protocol import Message, Settings, Step, TurnFinished
from tests.checkpoints import service_of
from tests.engine import tokenizers
from tests.engine.asking import ask, end_of, of_kind, said_by, stop_after
from tests.engine.messages import user
from tests.scripted_checkpoint import script_ids, scripted_checkpoint

pytestmark = pytest.mark.usefixtures("unasked_in_the_prompt")

SAYS = " Yes, indeed.\nUser:"
STOP = "\nUser:"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A base model: no template, and it always goes on with a question."""
    return service_of(scripted_checkpoint(tmp_path_factory.mktemp("base"), SAYS, template=None), Settings())


def answered(service: Service, *said: Message, steps: int | None = None) -> tuple[TurnFinished, str]:
    """The end of an answer, which may be stopped after some steps, and its pieces as one text."""
    events = ask(service, *said, listener=stop_after(steps))
    return end_of(events), "".join(piece for step in of_kind(events, Step) for piece in step.pieces)


@pytest.mark.parametrize("decoder", ["autoregressive", "lookahead", "recycling"])
def test_every_decoder_ends_an_answer_at_the_same_token_before_the_next_question(
    service: Service, decoder: str
) -> None:
    service.decoders.apply(Settings(decoder=decoder))
    for _ in range(2):  # the second time drafts foresee the answer
        finished, shown = answered(service, user("Really?"))
        assert finished.reason == "eos"
        assert finished.text == shown == " Yes, indeed."
        assert finished.token_ids == script_ids(service.loaded.tokenizer, SAYS)


@pytest.mark.parametrize("steps", [2, 3])
def test_an_answer_that_goes_on_ends_there_too(service: Service, steps: int) -> None:
    service.decoders.apply(Settings(decoder="autoregressive"))
    first, shown = answered(service, user("Really?"), steps=steps)
    assert first.reason == "stopped"
    second, more = answered(service, user("Really?"), said_by(first))
    assert (second.reason, shown + more) == ("eos", " Yes, indeed.")


def test_an_answer_that_has_reached_its_stop_is_complete(service: Service) -> None:
    service.decoders.apply(Settings(decoder="autoregressive"))
    ended, _ = answered(service, user("Really?"))
    with pytest.raises(NothingToAnswer, match="is complete"):
        answered(service, user("Really?"), said_by(ended))


@given(text=st.text(st.sampled_from("\nUser: x")), sizes=st.lists(st.integers(1, 4), min_size=30, max_size=30))
def test_all_before_the_stop_is_shown_and_nothing_of_it_or_after_it(text: str, sizes: list[int]) -> None:
    looked_for = StopText(STOP, TokenTexts(tokenizers.byte_level()))
    shown, rest = "", text
    for size in sizes:
        piece, rest = rest[:size], rest[size:]
        shown += looked_for.shown(piece)
        assert text.startswith(shown)
        if STOP in text[: len(text) - len(rest)]:
            assert shown == text.partition(STOP)[0]
            return
    assert shown + looked_for.rest() == text[: len(text) - len(rest)]
