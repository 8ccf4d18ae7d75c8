"""Two processes for one model, on a CPU through gloo: the text of one, and no process that outlives the other.

They share the model (tensor parallelism), or each holds it and they share the passes (lookahead parallelism).
"""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from ladechat.engine_options import EngineOptions
from ladechat.protocol import (
    Configure,
    Failed,
    Loading,
    Message,
    Prefilling,
    Ready,
    Settings,
    Step,
    Stop,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.live import LiveEngine
from tests.checkpoints import save
from tests.engine.forked import Forked
from tests.engine.tokenizers import sentencepiece
from tests.engine.wire import ROOT, Line, Wire
from tests.hostile_folder import HostileFolder
from tests.session.test_live import end_of
from tests.tiny import new_model, plain
from tests.waiting import patience, wait_for

LIMIT = 40
QUESTION = "the cat sat on the mat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama in float64, whose four heads are shared out, with its tokenizer."""
    folder = tmp_path_factory.mktemp("shared") / "checkpoint"
    vocabulary = len(sentencepiece()) + len(sentencepiece()) % 2
    return save(folder, new_model(vocab_size=vocabulary).double(), sentencepiece())


def shared_by_two(folder: Path, working_directory: Path = ROOT) -> Wire:
    arguments = ("--model", str(folder), "--device", "cpu", "--dtype", "float64", "--tensor-parallel", "2")
    return Wire(*arguments, "-W", "5", "-N", "3", "-G", "5", folder=working_directory)


def workers_of(engine: int) -> list[int]:
    """The processes that share the model with the engine of this number."""
    children = ["pgrep", "-a", "-P", str(engine)]  # with their command lines: one of them watches the input
    found = subprocess.run(children, capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "watcher.py" not in line]


def first_worker_of(engine: Wire) -> int:
    """That of an engine that is loading, as soon as it is there."""
    engine.until(Loading, lambda event: "weights" in event.doing)
    wait_for(lambda: workers_of(engine.process.pid))
    return workers_of(engine.process.pid)[0]


def listening_ports(process: int) -> list[int]:
    """The TCP ports at which a process listens."""
    links = [str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in links]


def ended(process: int) -> None:
    asyncio.run(end_of(process))


def last_start(engine: Line) -> TurnStarted:
    return next(event for event in reversed(engine.seen) if isinstance(event, TurnStarted))


@dataclass
class Asked:
    """A question, and what came of it."""

    started: TurnStarted
    steps: list[Step]
    finished: TurnFinished

    @property
    def token_ids(self) -> list[int]:
        return self.finished.token_ids


class Life:
    """One engine of two processes, from its start to the death of one of them.

    Attributes:
        way: how two processes compute with the model.
        ready: what it said when it was.
        workers: how many processes shared the model with it.
        ahead, plainly: the question to lookahead and to plain decoding.
        stopped: an answer that was stopped.
        following, between, anew: a question about that, another conversation, and the question again.
        died: what it said when its worker was killed in the middle of an answer.
        after: what else it said.
        exit_code: of its end.
    """

    def __init__(self, folder: Path, way: str) -> None:
        settings = Settings(decoder="lookahead", parameters={"window": 5, "ngram": 3, "guesses": 5})
        self._engine = Forked(str(folder), "float64", settings, **{way: 2})
        self.way, self.ready = way, self._engine.until(Ready)
        workers = workers_of(self._engine.process.pid)
        self.workers = len(workers)
        self._ask(workers)
        self.exit_code = self._engine.wait_for_end()
        self.after = self._engine.rest()

    def _ask(self, workers: list[int]) -> None:
        engine = self._engine
        self.ahead = self._answered(QUESTION)
        engine.send(Configure(decoder="autoregressive"))
        self.plainly = self._answered(QUESTION)
        engine.send(Configure(decoder="lookahead"))
        turn = engine.begin(QUESTION, steps=3)
        engine.send(Stop())
        self.stopped = Asked(last_start(engine), *engine.finish(turn))
        engine.go_on()
        first = Message(role="user", content=QUESTION)
        end = self.stopped.finished
        answer = Message(role="assistant", content=end.text, token_ids=end.token_ids)
        self.following = self._answered(first, answer, "and the dog")
        self.between = self._answered("something else")
        self.anew = self._answered(first, answer, "and the dog")
        engine.generate(QUESTION, max_new_tokens=400)
        engine.until(Step)
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        self.died = engine.until(Failed)

    def _answered(self, *messages: Message | str) -> Asked:
        steps, finished = self._engine.ask(*messages, max_new_tokens=LIMIT)
        return Asked(last_start(self._engine), steps, finished)


@pytest.fixture(scope="module", params=["tensor_parallel", "lookahead_parallel"])
def life(folder: Path, request: pytest.FixtureRequest) -> Life:
    return Life(folder, request.param)


def test_two_processes_write_what_one_writes_with_and_without_lookahead(life: Life, folder: Path) -> None:
    how = {"tensor_parallel": "", "lookahead_parallel": ", each the whole model"}[life.way]
    assert life.ready.device == f"2 × cpu{how}" and life.ready.single_token is None
    one = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    assert life.ready.parameters == one.num_parameters()
    expected = plain(one, life.ahead.started.prompt_ids, LIMIT, life.ready.eos_ids)
    assert life.ahead.token_ids == life.plainly.token_ids == expected
    assert len(life.plainly.steps) == len(expected) > 10 and len(life.ahead.steps) < len(expected)


def test_a_worker_is_started_for_each_further_part(life: Life) -> None:
    assert life.workers == 1


def test_an_answer_is_stopped_and_the_next_question_finds_it_in_the_cache(life: Life) -> None:
    stopped = life.stopped
    assert stopped.finished.reason == "stopped"
    cached = [*stopped.started.prompt_ids, *stopped.token_ids][:-1]  # the last token was never fed
    agree = [one == other for one, other in zip(cached, life.following.started.prompt_ids, strict=False)]
    assert life.following.started.cached_tokens == [*agree, False].index(False) > life.anew.started.cached_tokens
    assert life.following.token_ids == life.anew.token_ids


def test_a_worker_that_is_killed_ends_the_engine_with_a_word(life: Life) -> None:
    assert life.died.fatal and "processes that share the model has ended (by signal 9)" in life.died.message
    assert life.exit_code == 1
    assert not any(isinstance(event, TurnFinished) for event in life.after)


# --- each with a start of its own ------------------------------------------------------------------------------------


@pytest.mark.full
def test_engine_and_worker_import_nothing_from_the_folder_that_they_are_started_in(
    folder: Path, hostile: HostileFolder
) -> None:
    engine = shared_by_two(folder, hostile.folder)
    ready = engine.until(Ready)
    assert ready.device == "2 × cpu" and hostile.imported == []
    assert engine.end() == 0


@pytest.mark.full
@pytest.mark.parametrize("moment", [None, Ready, Step], ids=["loading", "idle", "answering"])
def test_workers_of_an_engine_that_is_killed_end_by_themselves(
    moment: type[Ready] | type[Step] | None, folder: Path
) -> None:
    engine = shared_by_two(folder)
    worker = first_worker_of(engine)
    engine.generate(QUESTION, max_new_tokens=400)
    if moment is not None:
        engine.until(moment)
    engine.close()
    ended(worker)


@pytest.mark.full
def test_a_worker_that_is_killed_while_it_loads_ends_the_engine(folder: Path) -> None:
    engine = shared_by_two(folder)
    os.kill(first_worker_of(engine), signal.SIGKILL)
    assert engine.until(Failed).fatal
    assert engine.wait_for_end() == 1


@pytest.mark.full
def test_a_worker_that_crashes_writes_into_the_log_of_the_engine_where_it_was(folder: Path) -> None:
    engine = shared_by_two(folder)
    engine.until(Ready)
    os.kill(workers_of(engine.process.pid)[0], signal.SIGSEGV)
    assert "signal 11" in engine.until(Failed).message
    assert engine.wait_for_end() == 1
    engine.rest()
    assert "Segmentation fault" in engine.log and "parallel/workers.py" in engine.log


ASKS = """
import sys
from datetime import timedelta
from torch.distributed import TCPStore
TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False, timeout=timedelta(seconds=5)).set("a", "b")
print("answered")
"""


def answers_as_a_store(port: int) -> bool:
    """Whether a store takes what a process that nobody knows writes into it."""
    command = [sys.executable, "-c", ASKS, str(port)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience(), check=False)
    except subprocess.TimeoutExpired:
        return False
    return "answered" in done.stdout


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="ports are found in /proc")
def test_another_user_of_the_machine_finds_no_port_at_which_the_group_s_store_answers(folder: Path) -> None:
    engine = shared_by_two(folder)
    engine.until(Ready)
    ports = [
        port for process in (engine.process.pid, *workers_of(engine.process.pid)) for port in listening_ports(process)
    ]
    assert not any(answers_as_a_store(port) for port in ports)
    assert engine.end() == 0


