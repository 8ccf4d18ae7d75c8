"""The engine as a process, over real pipes, with the bundled model."""

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from ladechat.protocol import (
    VERSION,
    Command,
    Configure,
    Event,
    Failed,
    Generate,
    Header,
    HistoryTrimmed,
    Loading,
    Message,
    Prefilling,
    Ready,
    SettingsApplied,
    Shutdown,
    Step,
    Stop,
    TurnFinished,
    TurnStarted,
    decode_event,
    encode,
)
from tests.tiny import DEMO

PATIENCE = 120
E_ = TypeVar("E_", bound=Event)


class Engine:
    """An engine process, spoken to in commands and heard in events."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ladechat", "engine", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self.heard: list[Event] = []
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self._threads.append(threading.Thread(target=self._drain, daemon=True))
        self.errors = b""
        self.turn = 0
        for thread in self._threads:
            thread.start()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _drain(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.errors += line

    def send(self, *commands: Command) -> None:
        for command in commands:
            self.write(encode(command))

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def next(self) -> Event | None:
        """The next event; None at the end of the stream."""
        line = self._lines.get(timeout=PATIENCE)
        if not line:
            return None
        event = decode_event(line)
        assert event is not None, line
        self.heard.append(event)
        return event

    def until(self, kind: type[E_], condition: Callable[[E_], bool] = lambda _: True) -> E_:
        """The next event of a kind; those before it are in `heard`."""
        while (event := self.next()) is not None:
            if isinstance(event, kind) and condition(event):
                return event
        raise AssertionError(f"No {kind.__name__} came. {self.errors.decode()[-2000:]}")

    def generate(self, *messages: Message, limit: int | None = None) -> Generate:
        self.turn += 1
        self.heard.clear()
        return Generate(turn=self.turn, messages=list(messages), max_new_tokens=limit)

    def ask(self, *messages: Message, limit: int | None = None) -> TurnFinished:
        """One whole turn; its events are in `heard`."""
        self.send(self.generate(*messages, limit=limit))
        return self.until(TurnFinished, lambda event: event.turn == self.turn)

    def steps(self) -> list[Step]:
        return [event for event in self.heard if isinstance(event, Step)]

    def end(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def answer_of(event: TurnFinished) -> Message:
    return Message(role="assistant", content=event.text, token_ids=event.token_ids)


QUESTION = user("What is the n-gram pool?")
LONG = user("Explain the Jacobi iteration in simple words.")


@pytest.fixture(scope="module")
def started() -> Iterator[Engine]:
    engine = Engine()
    engine.until(Ready)
    yield engine
    assert engine.end() == 0


@pytest.fixture
def engine(started: Engine) -> Engine:
    """The module's engine, with the settings it starts with."""
    started.send(Configure(decoder="lookahead", window=5, ngram=3, guesses=5, auto=False))
    started.until(SettingsApplied)
    return started


def test_the_stream_begins_with_its_header_and_says_what_is_being_loaded() -> None:
    engine = Engine("--window", "4")
    ready = engine.until(Ready)
    header = engine.heard[0]
    assert isinstance(header, Header)
    assert (header.format, header.version, header.model) == ("ladechat", VERSION, "demo")
    assert header.settings.window == 4
    stages = [event for event in engine.heard if isinstance(event, Loading)]
    assert list(dict.fromkeys(event.stage for event in stages)) == list(range(1, stages[0].stages + 1))
    assert [event.seq for event in engine.heard] == list(range(len(engine.heard)))
    assert ready.tokenizer == header.tokenizer
    assert (ready.device, ready.dtype, ready.context_length) == ("cpu", "float32", 2048)
    assert ready.memory is not None
    assert (ready.memory.resident_bytes or ready.memory.peak_bytes or 0) > ready.parameters
    engine.send(Shutdown())
    assert engine.process.wait(PATIENCE) == 0


def test_what_the_engine_takes_is_told_behind_each_answer(engine: Engine) -> None:
    memory = engine.ask(QUESTION, limit=3).memory
    assert memory is not None and memory.cache_bytes is not None
    assert (memory.resident_bytes or memory.peak_bytes or 0) > memory.cache_bytes > 0
    assert memory.device_bytes is None and memory.reserved_bytes is None


def test_pieces_concatenate_to_the_text(engine: Engine) -> None:
    finished = engine.ask(QUESTION)
    steps = engine.steps()
    assert finished.reason == "eos"
    assert "".join(piece for step in steps for piece in step.pieces) == finished.text
    assert [token for step in steps for token in step.token_ids] == finished.token_ids
    assert [step.index for step in steps] == list(range(finished.steps))
    assert finished.steps < len(finished.token_ids)
    started = next(event for event in engine.heard if isinstance(event, TurnStarted))
    assert started.messages == [QUESTION]
    assert isinstance(engine.heard[-1], TurnFinished)


