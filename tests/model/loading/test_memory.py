"""Whether a model fits is known before it is loaded, from numbers that are right."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig

from ladechat.model.checkpoint.files import LoadError, in_words
from ladechat.model.load import load
from ladechat.model.loading import needed_memory
from ladechat.model.loading.memory import free_main_memory
from ladechat.model.loading.needed_memory import check_memory, useful_cache_bytes, weight_bytes
from ladechat.model.runners.tree import TreeRunner
from tests.llama2 import CONFIG, save_checkpoint
from tests.model.loading.llama import loaded
from tests.model.refusals import assert_refused
from tests.tiny import random_model

GB = 10**9
CPU = torch.device("cpu")


def headed(text: str) -> bytes:
    """A file of safetensors that begins with this header."""
    return len(text).to_bytes(8, "little") + text.encode()


DAMAGED = [
    headed("[" * 100_000),
    headed('{"a":' * 100_000),
    *(
        headed(json.dumps({"weight": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}))
        for shape, offsets in [
            ("abc", [0, 4]),
            (["a"], [0, 4]),
            ([[1]], [0, 4]),
            ([-1], [0, 4]),
            ([10**400], [0, 4]),
            (3, [0, 4]),
            ([1], [0]),
            ([1], ["a", "b"]),
            ([1], [0, 10**400]),
        ]
    ),
]
"""Headers that no tensor can have."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In float16, as Llama 2 is."""
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), max_shard_size="50KB")


def machine(monkeypatch: pytest.MonkeyPatch, **free: int) -> None:
    """Let this much memory be free on each kind of device."""
    monkeypatch.setattr(needed_memory, "free_memory", lambda device: free[device.type])


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 4), (torch.float16, 2), (torch.float64, 8)])
def test_weights_are_counted_in_the_type_that_they_are_converted_to(
    checkpoint: Path, dtype: torch.dtype, size: int
) -> None:
    parameters = loaded(checkpoint).parameters
    total, converted = weight_bytes(checkpoint, dtype)
    assert total == size * parameters
    assert converted == (0 if dtype == torch.float16 else total)


def test_packed_weights_are_counted_as_they_are(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "packed": {"dtype": "I32", "shape": [10], "data_offsets": [0, 40]},
        "scales": {"dtype": "F16", "shape": [5], "data_offsets": [40, 50]},
    }
    text = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(50))
    assert weight_bytes(tmp_path, torch.float32) == (40 + 5 * 4, 5 * 4)


UNREADABLE = [b"", b"junk that is no header", b"\xff" * 64, headed("[1,]"), *DAMAGED]


