"""A fault of a checkpoint is a sentence of ours, whichever file it is in, and not "something that should not have".

Small checkpoints are changed as no library foresees: wrong kinds of values, negative and huge numbers, files that are
deep or no files. Each is refused, or answers, as the engine would do it.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType as Kind
from hypothesis import given, settings, strategies as st

from ladechat.engine.failures import or_say_why_not
from ladechat.engine.loading_events import LoadingReport
from ladechat.engine.server import _serve_model
from ladechat.engine_options import EngineOptions
from ladechat.model.checkpoint.fetch import fetch
from ladechat.protocol import Event, Failed, Generate, Ready, TurnFinished
from tests.checkpoints import LOOKAHEAD, load_on_cpu
from tests.engine.asking import Script, failure, of_kind
from tests.engine.messages import user
from tests.engine.tokenizers import byte_level
from tests.gguf_files import write_gguf
from tests.scripted_checkpoint import change as change_entries, scripted_checkpoint
from tests.tiny import random_model

HUGE = 10**400
INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"
FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
NUMBERS: list[Any] = [-1, 0, 1, 3, 10**12, HUGE, -HUGE, 0.5, 1e308]
VALUES: list[Any] = [None, True, *NUMBERS, "", "x", "\ud800", [], [[]], {}, {"a": 3}]
"""What stands in the place of a value."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scripted_checkpoint(tmp_path_factory.mktemp("sound"), "Hi there")


def said_of(checkpoint: Path) -> list[Event]:
    """What an engine says of a checkpoint, up to the end of its first answer."""
    script: Any = Script(Generate(turn=1, messages=[user("hello")], max_new_tokens=4))

    def work() -> int:
        loaded = load_on_cpu(fetch(str(checkpoint), lambda done, total: None), name="the model")
        return _serve_model(loaded, EngineOptions(settings=LOOKAHEAD), LoadingReport(script), script, script)

    with contextlib.suppress(SystemExit):
        or_say_why_not(work, script.emit)
    return list(script.events)


def check(events: list[Event]) -> None:
    """It was refused in a sentence, or answered, or the question was refused in one."""
    failures = of_kind(events, Failed)
    assert bool(failures) or bool(of_kind(events, TurnFinished))
    for failed in failures:
        assert "Something went wrong" not in failed.message and "report it" not in failed.hint, failed
        assert "\n" not in failed.message and len(failed.message) < 500 and failed.hint


def refusal(events: list[Event]) -> str:
    """The sentence of a checkpoint that was not loaded, or whose question was not answered."""
    check(events)
    assert failure(events).fatal != bool(of_kind(events, Ready))
    return failure(events).message


# --- one fault of each kind -------------------------------------------------------------------------------------------

Fault = Callable[[Path], object]


def entry(file: str, **changes: Any) -> Fault:
    """Other values of a JSON file."""
    return lambda folder: change_entries(folder / file, **changes)


def header(change: Callable[[dict[str, Any]], object]) -> Fault:
    """Another header of the weights: what `change` makes of it, or a text."""

    def fault(folder: Path) -> None:
        file = (folder / WEIGHTS).read_bytes()
        length = int.from_bytes(file[:8], "little")
        changed = change(json.loads(file[8 : 8 + length]))
        text = (changed if isinstance(changed, str) else json.dumps(changed)).encode()
        (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + file[8 + length :])

    return fault


def first_tensor(**changes: Any) -> Fault:
    """Another description of the first tensor."""

    def change(found: dict[str, Any]) -> dict[str, Any]:
        name = next(key for key in found if key != "__metadata__")
        return {**found, name: {**found[name], **changes}}

    return header(change)


def index(text: str) -> Fault:
    """An index in the place of the one file of weights."""

    def fault(folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / "a.safetensors")
        (folder / INDEX).write_text(text)

    return fault


def instead(file: str, make: Callable[[Path], object] = os.mkfifo) -> Fault:
    """Something else in the place of a file, by default a named pipe: whoever reads it waits for ever."""

    def fault(folder: Path) -> None:
        (folder / file).unlink(missing_ok=True)
        make(folder / file)

    return fault


def rope(**values: Any) -> Fault:
    return entry("config.json", rope_parameters={"rope_theta": 1e4, **values})