def test_both_decoders_write_the_same(engine: Engine) -> None:
    looked_ahead = engine.ask(QUESTION)
    engine.send(Configure(decoder="autoregressive"))
    engine.until(SettingsApplied)
    plain = engine.ask(QUESTION)
    assert plain.token_ids == looked_ahead.token_ids
    assert plain.steps == len(plain.token_ids)
    assert {step.timing.slots for step in engine.steps()} == {1}


def test_settings_that_follow_what_they_yield_write_the_same(engine: Engine) -> None:
    expected = engine.ask(LONG).token_ids
    engine.send(Configure(auto=True))
    engine.until(SettingsApplied)
    assert engine.ask(LONG).token_ids == expected
    assert len({step.timing.slots for step in engine.steps()}) > 1
    engine.send(engine.generate(LONG))
    engine.until(Step)
    engine.send(Configure(auto=False))
    applied = engine.until(SettingsApplied)
    assert (applied.settings.window, applied.settings.ngram, applied.settings.guesses) == (5, 3, 5)
    assert engine.until(TurnFinished).token_ids == expected
    own = [step.window for step in engine.steps()][-3:]
    assert [len(view.fresh) for view in own if view] == [5, 5, 5]


def test_settings_change_between_two_steps_of_a_running_answer(engine: Engine) -> None:
    expected = engine.ask(LONG).token_ids
    engine.send(engine.generate(LONG))
    engine.until(Step)
    engine.send(Configure(window=9, ngram=4), Configure(guesses=2), Configure(decoder="autoregressive"))
    engine.until(SettingsApplied, lambda event: event.settings.decoder == "autoregressive")
    engine.send(Configure(decoder="lookahead"))
    finished = engine.until(TurnFinished)
    assert finished.token_ids == expected
    sizes = {(len(step.window.fresh), len(step.window.rows) + 1) for step in engine.steps() if step.window}
    assert {(5, 3), (9, 4)} <= sizes or any(step.window is None for step in engine.steps())
    applied = [event.settings for event in engine.heard if isinstance(event, SettingsApplied)]
    assert (applied[-1].window, applied[-1].ngram, applied[-1].guesses) == (9, 4, 2)


def test_a_stop_ends_the_answer_with_what_there_is(engine: Engine) -> None:
    whole = engine.ask(LONG)
    engine.send(engine.generate(LONG))
    engine.until(Step)
    engine.send(Stop())
    finished = engine.until(TurnFinished)
    assert finished.reason == "stopped"
    assert whole.text.startswith(finished.text)
    assert "".join(piece for step in engine.steps() for piece in step.pieces) == finished.text
    assert engine.ask(LONG).token_ids == whole.token_ids


def test_a_stop_that_comes_with_the_question_is_not_lost(engine: Engine) -> None:
    engine.send(engine.generate(LONG), Stop())
    assert engine.until(TurnFinished).reason == "stopped"


def test_the_next_turn_reuses_everything_that_is_cached(engine: Engine) -> None:
    first = engine.ask(QUESTION)
    prompt = next(event for event in engine.heard if isinstance(event, TurnStarted)).prompt_ids
    engine.ask(QUESTION, answer_of(first), user("Why?"), limit=4)
    second = next(event for event in engine.heard if isinstance(event, TurnStarted))
    assert second.prompt_ids[: len(prompt) + len(first.token_ids)] == prompt + first.token_ids
    assert second.cached_tokens == len(prompt) + len(first.token_ids) - 1  # the last token was never fed


def test_a_limit_is_kept_and_named(engine: Engine) -> None:
    finished = engine.ask(QUESTION, limit=7)
    assert (finished.reason, len(finished.token_ids)) == ("max_new_tokens", 7)


def test_history_that_outgrows_the_context_is_trimmed_by_whole_turns(engine: Engine) -> None:
    turns = [
        message for _ in range(12) for message in (user("pool " * 80), Message(role="assistant", content="yes " * 60))
    ]
    finished = engine.ask(*turns, QUESTION, limit=4)
    trimmed = next(event for event in engine.heard if isinstance(event, HistoryTrimmed))
    started = next(event for event in engine.heard if isinstance(event, TurnStarted))
    assert finished.reason == "max_new_tokens"
    assert trimmed.tokens_before > 2048 >= trimmed.tokens_after == len(started.prompt_ids)
    assert trimmed.dropped_messages == 2 * trimmed.dropped_turns
    assert started.messages == [*turns[trimmed.dropped_messages :], QUESTION]
    prefills = [event for event in engine.heard if isinstance(event, Prefilling)]
    assert len(prefills) > 1  # in chunks
    assert prefills[-1].done_tokens == prefills[-1].total_tokens == len(started.prompt_ids) - 1


