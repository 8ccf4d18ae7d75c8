"""Whether passes of a GGUF file are exact: what its trial finds, and what is made of that."""

import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
from gguf import GGMLQuantizationType as Kind

from ladechat.model import load_packed
from ladechat.model.llama_cpp import cost_of_exactness
from ladechat.model.llama_cpp.context import Context
from ladechat.model.llama_cpp.exactness import Exactness, compare
from ladechat.model.llama_cpp.model import PackedModel
from ladechat.model.llama_cpp.trial import AUTO, EXACT, Trial, run_trial
from tests.model.test_packed_files import loaded, of_bytes
from tests.packed import opened, tiny_file


@pytest.mark.parametrize(
    ("passes", "cost", "slots", "notice"),
    [
        ("auto", 1.0, 3, None),
        ("auto", 1.09, 3, None),
        ("auto", 1.27, 64, r"not run exactly.* 1\.27 times as fast.* --passes exact"),
        ("exact", 9.0, 3, None),
        ("fast", 1.0, 64, r"by up to 0\.25.* near ties"),
    ],
)
def test_passes_are_exact_and_split_for_that_unless_it_is_dear_or_fast_ones_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: str, cost: float, slots: int, notice: str | None
) -> None:
    monkeypatch.setattr(load_packed, "run_trial", lambda *_, **__: Trial(slots=3, moved=0.25, cost=cost))
    opened_as: list[bool] = []

    class Opened(PackedModel):
        def __init__(self, path: Path, repacked: bool, *others: Any) -> None:
            opened_as.append(repacked)
            super().__init__(path, repacked, *others)

    monkeypatch.setattr(load_packed, "PackedModel", Opened)
    model = loaded(of_bytes(tmp_path), passes=passes)
    assert vars(model.runner)["_slots"] == slots and opened_as == [notice is not None]
    assert str(model.quantization).endswith(", exact" if notice is None else ", not exact")
    assert len(model.notices) == (notice is not None)
    assert notice is None or re.search(notice, model.notices[0])


@pytest.mark.parametrize(
    ("took", "cost"),
    [([2.0, 2.0], 1.0), ([2.6, 2.0, 2.5, 2.0], 1.25), ([9.0, 2.0, 2.1, 2.0], 1.05)],
    ids=["as fast", "dear", "a disturbance"],
)
def test_exactness_is_given_up_only_where_it_was_dear_at_each_look(
    monkeypatch: pytest.MonkeyPatch, took: list[float], cost: float
) -> None:
    """The seconds of exact passes, of fast ones, of exact ones again …"""
    path, left = tiny_file(0, kind=Kind.Q8_0), list(took)
    for name in ("_plain_and_wide", "_timed"):
        monkeypatch.setattr(cost_of_exactness, name, lambda *_: left.pop(0))
    found = cost_of_exactness.cost_of_exactness(PackedModel(path), Exactness(16), path, threads=1)
    assert found == pytest.approx(cost) and not left


def test_the_trial_of_a_file_says_what_exact_passes_cost() -> None:
    path = tiny_file(0, kind=Kind.Q4_0)
    for way, measured in ((AUTO, True), (EXACT, False)):
        found = run_trial(path, 1, way, gpu=False, quick=True)
        assert found.slots == 16 and found.complete and (found.cost != 1.0) == measured


@pytest.mark.parametrize(
    ("passes", "changes", "expected"),
    [
        ("exact", {}, {1: 0.02, 2: 0.03, 4: 0.05, 5: 0.07, 8: 0.1}),
        ("fast", {}, {}),
        ("exact", {"complete": False}, {}),
        ("exact", {"seconds": {1: 0.0002, 2: 0.0003, 4: 0.0004}}, {}),
    ],
    ids=["split", "not exact", "a quick trial", "timed in no time"],
)
def test_the_times_of_the_trial_are_those_of_exact_passes_and_their_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: str, changes: Any, expected: dict[int, float]
) -> None:
    found = Trial(**{"slots": 4, "seconds": {1: 0.02, 2: 0.03, 4: 0.05}, **changes})
    monkeypatch.setattr(load_packed, "run_trial", lambda *_, **__: found)
    assert loaded(of_bytes(tmp_path), passes=passes).pass_seconds == pytest.approx(expected)


def test_a_file_is_tried_once_and_again_when_it_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tried = of_bytes(tmp_path), list[Any]()

    def tries(*about: Any, **_: Any) -> Trial:
        tried.append(about)
        return Trial(slots=7, moved=0.5)

    monkeypatch.setattr(load_packed, "run_trial", tries)
    for name in ("the first time", "from what was saved"):
        assert loaded(path).notices == (), name
    assert len(tried) == 1
    os.utime(path, (1, 1))
    loaded(path)
    loaded(path, passes="fast")
    assert [way for _, _, way, _ in tried] == ["exact", "exact", "fast"]


def test_what_a_quick_trial_leaves_out_on_a_slow_machine_is_tried_in_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tried = of_bytes(tmp_path), list[bool]()

    def in_this_process(path: Path, threads: int, way: str, gpu: bool, quick: bool) -> Trial:
        tried.append(quick)
        found = compare(opened(path), threads, 0.0 if quick else math.inf)
        return Trial(slots=found.slots, complete=found.complete)

    monkeypatch.setattr(load_packed, "run_trial", in_this_process)
    slots = [vars(loaded(path).runner)["_slots"] for _ in range(3)]
    assert slots == [4, 16, 16] and tried == [True, False]


def test_a_pass_that_moves_logits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = compare(opened(tiny_file(0, kind=Kind.Q8_0)), 1)
    assert (exact.slots, exact.moved, exact.complete) == (16, 0.0, True)
    decode = Context.decode

    def off_from_five_slots_on(self: Any, tokens: Any, *others: Any, **options: Any) -> Any:
        return decode(self, tokens, *others, **options) + (0.5 if len(tokens) > 4 else 0.0)

    monkeypatch.setattr(Context, "decode", off_from_five_slots_on)
    found = compare(opened(tiny_file(0, kind=Kind.Q8_0)), 1)
    assert found.slots == 4 and found.moved == pytest.approx(0.5, abs=1e-3)


def test_a_tree_that_moves_logits_leaves_one_slot_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = Context.decode

    def off_in_trees(self: Any, tokens: Any, places: Any, sequences: Any = None, outputs: bool = True) -> Any:
        return decode(self, tokens, places, sequences, outputs) + (0.5 if sequences is not None else 0.0)

    monkeypatch.setattr(Context, "decode", off_in_trees)
    found = compare(opened(tiny_file(0, kind=Kind.Q8_0)), 1)
    assert found.slots == 1 and found.moved == pytest.approx(0.5, abs=1e-3)
