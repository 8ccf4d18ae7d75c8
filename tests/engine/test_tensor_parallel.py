"""One model in two processes, on a CPU through gloo: the text of one, and no process that outlives the others."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from ladechat.protocol import (
    Configure,
    Failed,
    Loading,
    Message,
    Prefilling,
    Ready,
    Step,
    Stop,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.launcher import EngineOptions
from ladechat.session.live import LiveEngine
from tests.engine.tokenizers import sentencepiece
from tests.engine.wire import ROOT, Wire
from tests.hostile_folder import HostileFolder
from tests.session.test_live import end_of
from tests.tiny import SHAPE, plain

LIMIT = 40
QUESTION = "the cat sat on the mat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama in float64, whose four heads are shared out, with its tokenizer."""
    folder = tmp_path_factory.mktemp("shared") / "checkpoint"
    torch.manual_seed(0)
    vocabulary = len(sentencepiece()) + len(sentencepiece()) % 2
    config = AutoConfig.for_model("llama", **{**SHAPE, "vocab_size": vocabulary})
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float64).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    model.save_pretrained(folder)
    sentencepiece().save_pretrained(folder)
    return folder


def shared_by_two(folder: Path, working_directory: Path = ROOT) -> Wire:
    arguments = ("--model", str(folder), "--device", "cpu", "--dtype", "float64", "--tensor-parallel", "2")
    return Wire(*arguments, "-W", "5", "-N", "3", "-G", "5", folder=working_directory)


@pytest.fixture(scope="module")
def engine(folder: Path, hostile: HostileFolder) -> Iterator[Wire]:
    engine = shared_by_two(folder, hostile.folder)
    engine.until(Ready)
    yield engine
    engine.close()


def workers_of(engine: int) -> list[int]:
    """The processes that share the model with the engine of this number."""
    children = ["pgrep", "-a", "-P", str(engine)]  # with their command lines: one of them watches the input
    found = subprocess.run(children, capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "watcher.py" not in line]


def first_worker_of(engine: Wire) -> int:
    """That of an engine that is loading, as soon as it is there."""
    engine.until(Loading, lambda event: "weights" in event.doing)
    while not workers_of(engine.process.pid):
        time.sleep(0.01)
    return workers_of(engine.process.pid)[0]


def listening_ports(process: int) -> list[int]:
    """The TCP ports at which a process listens."""
    links = [str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in links]


def ended(process: int) -> None:
    asyncio.run(end_of(process))


def last_start(engine: Wire) -> TurnStarted:
    return next(event for event in reversed(engine.seen) if isinstance(event, TurnStarted))


def test_two_processes_write_what_one_writes_with_and_without_lookahead(engine: Wire, folder: Path) -> None:
    ready = next(event for event in engine.seen if isinstance(event, Ready))
    assert ready.device == "2 × cpu" and ready.single_token is None
    looked_ahead, finished = engine.ask(QUESTION, max_new_tokens=LIMIT)
    engine.send(Configure(decoder="autoregressive"))
    plainly, also_finished = engine.ask(QUESTION, max_new_tokens=LIMIT)
    engine.send(Configure(decoder="lookahead"))
    one = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    assert ready.parameters == one.num_parameters()
    expected = plain(one, last_start(engine).prompt_ids, LIMIT, ready.eos_ids)
    assert finished.token_ids == also_finished.token_ids == expected
    assert len(plainly) == len(expected) > 10 and len(looked_ahead) < len(expected)


def test_engine_and_worker_import_nothing_from_the_folder_that_they_are_started_in(
    engine: Wire, hostile: HostileFolder
) -> None:
    assert engine.process.poll() is None and len(workers_of(engine.process.pid)) == 1
    assert hostile.imported == []


def test_an_answer_is_stopped_and_the_next_question_finds_it_in_the_cache(engine: Wire) -> None:
    turn = engine.generate(QUESTION, max_new_tokens=400)
    engine.until(Step)
    engine.send(Stop())
    _, finished = engine.finish(turn)
    assert finished.reason == "stopped"
    known = len(last_start(engine).prompt_ids) + len(finished.token_ids) - 1  # the last token was never fed
    first = Message(role="user", content=QUESTION)
    answer = Message(role="assistant", content=finished.text, token_ids=finished.token_ids)
    _, second = engine.ask(first, answer, "and the dog", max_new_tokens=LIMIT)
    assert last_start(engine).cached_tokens == known
    engine.ask("something else", max_new_tokens=3)
    _, anew = engine.ask(first, answer, "and the dog", max_new_tokens=LIMIT)
    assert last_start(engine).cached_tokens < known
    assert anew.token_ids == second.token_ids


def test_a_worker_that_is_killed_ends_the_engine_with_a_word(folder: Path, engine: Wire) -> None:
    (worker,) = workers_of(engine.process.pid)
    engine.generate(QUESTION, max_new_tokens=400)
    engine.until(Step)
    os.kill(worker, signal.SIGKILL)
    failed = engine.until(Failed)
    assert failed.fatal and "processes that share the model has ended (by signal 9)" in failed.message
    assert engine.wait_for_end() == 1
    assert not any(isinstance(event, TurnFinished) and event.reason == "failed" for event in engine.seen)


# --- each with a start of its own ------------------------------------------------------------------------------------


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
    assert "Segmentation fault" in engine.log and "rank0.py" in engine.log


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
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
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
    assert "Traceback" not in engine.log
