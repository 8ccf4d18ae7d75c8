"""`ladechat tune` as a whole, on a tiny model."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ladechat import cli
from ladechat.bench import tune as module


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
    ("options", "as_what"), [((), "on cpu, float32"), (("--quantize", "int8"), "on cpu, float32, int8")]
)
def test_costs_and_choices_are_those_of_the_model_as_it_is_asked_for(
    checkpoint: Path, options: tuple[str, ...], as_what: str
) -> None:
    result = tune("--model", checkpoint, *options)
    assert result.exit_code == 0, result.output
    assert f"{as_what} " in result.stdout.replace("\n", " ")
    for part in ("What a pass costs", "tok/s", "Chosen lately: passes of"):
        assert part in result.stdout


def test_what_weights_cannot_be_quantised_to_is_refused() -> None:
    result = tune("--quantize", "int3")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "use --quantize int8 or int4" in result.stderr and result.stderr.count("\n") == 1