def test_one_message_too_long_is_refused_with_the_numbers(engine: Engine) -> None:
    engine.send(engine.generate(user("pool " * 3000)))
    failed = engine.until(Failed)
    assert (failed.code, failed.turn, failed.fatal) == ("message_too_long", engine.turn, False)
    assert "2,048" in failed.message
    assert engine.ask(QUESTION, limit=3).reason == "max_new_tokens"


def test_a_second_question_in_the_middle_of_an_answer_is_refused(engine: Engine) -> None:
    engine.send(engine.generate(LONG))
    engine.until(Step)
    engine.send(Generate(turn=999, messages=[QUESTION]))
    assert engine.until(Failed).code == "busy"
    assert engine.until(TurnFinished).reason == "eos"


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b'{"command":"configure","window":0}\n',
        b'{"command":"generate","turn":"one"}\n',
        b"\xff\xfe\n",
        b"[]\n",
    ],
)
def test_a_line_that_is_no_command_is_refused_and_the_engine_lives_on(engine: Engine, line: bytes) -> None:
    engine.write(line)
    failed = engine.until(Failed)
    assert (failed.code, failed.fatal) == ("bad_command", False)
    assert engine.ask(QUESTION, limit=2).reason == "max_new_tokens"


def test_unknown_commands_and_keys_are_skipped(engine: Engine) -> None:
    engine.write(b'{"command":"sing"}\n\n{"command":"configure","guesses":6,"colour":"red"}\n')
    assert engine.until(SettingsApplied).settings.guesses == 6


def test_the_estimate_is_the_sum_of_what_the_steps_say(engine: Engine) -> None:
    finished = engine.ask(LONG)
    steps = engine.steps()
    assert all(step.timing.plain_ms for step in steps)
    plain = sum(len(step.token_ids) * (step.timing.plain_ms or 0) for step in steps)
    assert finished.estimated_speedup == pytest.approx(plain / sum(step.timing.step_ms for step in steps), rel=1e-3)
    assert finished.decode_seconds == pytest.approx(sum(step.timing.step_ms for step in steps) / 1000, rel=1e-3)


def test_commands_sent_while_it_loads_are_carried_out_when_it_has_loaded() -> None:
    engine = Engine()
    engine.send(Configure(window=8, auto=False), engine.generate(QUESTION, limit=5))
    assert engine.until(TurnFinished).turn == 1
    assert engine.steps()[0].window is not None
    # The end of its input ends it in the middle of an answer.
    engine.send(engine.generate(LONG))
    engine.until(Step)
    assert engine.end() == 0


def test_the_end_of_the_input_ends_it_while_it_loads() -> None:
    engine = Engine()
    engine.until(Loading)
    assert engine.end() == 0
    while engine.next() is not None:
        pass
    assert not any(isinstance(event, Ready) for event in engine.heard)


def test_what_libraries_print_does_not_break_the_stream(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, threading, time\n"
        "def chatter():\n"
        "    for _ in range(40):\n"
        "        time.sleep(0.1); print('a print'); os.write(1, b'a write\\n'); sys.stdout.flush()\n"
        "threading.Timer(1.0, chatter).start() if 'engine' in sys.orig_argv else None\n"
    )
    engine = Engine(environment={"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])})
    engine.ask(QUESTION)  # every line decodes, or `next` says so
    engine.end()
    assert b"a print" in engine.errors and b"a write" in engine.errors


def test_a_window_that_never_fits_the_context_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "short"
    shutil.copytree(DEMO, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 16}))
    engine = Engine("--model", str(folder), "--window", "15", "--ngram", "5")
    failed = engine.until(Failed)
    assert (failed.code, failed.fatal) == ("load_failed", True)
    assert "look 17 positions ahead" in failed.message and "--window" in failed.hint
    assert engine.process.wait(PATIENCE) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--model", "./no/such/folder"], "model_not_found"), (["--device", "abacus"], "load_failed")],
)
def test_what_cannot_be_loaded_is_said_and_ends_the_engine(arguments: list[str], code: str) -> None:
    engine = Engine(*arguments)
    failed = engine.until(Failed)
    assert (failed.code, failed.fatal) == (code, True)
    assert engine.process.wait(PATIENCE) == 1
    assert b"Traceback" not in engine.errors
