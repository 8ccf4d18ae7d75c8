"""What is told of the memory is what the system, torch and the cache say of it."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from ladechat.model.loading import memory as module
from ladechat.model.loading.memory import device_bytes, memory_use, peak_bytes, resident_bytes
from ladechat.model.loading.self_check import choose_runner
from tests.tiny import SHAPE, random_model, runner_for
from tools.tiny_models import tiny_model

MB = 2**20
TOKEN_BYTES = 4 * 2 * SHAPE["num_hidden_layers"] * SHAPE["num_key_value_heads"] * SHAPE["head_dim"]
"""Keys and values of one token, in float32."""


def test_the_cache_counts_with_all_that_it_has_room_for() -> None:
    runner = runner_for(random_model(0), context_length=4096)
    assert memory_use(runner).cache_bytes == 512 * TOKEN_BYTES
    runner.cache.reserve(1000)
    assert memory_use(runner).cache_bytes == 1024 * TOKEN_BYTES
    runner.save_memory()
    assert memory_use(runner).cache_bytes == 0


def test_a_model_with_a_memory_of_its_own_has_no_cache_that_could_be_measured() -> None:
    assert memory_use(choose_runner(tiny_model("mamba"), 128)).cache_bytes is None


def test_on_a_cpu_it_is_what_the_system_says_of_the_process_and_nothing_of_a_gpu() -> None:
    told = memory_use(runner_for(random_model(0)))
    assert (told.resident_bytes is None) == (told.peak_bytes is not None)
    assert told.device_bytes is None and told.reserved_bytes is None


HELD = f"""
import torch
from pathlib import Path
from ladechat.model.loading.memory import peak_bytes, resident_bytes

before = resident_bytes()
ballast = torch.ones({64 * MB}, dtype=torch.uint8)
print(before, resident_bytes(), peak_bytes())
print(Path("/proc/self/status").read_text())
"""


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells it in two places")
def test_what_is_held_now_is_what_linux_also_says_in_words_and_grows_with_what_is_written() -> None:
    # In a process of its own: what earlier tests left in this one may be freed in between.
    told = subprocess.run([sys.executable, "-c", HELD], check=True, capture_output=True, text=True).stdout
    figures, words = told.split("\n", 1)
    before, now, peak = (int(figure) for figure in figures.split())
    in_words = re.search(r"^VmRSS:\s*(\d+) kB", words, re.MULTILINE)
    assert in_words is not None
    assert 60 * MB < now - before < 80 * MB
    assert now == pytest.approx(1024 * int(in_words[1]), rel=0.05)
    assert peak > 0.9 * now


@pytest.mark.parametrize("content", [None, "", "one two"])
def test_where_the_system_does_not_tell_the_most_so_far_is_told_instead(
    tmp_path: Path, content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    if content is not None:
        (tmp_path / "proc/self/statm").write_text(content)
    assert resident_bytes(tmp_path) is None
    monkeypatch.setattr(module, "resident_bytes", lambda: None)
    told = memory_use(runner_for(random_model(0)))
    assert told.resident_bytes is None and told.peak_bytes == pytest.approx(peak_bytes(), rel=0.05)


@pytest.mark.parametrize(("platform", "factor"), [("linux", 1024), ("darwin", 1)])
def test_the_most_so_far_is_in_bytes_on_each_system(
    platform: str, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("resource.getrusage", lambda who: SimpleNamespace(ru_maxrss=1000))
    assert peak_bytes() == 1000 * factor


def test_on_a_gpu_it_is_what_torch_says_of_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 10 * device.index + 3)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 10 * device.index + 5)
    assert device_bytes(torch.device("cuda:1")) == (13, 15)
