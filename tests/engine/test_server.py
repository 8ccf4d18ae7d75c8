"""The engine as a process, over real pipes: what it says first, what it makes of its input, and how it ends."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from ladechat import catalog
from ladechat.protocol import (
    VERSION,
    WHERE,
    Configure,
    Failed,
    Header,
    Loading,
    Ready,
    SettingsApplied,
    Shutdown,
    Step,
    TurnFinished,
)
from tests.engine.wire import PATIENCE_SECONDS, Wire
from tests.hostile_folder import NAMES, HostileFolder
from tests.tiny import DEMO

QUESTION = "What is the n-gram pool?"


def test_the_stream_begins_with_its_header_and_says_what_is_being_loaded() -> None:
    engine = Wire("--window", "4")
    ready = engine.until(Ready)
    header = engine.seen[0]
    assert isinstance(header, Header)
    assert (header.format, header.version, header.model) == ("ladechat", VERSION, "demo")
    assert (header.settings.decoder, header.settings.parameters) == ("lookahead", {"window": 4})
    assert ready.settings.parameters == catalog.resolved("lookahead", {"window": 4})
    trained = {None, *(file.stem for file in DEMO.glob("*.safetensors"))}
    assert ready.decoders == [info for info in catalog.DECODERS.values() if info.needs in trained]
    assert ready.single_token is None
    stages = [event for event in engine.seen if isinstance(event, Loading)]
    assert list(dict.fromkeys(event.stage for event in stages)) == list(range(1, stages[0].stages + 1))
    assert [event.seq for event in engine.seen] == list(range(len(engine.seen)))
    assert ready.tokenizer == header.tokenizer
    assert (ready.device, ready.dtype, ready.context_length) == ("cpu", "float32", 2048)
    assert ready.memory is not None
    assert (ready.memory.resident_bytes or ready.memory.peak_bytes or 0) > ready.parameters
    engine.send(Shutdown())
    assert engine.wait_for_end() == 0


def test_an_engine_that_has_loaded_a_model_has_imported_nothing_from_its_working_directory(
    engine: Wire, hostile: HostileFolder
) -> None:
    assert {"torch", "transformers"} <= set(NAMES)
    assert engine.process.poll() is None and hostile.imported == []


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b'{"command":"configure","parameters":{"window":0}}\n',
        b'{"command":"configure","parameters":{"window":65}}\n',
        b'{"command":"configure","parameters":{"window":"five"}}\n',
        b'{"command":"configure","parameters":{"window":true}}\n',
        b'{"command":"configure","parameters":{"pool_prompt":1}}\n',
        b'{"command":"configure","parameters":{"height":3}}\n',
        b'{"command":"configure","decoder":"crystal_ball"}\n',
        b'{"command":"generate","turn":"one"}\n',
        b"\xff\xfe\n",
        b"[]\n",
    ],
)
def test_a_line_that_is_no_command_is_refused_and_the_engine_lives_on(engine: Wire, line: bytes) -> None:
    before = next(event for event in reversed(engine.seen) if isinstance(event, SettingsApplied)).settings
    engine.send(line)
    failed = engine.until(Failed)
    assert (failed.code, failed.fatal) == ("bad_command", False)
    engine.send(Configure())
    assert engine.until(SettingsApplied).settings == before, "nothing has changed"
    assert engine.ask(QUESTION, max_new_tokens=2)[1].reason == "max_new_tokens"


def test_unknown_commands_and_keys_are_skipped(engine: Wire) -> None:
    engine.send(b'{"command":"sing"}\n\n{"command":"configure","parameters":{"guesses":6},"colour":"red"}\n')
    assert engine.until(SettingsApplied).settings.parameters["guesses"] == 6


def test_commands_sent_while_it_loads_are_carried_out_when_it_has_loaded() -> None:
    engine = Wire()
    engine.send(Configure(decoder="lookahead", parameters={"window": 8}))
    turn = engine.generate(QUESTION, max_new_tokens=5)
    assert engine.until(TurnFinished).turn == turn
    assert engine.of_turn(Step, turn)[0].window is not None
    # The end of its input ends it in the middle of an answer.
    engine.generate("Explain the Jacobi iteration in simple words.")
    engine.until(Step)
    assert engine.end() == 0


def test_the_end_of_the_input_ends_it_while_it_loads() -> None:
    engine = Wire()
    engine.until(Loading)
    assert engine.end() == 0
    assert not any(isinstance(event, Ready) for event in engine.rest())


def test_it_tells_where_it_is_and_goes_on(engine: Wire) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not all(place in engine.log for place in ("in _read", "in wait")):  # of the commands, and for one
        assert time.monotonic() < deadline, engine.log
        engine.process.send_signal(WHERE)  # it may have been about something else
        time.sleep(0.1)
    assert engine.ask(QUESTION, max_new_tokens=2)[1].reason == "max_new_tokens"


def test_what_libraries_print_does_not_break_the_stream(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, threading, time\n"
        "def chatter():\n"
        "    while 'torch' not in sys.modules: time.sleep(0.01)\n"
        "    for _ in range(40):\n"
        "        time.sleep(0.1); print('a print'); os.write(1, b'a write\\n'); sys.stdout.flush()\n"
        "threading.Thread(target=chatter).start() if 'engine' in sys.orig_argv else None\n"
    )
    engine = Wire(environment={"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])})
    engine.ask(QUESTION)  # every line decodes, or `next` says so
    engine.end()
    assert "a print" in engine.log and "a write" in engine.log


@pytest.mark.full
def test_a_window_that_never_fits_the_context_is_left_out_and_the_engine_answers(tmp_path: Path) -> None:
    folder = tmp_path / "short"
    shutil.copytree(DEMO, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 48}))
    engine = Wire("--model", str(folder), "--window", "64", "--ngram", "5")
    steps, finished = engine.ask("Hi!")
    assert finished.reason in ("eos", "context") and steps
    assert not any(step.window for step in steps)
    assert engine.end() == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--model", "./no/such/folder"], "model_not_found"),
        pytest.param(["--device", "abacus"], "load_failed", marks=pytest.mark.full),
    ],
)
def test_what_cannot_be_loaded_is_said_and_ends_the_engine(arguments: list[str], code: str) -> None:
    engine = Wire(*arguments)
    failed = engine.until(Failed)
    assert (failed.code, failed.fatal) == (code, True)
    assert engine.wait_for_end() == 1
    assert "Traceback" not in engine.log
