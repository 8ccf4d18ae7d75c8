"""Memory that is used up in the middle of something: the turn fails with a sentence, and the next one is answered."""

from collections.abc import Callable

import pytest
import torch

from ladechat.engine.failures import unexpected
from ladechat.engine.turn import Service, answer
from ladechat.model.eager import EagerRunner
from ladechat.model.loading import load
from ladechat.protocol import Event, Failed, Generate, Message, Settings, Step, TurnFinished
from tests.engine.tokenizers import byte_level
from tests.tiny import random_model

# As torch 2.11 words them: the first of CUDA's own errors is raised outside of torch's allocator.
ERRORS = {
    "CUDA": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has …"),
    "CUDA, outside of the allocator": RuntimeError("CUDA error: out of memory"),
    "cuBLAS": RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    "MPS": RuntimeError("MPS backend out of memory (MPS allocated: 17.92 GB, max allowed: 18.13 GB)."),
    "CPU": RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried"),
    "Python": MemoryError(),
}


class Listener:
    """Lets a turn run."""

    def stop_wanted(self) -> bool:
        return False

    def apply_changes(self) -> None:
        pass


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder, tokenizer = tmp_path_factory.mktemp("tiny"), byte_level()
    random_model(vocab_size=len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Service.of(load(folder, "tiny", "cpu", "float32", lambda _: None, lambda _: None), Settings())


def ask(service: Service, text: str) -> list[Event]:
    events: list[Event] = []
    question = Message(role="user", content=text)
    answer(service, Generate(turn=1, messages=[question], max_new_tokens=20), events.append, Listener())
    return events


@pytest.fixture
def fails_at_pass(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has the n-th pass through the model from now on raise, as an allocation in it would."""
    passed, at = 0, 0
    run = EagerRunner._pass

    def failing(runner: EagerRunner, *layout: object, **options: object) -> torch.Tensor:
        nonlocal passed
        passed += 1
        result: torch.Tensor = run(runner, *layout, **options)  # type: ignore[arg-type]
        if passed == at:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return result

    def fail_at(number: int) -> None:
        nonlocal passed, at
        passed, at = 0, number

    monkeypatch.setattr(EagerRunner, "_pass", failing)
    return fail_at


@pytest.mark.parametrize("number", [1, 2, 8], ids=["in the prefill", "in the first step", "in a later step"])
def test_memory_that_is_used_up_in_a_pass_fails_the_turn_and_the_next_is_answered_as_ever(
    service: Service, fails_at_pass: Callable[[int], None], number: int
) -> None:
    expected = [event.token_ids for event in ask(service, "the dog") if isinstance(event, TurnFinished)]
    fails_at_pass(number)
    *before, failed, finished = ask(service, f"the cat sat on the mat {number}")
    assert isinstance(failed, Failed) and isinstance(finished, TurnFinished)
    assert (failed.code, failed.turn, failed.fatal, finished.reason) == ("out_of_memory", 1, False, "failed")
    assert finished.token_ids == [token for step in before if isinstance(step, Step) for token in step.token_ids]
    again = [event.token_ids for event in ask(service, "the dog") if isinstance(event, TurnFinished)]
    assert again == expected


@pytest.mark.parametrize("device", ERRORS)
def test_each_way_in_which_memory_runs_out_is_known_as_such(device: str) -> None:
    assert unexpected(ERRORS[device], turn=1, fatal=False).code == "out_of_memory"


def test_not_every_error_is_one_of_memory() -> None:
    assert unexpected(RuntimeError("CUDA error: device-side assert triggered"), turn=1, fatal=False).code == "internal"
