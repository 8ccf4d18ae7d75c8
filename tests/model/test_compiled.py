"""Compiled passes: the same logits, the same keys and values, the same text; and what happens while there are none."""

import copy
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.verify_mask import causal_layout
from ladechat.model import compiler, eager, kernels
from ladechat.model.cache_probe import probe_cache
from ladechat.model.compiled import (
    FOLDERS_KEPT,
    KERNELS,
    LEAST_SLOTS,
    MOST_SLOTS,
    CompiledPasses,
    SlotPass,
    folder_for,
    library_of,
)
from ladechat.model.eager import EagerRunner
from tests.model.layouts import check_slots_against_plain_passes, random_layout
from tests.tiny import DEMO, SHAPE, VOCABULARY, plain, random_model, run, runner_for, tokens_of

HYBRID: dict[str, Any] = {"model_type": "gemma3_text", "sliding_window": 6, "num_hidden_layers": 6}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {"num_key_value_heads": 4},
    "gemma3": HYBRID,
    "gpt2": {"model_type": "gpt2", "n_head": 4, "n_layer": 2},
    "qwen3": {"model_type": "qwen3"},
    "stablelm": {"model_type": "stablelm"},
}


class Uncompiled(CompiledPasses):
    """What would be compiled, run as it is: everything but the compiler, in no time."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(Path("nowhere"), model)
        self._slot_pass = SlotPass(model, list(dict.fromkeys(layer.kind for layer in probe_cache(model))))
        stand_in: Any = self._slot_pass
        self._passes = dict.fromkeys(LEAST_SLOTS, stand_in)
        self.used: set[tuple[int, int]] = set()

    @torch.inference_mode()
    def run(self, least: int, tokens: Tensor, positions: Tensor, masks: list[Tensor], rows: list[Tensor]) -> Tensor:
        slots = tokens.shape[1]
        self.used.add((least, slots))
        assert tokens.shape == positions.shape == (1, slots)
        logits: Tensor = self._slot_pass(tokens, positions, masks, rows)
        return logits


def compiled_runner(model: PreTrainedModel) -> tuple[EagerRunner, Uncompiled]:
    runner, passes = runner_for(model), Uncompiled(model)
    runner.compiled = passes
    return runner, passes


@pytest.mark.parametrize("changes", [{}, HYBRID], ids=["llama", "hybrid"])
@pytest.mark.parametrize("seed", range(4))
def test_each_slot_has_the_logits_of_a_plain_pass_over_what_it_sees(seed: int, changes: dict[str, Any]) -> None:
    dice = random.Random(seed)
    model = random_model(seed, **changes)
    runner, passes = compiled_runner(model)
    for _ in runner.prefill([dice.randrange(VOCABULARY) for _ in range(dice.randint(2, 40))]):
        pass
    layout = random_layout(dice, VOCABULARY)
    check_slots_against_plain_passes(model, runner, layout)
    assert passes.used == {(min(len(layout), 2), len(layout))}


@pytest.mark.parametrize("changes", [{}, HYBRID], ids=["llama", "hybrid"])
def test_lookahead_through_compiled_passes_writes_what_plain_decoding_writes(changes: dict[str, Any]) -> None:
    for seed in range(3):
        model = random_model(seed, **changes)
        prompt = [random.Random(seed).randrange(3, VOCABULARY) for _ in range(12)]
        runner, passes = compiled_runner(model)
        steps = run(LookaheadDecoder(runner, LookaheadSettings(3, 3, 3)), prompt, 40)
        assert tokens_of(steps) == plain(model, prompt, 40)
        assert {least for least, _ in passes.used} == {2}


def test_each_pass_runs_what_it_is_for_and_the_largest_run_as_the_model_does() -> None:
    runner, passes = compiled_runner(random_model(1))
    assert list(runner.prefill([5, 6, 7]))
    for slots in (1, 2, 3, MOST_SLOTS, MOST_SLOTS + 1):
        runner.forward(causal_layout([5] * slots))
        runner.keep([])
    assert passes.used == {(1, 1), (2, 2), (2, 3), (2, MOST_SLOTS)}


def test_where_nothing_is_compiled_the_model_runs_as_it_is(tmp_path: Path) -> None:
    model = random_model(1)
    runner = runner_for(model)
    runner.compiled = CompiledPasses(tmp_path / "none", model)
    runner.compiled.look()
    assert not (tmp_path / "none").exists()
    assert runner.compiled.sizes == []
    assert tokens_of(run(LookaheadDecoder(runner), [5, 6, 7], 20)) == plain(model, [5, 6, 7], 20)


def test_each_model_and_number_of_threads_has_a_folder_of_its_own() -> None:
    threads = torch.get_num_threads()
    first = folder_for(random_model(1))
    assert first not in (folder_for(random_model(2)), folder_for(random_model(1, rms_norm_eps=1e-3)))
    assert first == folder_for(random_model(1))
    torch.set_num_threads(threads + 1)
    try:
        assert first != folder_for(random_model(1))
    finally:
        torch.set_num_threads(threads)


def test_one_weight_that_has_changed_makes_it_another_model() -> None:
    model = copy.deepcopy(random_model(1))
    before = folder_for(model)
    with torch.no_grad():
        next(model.parameters())[0, 0] += 1
    assert folder_for(model) != before


def test_what_is_no_library_is_left_alone_and_the_text_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = random_model(1)
    for file in (tmp_path / KERNELS, *(library_of(tmp_path, least) for least in LEAST_SLOTS)):
        file.write_bytes(b"broken off")
    runner = runner_for(model)
    runner.compiled = CompiledPasses(tmp_path, model)
    runner.compiled.look()
    assert runner.compiled.sizes == []
    assert "is not used" in caplog.text
    caplog.clear()
    runner.compiled.look()
    assert not caplog.text
    assert tokens_of(run(LookaheadDecoder(runner), [5, 6, 7], 20)) == plain(model, [5, 6, 7], 20)


def test_a_pass_that_fails_is_done_by_the_model_itself_and_not_tried_again(tmp_path: Path) -> None:
    class Failing:
        asked = 0

        def run(self, inputs: list[Tensor]) -> list[Tensor]:
            self.asked += 1
            raise RuntimeError("API call failed")

    failing: Any = Failing()
    model = random_model(1)
    runner = runner_for(model)
    runner.compiled = CompiledPasses(tmp_path, model)
    runner.compiled._passes[1] = failing
    assert tokens_of(run(AutoregressiveDecoder(runner), [5, 6, 7], 20)) == plain(model, [5, 6, 7], 20)
    assert failing.asked == 1 and runner.compiled.sizes == []


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", sys.executable)
    (tmp_path / "file").touch()
    assert compiler.start(DEMO, tmp_path / "file" / "passes", torch.float32) is None


def test_only_small_models_that_keep_their_angles_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runner_for(random_model(1)).compilable
    stretched = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    config = AutoConfig.for_model("llama", **{**SHAPE, "rope_parameters": stretched})
    assert not runner_for(AutoModelForCausalLM.from_config(config)).compilable
    monkeypatch.setattr(eager, "MOST_PARAMETERS", 1000)
    assert not runner_for(random_model(1)).compilable


def test_nothing_is_started_without_a_compiler_or_when_all_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "passes"
    assert compiler.start(DEMO, folder, torch.float32) is None
    assert not folder.exists()
    monkeypatch.setenv("CXX", sys.executable)
    folder.mkdir()
    for least in LEAST_SLOTS:
        library_of(folder, least).touch()
    (folder / KERNELS).touch()
    assert compiler.start(DEMO, folder, torch.float32) is None


def test_what_is_missing_or_broken_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_library", None)
    for least in LEAST_SLOTS:
        library_of(tmp_path, least).touch()
        assert not compiler._done(tmp_path, least)  # without kernels it is of no use
    (tmp_path / KERNELS).write_bytes(b"broken off")
    assert compiler._done(tmp_path, 1)
    CompiledPasses(tmp_path, random_model(1)).look()
    assert not compiler._done(tmp_path, 1)


def test_the_folders_that_were_used_last_stay(tmp_path: Path) -> None:
    for age in range(FOLDERS_KEPT + 2):
        (tmp_path / str(age)).mkdir()
        os.utime(tmp_path / str(age), (1e9 - age, 1e9 - age))
    (tmp_path / "a file").touch()
    compiler._make_room(tmp_path / str(FOLDERS_KEPT))
    kept = [str(FOLDERS_KEPT), *map(str, range(FOLDERS_KEPT - 1)), "a file"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


# --- with a compiler -------------------------------------------------------------------------------------------------


@pytest.fixture
def a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)


def compile_one(model: PreTrainedModel, least: int, folder: Path) -> CompiledPasses:
    """A pass, compiled by the program that engines start."""
    model.save_pretrained(folder / "checkpoint")
    into = folder_for(model)
    (into / compiler.WORK).mkdir(parents=True)
    what = [folder / "checkpoint", into, "float32", torch.get_num_threads(), least]
    command = [sys.executable, "-m", "ladechat.model.compiler", *map(str, what)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    with process:
        assert process.stdin and process.stderr
        errors = process.stderr.read().decode()
    assert process.returncode == 0, errors
    passes = CompiledPasses(into, model)
    passes.look()
    assert least in passes.sizes, errors
    assert not (into / compiler.WORK).exists()
    return passes


def check_a_compiled_pass(model: PreTrainedModel, least: int, folder: Path) -> None:
    """Logits, and what enters the cache, at several lengths of it, beside the same without a compiler."""
    passes = compile_one(model, least, folder)
    dice = random.Random(0)
    for cached in (1, 7, 200, 250):
        ours, theirs = runner_for(model, 512), runner_for(model, 512)
        ours.compiled = passes
        text = [dice.randrange(VOCABULARY) for _ in range(cached + 1)]
        for runner in (ours, theirs):
            assert list(runner.prefill(text))
        for _ in range(4):  # passes, each of which reads what those before it have written
            layout = causal_layout([dice.randrange(VOCABULARY)]) if least == 1 else random_layout(dice, VOCABULARY)
            torch.testing.assert_close(ours.forward(layout), theirs.forward(layout), atol=1e-4, rtol=1e-4)
            ours.keep(range(len(layout)))
            theirs.keep(range(len(layout)))
    assert least in passes.sizes


@pytest.mark.usefixtures("a_compiler")
def test_a_compiled_pass_computes_what_the_model_computes(tmp_path: Path) -> None:
    check_a_compiled_pass(random_model(1, num_hidden_layers=1), 2, tmp_path)


@pytest.mark.full
@pytest.mark.usefixtures("a_compiler")
@pytest.mark.parametrize("least", LEAST_SLOTS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_compiled_passes_of_several_architectures(architecture: str, least: int, tmp_path: Path) -> None:
    check_a_compiled_pass(random_model(2, **ARCHITECTURES[architecture]), least, tmp_path)


def test_a_pass_that_is_wrong_or_slow_is_not_taken() -> None:
    model = random_model(1)
    slot_pass = SlotPass(model, ["full_attention"])

    class Stand:
        def __init__(self, seconds: float = 0.0, blind: bool = False) -> None:
            self._seconds, self._blind = seconds, blind

        def run(self, inputs: list[Tensor]) -> list[Tensor]:
            tokens, positions, mask, *rows = inputs
            time.sleep(self._seconds)
            return [slot_pass(tokens, positions, [mask | self._blind], rows)]

    compiler._compare(slot_pass, Stand(), (1, 3))
    with pytest.raises(ArithmeticError, match="differs"):
        compiler._compare(slot_pass, Stand(blind=True), (1,))
    with pytest.raises(ArithmeticError, match="slower"):
        compiler._race(slot_pass, Stand(seconds=1.0), 1)


@pytest.mark.full  # at the lowest priority it begins late beside other tests
@pytest.mark.usefixtures("a_compiler")
def test_the_compiler_ends_with_the_engine_that_started_it(tmp_path: Path) -> None:
    process = compiler.start(DEMO, tmp_path / "passes", torch.float32)
    assert process is not None and process.stdin is not None
    while not (tmp_path / "passes" / "lock").exists():  # it is at work
        assert process.poll() is None
        time.sleep(0.05)
    process.stdin.close()
    assert process.wait(30) == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert not any(library_of(tmp_path / "passes", slots).exists() for slots in LEAST_SLOTS)