@pytest.mark.parametrize("content", UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_cannot_be_read_counts_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert weight_bytes(tmp_path, torch.float32) == (0, 0)


@pytest.mark.parametrize("model_type", ["llama", "qwen3", "gemma2"])
def test_the_cache_is_counted_as_it_is_allocated(model_type: str) -> None:
    model = random_model(0, model_type)
    runner = TreeRunner(model, context_length=512)
    allocated = sum(slab.numel() * slab.element_size() for slab in runner.cache._slabs.values())
    assert runner.cache.capacity == 512
    assert useful_cache_bytes(model.config, 512, torch.float32) == allocated


def test_of_a_long_context_a_usual_conversation_is_counted() -> None:
    config = AutoConfig.for_model("llama", num_hidden_layers=32, num_attention_heads=32, hidden_size=4096)
    assert useful_cache_bytes(config, 131_072, torch.float16) == 2 * 32 * 4096 * 2 * 2048


@pytest.mark.parametrize(
    ("device", "dtype", "free", "tries"),
    [
        ("cpu", torch.float32, {"cpu": 800_000}, "--dtype bfloat16"),
        ("cpu", torch.bfloat16, {"cpu": 400_000}, "a smaller or a quantised model"),
        ("cuda", torch.float16, {"cuda": 400_000, "cpu": GB}, "--device cpu"),
        ("mps", torch.float16, {"mps": 400_000, "cpu": GB}, "--device cpu"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_with_both_numbers_and_ways_out(
    checkpoint: Path,
    device: str,
    dtype: torch.dtype,
    free: dict[str, int],
    tries: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine(monkeypatch, **free)
    weights, _ = weight_bytes(checkpoint, dtype)
    error = assert_refused(
        lambda: check_memory(checkpoint, "the model", torch.device(device), dtype, cache_bytes=100_000),
        "out_of_memory",
        f"the model needs {in_words(weights + 100_000)}",
    )
    assert f"{in_words(free[device])} free" in str(error) and tries in error.hint
    assert ("--device cpu" in error.hint) == (device != "cpu")


def test_a_model_that_fits_just_so_is_let_pass(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, _ = weight_bytes(checkpoint, torch.float32)
    machine(monkeypatch, cpu=weights + 7)
    check_memory(checkpoint, "the model", CPU, torch.float32, cache_bytes=7)
    machine(monkeypatch, cpu=weights + 6)
    with pytest.raises(LoadError):
        check_memory(checkpoint, "the model", CPU, torch.float32, cache_bytes=7)


def test_a_conversion_on_the_way_to_a_gpu_needs_main_memory_and_none_is_none(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, cuda=GB, cpu=1000)
    cuda = torch.device("cuda")
    check_memory(checkpoint, "the model", cuda, torch.float16, cache_bytes=0)
    assert_refused(
        lambda: check_memory(checkpoint, "the model", cuda, torch.bfloat16, cache_bytes=0),
        "out_of_memory",
        "of main memory, and 1.0 kB are free",
    )


def test_weights_that_are_unpacked_are_counted_by_their_number(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, cpu=GB)
    unpacked = {"cache_bytes": 0, "unpacked_parameters": GB}
    assert_refused(
        lambda: check_memory(checkpoint, "the model", CPU, torch.float32, **unpacked), "out_of_memory", "needs 4.0 GB"
    )


def test_a_checkpoint_that_does_not_fit_is_refused_before_a_weight_is_read(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, cpu=10_000)
    stages: list[str] = []
    error = assert_refused(
        lambda: load(checkpoint, "the model", "cpu", "auto", stages.append, lambda _: None),
        "out_of_memory",
        "10.0 kB free",
    )
    assert stages == []
    layers, width = CONFIG["num_hidden_layers"], CONFIG["hidden_size"]
    assert f"cache {in_words(2048 * 2 * layers * width * 4)}" in str(error)


# --- what is free ----------------------------------------------------------------------------------------------------


MEMINFO = "MemTotal:  16000000 kB\nMemFree:  1000000 kB\nMemAvailable:  8000000 kB\n"
GROUPS: dict[str, tuple[dict[str, str], int]] = {
    "what Linux calls available": ({}, 8_000_000 * 1024),
    "what the limit of a container leaves, but for caches of files": (
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "4000000000\n",
            "sys/fs/cgroup/memory.current": "3000000000\n",
            "sys/fs/cgroup/memory.stat": "anon 1000000000\nactive_file 9\ninactive_file 2000000000\n",
        },
        3_000_000_000,
    ),
    "the narrowest of the groups around a process": (
        {
            "proc/self/cgroup": "0::/user.slice/job\n",
            "sys/fs/cgroup/user.slice/job/memory.max": "max\n",
            "sys/fs/cgroup/user.slice/job/memory.current": "500\n",
            "sys/fs/cgroup/user.slice/memory.max": "2000000000\n",
            "sys/fs/cgroup/user.slice/memory.current": "500000000\n",
        },
        1_500_000_000,
    ),
    "control groups of version 1": (
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "3000000000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000000000\n",
            "sys/fs/cgroup/memory/memory.stat": "cache 1\ntotal_inactive_file 500000000\n",
        },
        2_500_000_000,
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_what_is_free_is_what_the_system_and_the_groups_of_a_process_leave(case: str, tmp_path: Path) -> None:
    files, free = GROUPS[case]
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert free_main_memory(tmp_path) == free


def test_where_the_system_does_not_say_no_more_than_the_machine_has_is_free(tmp_path: Path) -> None:
    whole = free_main_memory(tmp_path)
    here = free_main_memory()
    assert whole is not None and here is not None and 0 < here <= whole
