"""Memory that is used up in the middle of something: the turn fails with a sentence, and the next one is answered."""

import weakref
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from ladechat import catalog
from ladechat.engine import server
from ladechat.engine.decoders import smaller
from ladechat.engine.service import Service
from ladechat.engine_options import EngineOptions
from ladechat.engine_process.stream import EventStream
from ladechat.model.runners import kv_cache, out_of_memory
from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.tree import SMALL_CHUNK, TreeRunner
from ladechat.protocol import (
    Event,
    Failed,
    Message,
    Prefilling,
    Settings,
    SettingsApplied,
    Step,
    TurnFinished,
    TurnStarted,
)
from tests.checkpoints import save_recurrent, service_of
from tests.engine.asking import ask, assert_adds_up, end_of, failure, of_kind, said_by


@pytest.fixture
def service(checkpoint: Path) -> Service:
    return service_of(checkpoint)


@pytest.fixture
def fails_at_pass(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has the n-th pass through the model from now on raise, as an allocation in it would."""
    passed, at = 0, 0
    run = TreeRunner._model_pass

    def failing(runner: TreeRunner, *layout: Any, **options: Any) -> torch.Tensor:
        nonlocal passed
        passed += 1
        result: torch.Tensor = run(runner, *layout, **options)
        if passed == at:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return result

    def fail_at(number: int) -> None:
        nonlocal passed, at
        passed, at = 0, number

    monkeypatch.setattr(TreeRunner, "_model_pass", failing)
    return fail_at


@pytest.mark.parametrize("number", [1, 2, 8], ids=["in the prefill", "in the first step", "in a later step"])
def test_memory_that_is_used_up_in_a_pass_fails_the_turn_and_the_same_conversation_goes_on(
    service: Service, fails_at_pass: Callable[[int], None], number: int
) -> None:
    first = end_of(ask(service, "the dog", max_new_tokens=20))
    talk: list[Message | str] = [
        "the dog",
        said_by(first),
        "and the cat",
    ]
    expected = end_of(ask(service, *talk, max_new_tokens=60))
    service.loaded.runner.save_memory()  # so that the first pass is one of the prompt

    fails_at_pass(number)
    *before, failed, applied, finished = ask(service, *talk, max_new_tokens=60)
    assert isinstance(failed, Failed) and isinstance(applied, SettingsApplied) and isinstance(finished, TurnFinished)
    assert (failed.code, failed.turn, failed.fatal, finished.reason) == ("out_of_memory", 1, False, "failed")
    assert_adds_up([*before, finished])
    assert finished.token_ids == expected.token_ids[: len(finished.token_ids)]
    assert bool(finished.token_ids) == (number > 2)
    assert finished.memory is not None and finished.memory.cache_bytes == 0, "given back"

    again = ask(service, *talk, max_new_tokens=60)
    assert (end_of(again).token_ids, end_of(again).reason) == (expected.token_ids, expected.reason)


def test_the_next_answer_takes_smaller_passes_and_its_settings_are_told(
    service: Service, fails_at_pass: Callable[[int], None]
) -> None:
    fails_at_pass(8)
    events = ask(service, "the dog", max_new_tokens=20)
    (applied,) = of_kind(events, SettingsApplied)
    assert applied.settings.parameters == catalog.resolved("lookahead", {"window": 2, "ngram": 2, "guesses": 2})
    assert "lookahead, W 2, N 2, G 2." in failure(events).message
    again = ask(service, "the dog", max_new_tokens=20)
    (began,) = of_kind(again, TurnStarted)
    assert (began.settings, began.cached_tokens) == (applied.settings, 0)
    assert max(step.timing.slots for step in of_kind(again, Step)) <= 2 * 2
    assert max(step.timing.slots for step in of_kind(events, Step)) > 4


def test_a_prompt_for_which_the_memory_did_not_suffice_is_read_in_smaller_chunks(
    service: Service, fails_at_pass: Callable[[int], None]
) -> None:
    text = "the dog and the cat " * 20
    fails_at_pass(1)
    assert failure(ask(service, text, max_new_tokens=20)).code == "out_of_memory"
    read = [0, *(event.done_tokens for event in of_kind(ask(service, text, max_new_tokens=20), Prefilling))]
    assert len(read) > 2 and max(after - before for before, after in pairwise(read)) == SMALL_CHUNK


def test_where_it_happens_again_plain_decoding_goes_on(service: Service, fails_at_pass: Callable[[int], None]) -> None:
    expected = end_of(ask(service, "the dog", max_new_tokens=20)).token_ids
    told = []
    for _ in range(3):
        fails_at_pass(3)
        told.append(failure(ask(service, "the dog", max_new_tokens=20)).message)
    assert [message.rsplit(": ")[-1] for message in told] == [
        "lookahead, W 2, N 2, G 2.",
        "plain decoding.",
        "plain decoding.",
    ]
    again = ask(service, "the dog", max_new_tokens=20)
    assert end_of(again).token_ids == expected
    assert {step.timing.slots for step in of_kind(again, Step)} == {1}


@pytest.mark.parametrize("decoder", [name for name, info in catalog.DECODERS.items() if info.parameters])
def test_smaller_settings_never_raise_what_somebody_has_set(decoder: str) -> None:
    parameters = catalog.DECODERS[decoder].parameters
    tiny = Settings(decoder=decoder, parameters={one.name: one.least for one in parameters}, temperature=0.5)
    assert smaller(tiny) == replace(tiny, decoder="autoregressive")
    assert smaller(smaller(tiny)) == smaller(tiny)
    large = Settings(decoder=decoder, parameters={one.name: one.most for one in parameters}, seed=3)
    less = smaller(large)
    assert (less.decoder, less.seed) == (decoder, 3)
    assert all(one.least <= less.parameters[one.name] <= 2 or one.default is True for one in parameters)
    assert smaller(less).decoder == "autoregressive"


def test_a_decoder_that_chooses_by_itself_gives_way_to_few_of_everything_and_then_to_plain_decoding() -> None:
    few = smaller(Settings(decoder="auto", top_k=7))
    assert (few.decoder, few.top_k) == (catalog.DECODERS["auto"].by_hand, 7)
    assert max(few.parameters[name] for name in ("window", "ngram", "guesses")) == 2
    assert smaller(few).decoder == "autoregressive"


def cache_of(service: Service) -> SlabCache:
    runner = service.loaded.runner
    assert isinstance(runner, TreeRunner)
    return runner.cache


class Budget:
    """Lets a cache have so many tokens of memory, old and new slabs of a growth together, as an allocator would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
        self.refused: list[int] = []
        grow = SlabCache._grow

        def grown(cache: SlabCache, capacity: int) -> None:
            if cache.capacity + capacity > tokens:
                self.refused.append(capacity)
                raise RuntimeError(
                    "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried"
                )
            grow(cache, capacity)

        monkeypatch.setattr(SlabCache, "_grow", grown)


@pytest.fixture
def small_service(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Its cache begins with 16 tokens, so that a short text makes it grow."""
    monkeypatch.setattr(kv_cache, "SMALLEST_CAPACITY", 16)
    monkeypatch.setattr(kv_cache, "SMALLEST_GROWTH", 4)
    return service_of(checkpoint)


def test_where_the_cache_cannot_be_doubled_it_grows_by_what_is_needed_and_nobody_notices(
    service: Service, small_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = end_of(ask(service, "the dog", max_new_tokens=20))
    before = cache_of(small_service).capacity
    budget = Budget(monkeypatch, 6 * before - 1)
    answered = end_of(ask(small_service, "the dog", max_new_tokens=20))
    assert budget.refused and budget.refused[0] == 4 * before
    assert (answered.token_ids, answered.reason) == (expected.token_ids, expected.reason)


def test_where_the_cache_cannot_grow_at_all_its_memory_is_given_back_and_the_conversation_goes_on(
    service: Service, small_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written fits as soon as the slabs that it outgrew are no longer there beside the new ones."""
    whole = end_of(ask(service, "the dog", max_new_tokens=20))
    said = said_by(whole)
    expected = end_of(ask(service, "the dog", said, "and", max_new_tokens=20))
    budget = Budget(monkeypatch, 2 * cache_of(small_service).capacity)
    broken = ask(small_service, "the dog", max_new_tokens=20)
    assert failure(broken).code == "out_of_memory" and budget.refused
    assert end_of(broken).token_ids == whole.token_ids[: len(end_of(broken).token_ids)]
    assert (cache_of(small_service).length, cache_of(small_service).capacity) == (0, 0)
    assert all(slab.untyped_storage().nbytes() == 0 for slab in cache_of(small_service)._slabs.values())
    monkeypatch.undo()
    assert end_of(ask(small_service, "the dog", said, "and", max_new_tokens=20)).token_ids == expected.token_ids


def test_nothing_of_a_failed_pass_stays_alive(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error holds the frames that it went through, and with them the activations of a pass."""
    of_pass: list[weakref.ref[torch.Tensor]] = []
    handed_back: list[list[bool]] = []

    def failing(runner: TreeRunner, *layout: object, **options: object) -> torch.Tensor:
        activations = torch.zeros(100)
        of_pass.append(weakref.ref(activations))
        raise torch.OutOfMemoryError("CUDA out of memory.")

    def release_memory(device: torch.device) -> None:
        out_of_memory.release_memory(device)
        handed_back.append([reference() is None for reference in of_pass])

    monkeypatch.setattr(TreeRunner, "_model_pass", failing)
    monkeypatch.setattr("ladechat.model.runners.tree.release_memory", release_memory)
    assert failure(ask(service, "the dog", max_new_tokens=20)).code == "out_of_memory"
    assert handed_back == [[True]]


def test_a_model_with_a_recurrent_state_goes_on_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    service = service_of(save_recurrent(tmp_path))
    expected = end_of(ask(service, "the dog", max_new_tokens=20)).token_ids
    with monkeypatch.context() as patch:
        calls: list[None] = []
        forward = service.loaded.model.forward

        def failing(*inputs: object, **options: object) -> object:
            calls.append(None)
            result = forward(*inputs, **options)
            if len(calls) == 5:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
            return result

        patch.setattr(service.loaded.model, "forward", failing)
        broken = ask(service, "the dog", max_new_tokens=20)
    assert failure(broken).code == "out_of_memory"
    assert end_of(broken).token_ids == expected[: len(end_of(broken).token_ids)] != []
    assert end_of(ask(service, "the dog", max_new_tokens=20)).token_ids == expected


@pytest.mark.parametrize("place", ["weights._reporting", "self_check.check_trees"])
def test_memory_that_is_used_up_while_a_model_loads_ends_the_engine_in_a_sentence(
    checkpoint: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its weights are read, and in the first passes of it, which the engine asks for before it is ready."""

    def failing(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    events: list[Event] = []
    monkeypatch.setattr(f"ladechat.model.loading.{place}", failing)
    monkeypatch.setattr(server, "Inbox", lambda *_: None)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(fileno=lambda: 0))
    monkeypatch.setattr(EventStream, "take_over_stdout", lambda: SimpleNamespace(emit=events.append))
    assert server.serve(EngineOptions(str(checkpoint), "cpu", "float32")) == 1
    failed = failure(events)
    assert (failed.code, failed.fatal, events[-1]) == ("out_of_memory", True, failed)
    assert "--dtype bfloat16" in failed.hint and "conversation" not in failed.hint