@pytest.mark.full
def test_a_torn_checkpoint_is_told_of_as_for_one_process(folder: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    torn.mkdir()
    for file in folder.iterdir():
        content = file.read_bytes()
        (torn / file.name).write_bytes(content[: len(content) // 2] if file.suffix == ".safetensors" else content)
    engine = shared_by_two(torn)
    worker = first_worker_of(engine)
    failed = engine.until(Failed)
    assert (failed.code, failed.fatal) == ("load_failed", True) and "cannot be loaded" in failed.message
    assert engine.wait_for_end() == 1
    ended(worker)


@pytest.mark.full
def test_a_prompt_is_read_in_chunks_and_can_be_stopped_between_them(folder: Path) -> None:
    engine = shared_by_two(folder)
    engine.until(Ready)
    (worker,) = workers_of(engine.process.pid)
    turn = engine.generate("the cat " * 40, max_new_tokens=5)
    engine.until(Prefilling)
    assert engine.finish(turn)[1].reason == "max_new_tokens"
    assert engine.end() == 0
    ended(worker)


@pytest.mark.full
async def test_an_app_that_closes_its_engine_leaves_no_worker(folder: Path, tmp_path: Path) -> None:
    options = EngineOptions(model=str(folder), device="cpu", dtype="float64", tensor_parallel=2)
    engine = LiveEngine(options.command(), logs=tmp_path)
    await engine.start()
    async for event in engine.events():
        if isinstance(event, Ready):
            break
    assert engine._process is not None
    (worker,) = workers_of(engine._process.pid)
    await engine.close()
    assert engine.returncode == 0
    await end_of(worker)


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--device", "cpu", "--tensor-parallel", "3"], "cannot be divided among 3"),
        (["--tensor-parallel", "64"], "64 GPUs"),
    ],
)
def test_what_cannot_be_shared_is_said_before_another_process_is_started(arguments: list[str], says: str) -> None:
    engine = Wire(*arguments)
    failed = engine.until(Failed)
    assert failed.fatal and says in failed.message
    assert workers_of(engine.process.pid) == []
    assert engine.wait_for_end() == 1
