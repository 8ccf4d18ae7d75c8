"""`ladechat tune` as a whole, on a tiny model."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from rich.console import Console
from typer.testing import CliRunner, Result

from ladechat.bench import tune as module
from ladechat.bench.figures import figures
from ladechat.bench.methods import TimedAnswer
from ladechat.bench.modelled import modelled, show_model
from ladechat.bench.prompts import BenchPrompt
from ladechat.bench.questions import Question
from ladechat.shell import cli
from tests.model.parallel.group import forked_workers
from tests.packed import tiny_file


@pytest.fixture
def few_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "few.toml"
    path.write_text('prompts = ["the pool"]', encoding="utf-8")
    monkeypatch.setattr(module, "QUESTIONS", (str(path),))
    monkeypatch.setattr(module, "MAX_NEW_TOKENS", 6)


def tune(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.app, ["tune", "--device", "cpu", *map(str, arguments)])


@pytest.mark.usefixtures("few_questions")
@pytest.mark.parametrize(
    ("options", "as_what"), [((), "on cpu, float32"), (("--dtype", "bfloat16"), "on cpu, bfloat16")]
)
def test_costs_and_choices_are_those_of_the_model_as_it_is_asked_for(
    checkpoint: Path, options: tuple[str, ...], as_what: str
) -> None:
    result = tune("--model", checkpoint, *options)
    assert result.exit_code == 0, result.output
    assert f"{as_what} " in result.stdout.replace("\n", " ")
    for part in ("What a pass costs", "tok/s", "The last passes that auto chose had", "Lookahead decoding, measured"):
        assert part in result.stdout
    headings = next(line for line in result.stdout.splitlines() if "tok/s" in line).strip("┃ ").split("┃")
    assert len({heading.strip() for heading in headings}) == len(headings) == 6


@pytest.mark.usefixtures("few_questions")
def test_costs_of_several_processes_are_those_of_shared_passes(checkpoint: Path) -> None:
    with forked_workers() as others:
        result = tune("--model", checkpoint, "--lookahead-parallel", "2")
    assert result.exit_code == 0, result.output
    assert len(others) == 1 and "2 × cpu" in result.stdout and "Lookahead decoding, measured" in result.stdout


def test_several_gpus_are_modelled_from_the_costs_of_one() -> None:
    """A pass takes 10 ms and 1 ms a slot, so that of 40 slots takes 50."""
    costs: Any = SimpleNamespace(curve=lambda most: 0.01 + 0.001 * np.arange(1, most + 1))
    rounds = [
        {name: [answered(0.2 if name == "autoregressive" else 0.15)] for name in ("autoregressive", "lookahead 5,3,5")}
    ]
    prompts = [BenchPrompt("chat", "one", [1], (1,) * 9)]
    methods = {name: figures(name, rounds, prompts) for name in rounds[0]}
    one = methods["lookahead 5,3,5"]
    speeds = [modelled(one, (5, 3, 5), costs, gpus) for gpus in (1, 2, 4, 8)]
    assert one.tokens_per_second is not None
    assert 0.9 * one.tokens_per_second < speeds[0] < one.tokens_per_second  # what is exchanged takes time
    assert speeds == sorted(speeds) and speeds[1] > one.tokens_per_second
    console = Console(record=True, width=100)
    show_model(methods, costs, console)
    shown = console.export_text()
    assert "modelled" in shown and "not measured" in shown and f"{speeds[2]:.1f}" in shown


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        ((4.0, 3.0, 2.0), "The best of these here: --decoder lookahead -W 15 -N 5 -G 15."),
        ((2.0, 3.0, 2.5), "No window"),
    ],
)
def test_the_fastest_setting_of_lookahead_decoding_is_named(seconds: tuple[float, ...], says: str) -> None:
    methods = ("autoregressive", "lookahead 5,3,5", "lookahead 15,5,15")
    rounds = [{name: [answered(taken)] for name, taken in zip(methods, seconds, strict=True)}]
    prompts = [BenchPrompt("chat", "one", [1], (1,) * 9)]
    console = Console(record=True, width=100)
    module.show_settings({name: figures(name, rounds, prompts) for name in methods}, console)
    shown = console.export_text()
    assert says in shown and "5, 3, 5" in shown and "plain" in shown


def answered(seconds: float) -> TimedAnswer:
    """Nine tokens in so many seconds."""
    return TimedAnswer(tokens=(1,) * 9, first_tokens=1, passes=4, slots=40, first_seconds=1.0, rest_seconds=seconds)


@pytest.mark.usefixtures("few_questions")
def test_where_passes_take_long_a_result_comes_from_fewer_questions(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "read_questions", lambda _: [Question(kind, kind, ("the pool",)) for kind in "abc"])
    monkeypatch.setattr(module, "SECONDS", 0.0)
    result = tune("--model", checkpoint)
    assert result.exit_code == 0, result.output
    assert "The last passes that auto chose had" in result.stdout and "1 of 3 questions" in result.stdout


def test_questions_of_all_kinds_come_in_turn() -> None:
    asked = [Question(name[0], name, ("?",)) for name in ("a0", "a1", "a2", "b0")]
    assert [one.name for one in module.mixed(asked)] == ["a0", "b0", "a1", "a2"]


@pytest.mark.usefixtures("few_questions")
@pytest.mark.parametrize("option", [("--dtype", "bfloat16"), ()])
def test_what_makes_passes_slower_on_a_cpu_is_said_before_the_model_is_loaded(
    tmp_path: Path, checkpoint: Path, option: tuple[str, ...]
) -> None:
    shutil.copytree(checkpoint, tmp_path / "torn")
    for weights in (tmp_path / "torn").glob("model*.safetensors"):
        weights.write_bytes(b"")
    result = tune("--model", tmp_path / "torn", *option)
    assert result.exit_code == 1
    assert ("on a CPU" in result.stderr and option[-1:] and option[-1] in result.stderr) == bool(option)


@pytest.mark.usefixtures("few_questions")
def test_costs_of_a_gguf_file_are_those_of_the_passes_that_are_asked_for() -> None:
    result = tune("--model", tiny_file(0, kind=Kind.Q8_0), "--passes", "fast")
    assert result.exit_code == 0, result.output
    assert "not exact" in " ".join(result.stdout.split()) and "What a pass costs" in result.stdout
    assert "use --passes auto, exact or fast" in tune("--passes", "slow").stderr


def test_what_weights_cannot_be_quantised_to_is_refused() -> None:
    result = tune("--quantize", "int3")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "use --quantize int8 or int4" in result.stderr and result.stderr.count("\n") == 1
