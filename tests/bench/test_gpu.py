"""The benchmark for GPUs, without one: that it runs to its end, that its comparisons hold, and what it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import gpu
from benchmarks.gpu_texts import beside
from benchmarks.gpu_ways import Plan


def test_without_a_gpu_there_is_nothing_to_measure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main([]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "no CUDA device" in said.err and not said.out


@pytest.mark.full
def test_a_check_runs_everything_on_a_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--check", "--json", str(tmp_path / "gpu.json")]) == 0
    report = json.loads((tmp_path / "gpu.json").read_text())
    assert len(report["targets"]) == 4
    texts = report["texts"]
    assert len(texts) == 7 and {one["tokens"] for one in texts.values()} == {24}
    assert all(one["required"] and one["parts_at"] is None for one in texts.values())
    assert not report["decoding"]["refused"]
    assert report["changes"]["recordings"] and report["decoding"]["lookahead_tokens_per_step"] >= 1
    assert {one["slots"] for one in report["passes"] if "slots" in one} == {1, 8, 120}
    assert all(report["kernels"].values()) and set(report["seconds"]) > {"passes", "decoding"}
    assert report["repeating"]["lookahead"]["tokens_per_step"] > 1
    out = capsys.readouterr().out
    assert out.count("\nmet: ") + out.count("\nmissed: ") == 4


def test_another_text_is_told_and_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"one": beside([1, 2, 3], [1, 2, 3]), "two": beside([1, 2, 3], [1, 5, 3])}
    texts["three"] = beside([1], [2], required=False)
    assert [one["parts_at"] for one in texts.values()] == [None, 1, 0]
    monkeypatch.setattr(gpu, "measure", lambda *_: {"texts": texts, "targets": {}})
    assert gpu.main(["--check"]) == 1
    assert capsys.readouterr().err == "The texts differ: two.\n"


def test_a_target_is_met_or_missed() -> None:
    report = {
        "passes": [{"way": "graph", "slots": slots, "cached": 512, "ms": [ms]} for slots, ms in ((1, 4.0), (120, 4.4))],
        "decoding": {
            "tokens_per_second": {"plain, graph": [250.0, 240.0, 260.0]},
            "plain_graph_to": {
                "transformers, eager": [6.0, 5.0, 7.0],
                "transformers, static and compiled": [1.2, 1.1, 1.3],
            },
        },
    }
    plan = Plan({}, torch.device("cpu"), torch.float32)
    found = gpu.targets(report, 0.0034, plan)
    assert [target["met"] for target in found.values()] == [True, True, True, False]
    assert [target["is"] for target in found.values()] == [0.85, 1.1, 6.0, 1.2]
    assert not gpu.targets(report, 0.003, plan)["plain decoding, part of the floor"]["met"]


@pytest.mark.full
def test_all_parts_of_the_script_for_a_card_run_on_a_cpu(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "tools" / "on_a_card.sh"
    told = subprocess.run(
        [script, "check", tmp_path], env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert re.findall(r"^== (\w+): done", told.stdout, re.MULTILINE) == [
        "large",
        "exact",
        "auto",
        "small",
        "ask",
    ]
    methods = json.loads((tmp_path / "exact.json").read_text())["methods"]
    assert all(one["overall"]["exact"] for one in methods.values())
