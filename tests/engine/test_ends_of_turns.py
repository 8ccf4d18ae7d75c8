"""An answer ends with its turn, also where the checkpoint names only the end of a text."""

from pathlib import Path

import pytest

from ladechat.engine.loading_events import ready
from ladechat.protocol import Ready, Settings, TurnStarted, decode_event, encode
from tests.checkpoints import service_of
from tests.engine.asking import ask, end_of, of_kind
from tests.scripted_checkpoint import END_OF_TURN, change, scripted_checkpoint

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


def test_without_a_template_a_known_name_ends_an_answer(tmp_path: Path) -> None:
    end = end_of(ask(service_of(scripted_checkpoint(tmp_path, TEXT, template=None)), "hi", max_new_tokens=99))
    assert (end.text, end.reason) == (TEXT, "eos")


def test_r1_s_mistake_costs_no_space(tmp_path: Path) -> None:
    """A byte-level tokenizer.json under the name of Llama's class."""
    folder = scripted_checkpoint(tmp_path, TEXT)
    change(folder / "tokenizer_config.json", tokenizer_class="LlamaTokenizerFast")
    service = service_of(folder)
    events = ask(service, "a b", max_new_tokens=99)
    (started,) = of_kind(events, TurnStarted)
    assert "a b" in service.loaded.tokenizer.decode(started.prompt_ids)
    assert end_of(events).text == TEXT