def adapter_alone(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text("{}")


def template(text: str) -> Fault:
    return lambda folder: (folder / "chat_template.jinja").write_text(text)


FAULTS: dict[str, tuple[Fault, str]] = {
    "one position": (entry("config.json", max_position_embeddings=1), "has 1 positions"),
    "negative positions": (entry("config.json", max_position_embeddings=-5), "has -5 positions"),
    "positions of 400 digits": (entry("config.json", max_position_embeddings=HUGE), "positions"),
    "a window of -1": (entry("config.json", sliding_window=-1), "-1 positions in a sliding window"),
    "a window of 0": (entry("config.json", sliding_window=0), "0 positions in a sliding window"),
    "heads of 400 digits": (entry("config.json", num_key_value_heads=HUGE), "heads for keys and values"),
    "a head of 400 digits": (entry("config.json", head_dim=HUGE), "numbers in a head"),
    "more layers than any model": (entry("config.json", num_hidden_layers=10**8), "no model has more than"),
    "more layers than tensors": (entry("config.json", num_hidden_layers=5000), "describes 5,000 layers"),
    "more weights than are there": (entry("config.json", hidden_size=2**20), "weights, and its files hold"),
    "labels without end": (entry("config.json", num_labels=10**12), "for num_labels"),
    "stretched by less than nothing": (rope(rope_type="dynamic", factor=-4.0), "stretches rotary positions by -4.0"),
    "stretched beyond all numbers": (rope(rope_type="dynamic", factor=1e308), "stretches rotary positions by 1e+308"),
    "stretched by a word": (rope(rope_type="dynamic", factor="x"), "stretches rotary positions by x"),
    "a temperature of 400 digits": (entry("generation_config.json", temperature=HUGE, do_sample=3), ""),
    "a deep header": (header(lambda _: "[" * 100_000), "cannot be loaded"),
    "a shape that is a word": (first_tensor(shape="abc"), "cannot be loaded"),
    "a shape of 400 digits": (first_tensor(shape=[HUGE]), "cannot be loaded"),
    "a deep index": (index('{"weight_map":' * 100_000), "nested too deeply"),
    "an index that is empty": (index("{}"), "cannot be loaded"),
    "an adapter alone": (adapter_alone, "is an adapter (LoRA)"),
    "a pipe for config.json": (instead("config.json"), "config.json of"),
    "a pipe for generation_config.json": (instead("generation_config.json"), "is a named pipe, not a file"),
    "a pipe for the weights": (instead(WEIGHTS), "is a named pipe, not a file"),
    "a pipe for vocab.txt": (instead("vocab.txt"), "is a named pipe, not a file"),
    "a device for tokenizer.json": (
        instead("tokenizer.json", lambda path: path.symlink_to("/dev/null")),
        "is a device, not a file",
    ),
    "a template that divides by zero": (template("{{ 1 / 0 }}"), "division by zero"),
    "a template that writes nothing": (template("{{ ''.nothing }}"), "leaves out what the question says"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_checkpoint_is_said_in_a_sentence(name: str, sound: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "model")
    fault, says = FAULTS[name]
    fault(folder)
    events = said_of(folder)
    check(events)
    assert not says or says in refusal(events)


def test_passes_give_what_they_give_whatever_config_json_says_of_its_form(sound: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sound, tmp_path / "model")
    entry("config.json", return_dict=False)(folder)
    assert not of_kind(said_of(folder), Failed)


# --- any value in the place of any other ------------------------------------------------------------------------------


def places(value: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Where a value stands in a JSON file; of a long list or object only the first."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(inside)[:60]:
        yield (*path, key)
        yield from places(one, *path, key)


def put(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    """The same with another value at a place."""
    if not path:
        return other
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(value[path[0]], path[1:], other)  # type: ignore[index]  # a key or an index, as it has
    return changed


@pytest.mark.full
@given(st.data())
@settings(max_examples=150)
def test_any_value_in_the_place_of_any_other_is_said_in_a_sentence_or_answers(
    sound: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = shutil.copytree(sound, tmp_path_factory.mktemp("any") / "model")
    file = folder / data.draw(st.sampled_from(FILES))
    found = json.loads(file.read_text())
    place = data.draw(st.sampled_from(list(places(found))))
    file.write_text(json.dumps(put(found, place, data.draw(st.sampled_from(VALUES)))))
    check(said_of(folder))
    shutil.rmtree(folder)


@pytest.mark.full
@given(st.data())
@settings(max_examples=60)
def test_any_header_of_the_weights_is_said_in_a_sentence_or_answers(
    sound: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = shutil.copytree(sound, tmp_path_factory.mktemp("any") / "model")

    def change(found: dict[str, Any]) -> Any:
        return put(found, data.draw(st.sampled_from(list(places(found)))), data.draw(st.sampled_from(VALUES)))

    header(change)(folder)
    check(said_of(folder))
    shutil.rmtree(folder)


TOKENIZER = "tokenizer.ggml."
GGUF_FAULTS: list[tuple[str, str, Any]] = [
    ("qwen2.context_length", "add_uint32", 1),
    ("qwen2.context_length", "add_int32", -5),
    ("qwen2.block_count", "add_uint32", 2**31),
    ("qwen2.attention.head_count", "add_string", "x"),
    (f"{TOKENIZER}tokens", "add_array", ["a"]),
    (f"{TOKENIZER}token_type", "add_array", [1, 2]),
    (f"{TOKENIZER}token_type", "add_uint32", 3),
    (f"{TOKENIZER}merges", "add_array", ["zz yy"]),
    (f"{TOKENIZER}eos_token_id", "add_string", "x"),
]


@pytest.mark.parametrize(("key", "method", "value"), GGUF_FAULTS)
def test_a_fault_in_the_metadata_of_a_gguf_file_is_said_in_a_sentence(
    key: str, method: str, value: Any, tmp_path: Path
) -> None:
    model = random_model(0, "qwen2", vocab_size=len(byte_level()), hidden_size=64, head_dim=16)
    file = write_gguf(tmp_path / "tiny.gguf", model, byte_level(), Kind.F32, {key: (method, value)})
    assert refusal(said_of(file))
