"""An answer ends with its turn, also where the checkpoint names only the end of a text."""

from pathlib import Path

import pytest

from ladechat.engine.loading_events import ready
from ladechat.protocol import Ready, Settings, decode_event, encode
from tests.checkpoints import service_of
from tests.engine.asking import ask, end_of
from tests.scripted_checkpoint import END_OF_TURN, scripted_checkpoint

TEXT = "Hello world, how are you? Hello again, world."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a model that ends its turns with a token that is not `eos_token_id`."""
    return scripted_checkpoint(tmp_path_factory.mktemp("scripted"), TEXT)


def test_an_answer_ends_where_the_template_ends_a_turn_and_not_at_its_length_limit(folder: Path) -> None:
    service = service_of(folder)
    for decoder in ("autoregressive", "lookahead"):
        service.decoders.apply(Settings(decoder=decoder))
        end = end_of(ask(service, "hi", max_new_tokens=99))
        assert (end.text, end.reason) == (TEXT, "eos")


def test_ready_has_the_end_that_was_found_and_says_so(folder: Path) -> None:
    service = service_of(folder)
    event = decode_event(encode(ready(service)))
    assert isinstance(event, Ready)
    turn = service.loaded.tokenizer.convert_tokens_to_ids(END_OF_TURN)
    assert event.eos_ids == [service.loaded.tokenizer.eos_token_id, turn]
    assert [notice for notice in event.notices if END_OF_TURN in notice]
