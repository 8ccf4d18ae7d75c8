"""The engine as a process, over real pipes: what it says first, what it makes of its input, and how it ends."""

import os
import shutil
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
    Step,
    TurnFinished,
    TurnStarted,
)
from tests.engine.asking import of_kind
from tests.engine.inside import Inside
from tests.engine.wire import Wire, refused
from tests.hostile_folder import NAMES, HostileFolder
from tests.scripted_checkpoint import change
from tests.tiny import DEMO
from tests.waiting import wait_for

QUESTION = "What is the n-gram pool?"


CHATTERS = """
import os, sys, threading, time

def chatter():
    while True:
        time.sleep(0.05)
        if 'torch' in sys.modules:
            print('a print'); os.write(1, b'a write\\n'); sys.stdout.flush()

if 'engine' in sys.orig_argv:
    threading.Thread(target=chatter, daemon=True).start()
"""
"""A library that writes on standard output, from the first moment on."""


class Life:
    """One engine as a process, from its first byte to its end, in a hostile folder and with a library that chatters.

    Attributes:
        wire: the process, which has ended.
        ready: what it said when it was.
        early, later, last: the turns of a question that it got while it loaded, of one that came after it was asked
            where it is, and of one in the middle of which its input ended.
        exit_code: of its end.
    """

    def __init__(self, chattering: Path, hostile: HostileFolder) -> None:
        path = os.pathsep.join(filter(None, (str(chattering), os.environ.get("PYTHONPATH"))))  # an empty one is "."
        self.wire = Wire("--window", "4", environment={"PYTHONPATH": path}, folder=hostile.folder)
        self.wire.send(Configure(decoder="lookahead", parameters={"window": 8}))
        self.early = self.wire.generate(QUESTION, max_new_tokens=5)
        self.ready = self.wire.until(Ready)
        self.wire.finish(self.early)
        wait_for(self._says_where_it_is)
        self.later = self.wire.generate(QUESTION, max_new_tokens=2)
        self.wire.finish(self.later)
        wait_for(lambda: "a print" in self.wire.log and "a write" in self.wire.log)
        self.last = self.wire.begin(QUESTION)
        self.exit_code = self.wire.end()
        self.wire.rest()  # every line decodes, or that says so

    def _says_where_it_is(self) -> bool:
        """Ask it. It may have been about something else before it waited for commands."""
        self.wire.process.send_signal(WHERE)
        return all(place in self.wire.log for place in ("in _read", "in wait"))  # of the commands, and for one


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory, hostile: HostileFolder) -> Life:
    folder = tmp_path_factory.mktemp("chattering")
    (folder / "sitecustomize.py").write_text(CHATTERS)
    return Life(folder, hostile)


def test_the_stream_begins_with_its_header_and_says_what_is_being_loaded(life: Life) -> None:
    ready, seen = life.ready, life.wire.seen
    header = seen[0]
    assert isinstance(header, Header)
    assert (header.format, header.version, header.model) == ("ladechat", VERSION, "demo")
    assert (header.settings.decoder, header.settings.parameters) == ("lookahead", {"window": 4})
    assert ready.settings.parameters == catalog.resolved("lookahead", {"window": 4})
    trained = {None, *(file.stem for file in DEMO.glob("*.safetensors"))}
    assert ready.decoders == [info for info in catalog.DECODERS.values() if info.needs in trained]
    assert ready.single_token is None
    stages = of_kind(seen, Loading)
    assert list(dict.fromkeys(event.stage for event in stages)) == list(range(1, stages[0].stages + 1))
    assert [event.seq for event in seen] == list(range(len(seen)))
    assert ready.tokenizer == header.tokenizer
    assert (ready.device, ready.dtype, ready.context_length) == ("cpu", "float32", 2048)
    assert ready.memory is not None
    assert (ready.memory.resident_bytes or ready.memory.peak_bytes or 0) > ready.parameters


def test_an_engine_has_imported_nothing_from_its_working_directory(life: Life, hostile: HostileFolder) -> None:
    assert {"torch", "transformers"} <= set(NAMES)
    assert life.ready and hostile.imported == []


def test_commands_sent_while_it_loads_are_carried_out_when_it_has_loaded(life: Life) -> None:
    [finished] = life.wire.of_turn(TurnFinished, life.early)
    assert (finished.reason, len(finished.token_ids)) == ("max_new_tokens", 5)
    [began] = life.wire.of_turn(TurnStarted, life.early)
    assert began.settings.parameters["window"] == 8


def test_it_tells_where_it_is_and_goes_on(life: Life) -> None:
    assert "in _read" in life.wire.log
    assert [finished.reason for finished in life.wire.of_turn(TurnFinished, life.later)] == ["max_new_tokens"]


def test_what_libraries_print_does_not_break_the_stream(life: Life) -> None:
    assert "a print" in life.wire.log and life.wire.of_turn(Step, life.last)


def test_the_end_of_the_input_ends_it_in_mid_answer(life: Life) -> None:
    assert life.exit_code == 0 and "Traceback" not in life.wire.log
    assert not life.wire.of_turn(TurnFinished, life.last)


def test_the_end_of_the_input_ends_it_while_it_loads() -> None:
    engine = Wire()
    engine.until(Loading)
    assert engine.end() == 0
    assert not any(isinstance(event, Ready) for event in engine.rest())


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b'{"command":"configure","parameters":{"window":0}}\n',
        b'{"command":"configure","parameters":{"pool_prompt":1}}\n',
        b'{"command":"configure","parameters":{"height":3}}\n',
        b'{"command":"configure","decoder":"crystal_ball"}\n',
    ],
)
def test_a_line_that_is_no_command_is_refused_and_the_engine_lives_on(engine: Inside, line: bytes) -> None:
    before = next(event for event in reversed(engine.seen) if isinstance(event, SettingsApplied)).settings
    engine.send(line)
    failed = engine.until(Failed)
    assert (failed.code, failed.fatal) == ("bad_command", False)
    engine.send(Configure())
    assert engine.until(SettingsApplied).settings == before, "nothing has changed"
    assert engine.ask(QUESTION, max_new_tokens=2)[1].reason == "max_new_tokens"


def test_unknown_commands_and_keys_are_skipped(engine: Inside) -> None:
    engine.send(b'{"command":"sing"}\n\n{"command":"configure","parameters":{"guesses":6},"colour":"red"}\n')
    assert engine.until(SettingsApplied).settings.parameters["guesses"] == 6


@pytest.mark.full
def test_a_window_that_never_fits_the_context_is_left_out_and_the_engine_answers(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DEMO, tmp_path / "short"))
    change(folder / "config.json", max_position_embeddings=48)
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
    failed = refused(*arguments)
    assert failed.code == code and arguments[1] in failed.message and failed.hint
