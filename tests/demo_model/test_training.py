"""The bundled model's tokenizer, its training data, and a training run that can be interrupted."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from tools.demo_model import tokenizer as tokenizers
from tools.demo_model.conversations import conversations
from tools.demo_model.copying import UNPREDICTABLE, exercises
from tools.demo_model.data import QUESTION_WEIGHT, as_text, batches, weights
from tools.demo_model.tokenizer import ANSWER, ASK, BEGIN, END
from tools.demo_model.train import Phase, Recipe, Training, runs_before

TINY = Recipe(
    steps=6, segment=2, hidden=32, layers=1, heads=2, feed_forward=32, batch_tokens=256, copying_from=2,
    phases=(Phase(0.5, 16, 2), Phase(0.9, 32, 2), Phase(1.0, 128, 2)),
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return tokenizers.train(map(as_text, islice(conversations("test", 4), 400)))


def test_text_comes_back_as_it_was(tokenizer: PreTrainedTokenizerFast) -> None:
    for text in ["def f(x):\n    if x:\n        return 10\n", "Größe  1234 – 漢字 🙂\t.", " a\n\n b "]:
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False).input_ids) == text


def test_numbers_that_one_counts_with_are_tokens(tokenizer: PreTrainedTokenizerFast) -> None:
    assert all(len(tokenizer.tokenize(f" {number}")) == 1 for number in range(1, 201))
    assert len(tokenizer.tokenize(" 1234")) > 1


def test_training_text_is_laid_out_as_the_chat_template_does(tokenizer: PreTrainedTokenizerFast) -> None:
    for conversation in islice(conversations("template", 4), 20):
        messages = [
            message
            for exchange in conversation
            for message in (
                {"role": "user", "content": exchange.question},
                {"role": "assistant", "content": exchange.answer},
            )
        ]
        assert tokenizer.apply_chat_template(messages, tokenize=False) == as_text(conversation)


def test_answers_count_and_questions_hardly(tokenizer: PreTrainedTokenizerFast) -> None:
    row = [7, END, BEGIN, ASK, 8, ANSWER, 9, 10, END, BEGIN, ASK]
    answered = [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]  # what follows these tokens is of the answer, or its end
    expected = [1.0 if one else QUESTION_WEIGHT for one in answered]
    assert weights(torch.tensor([row]))[0].tolist() == pytest.approx(expected)


def test_batches_follow_on_one_another_and_repeat_themselves(tokenizer: PreTrainedTokenizerFast) -> None:
    def first(count: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        return list(islice(batches(tokenizer.backend_tokenizer, "seed", 16, 3, 2), count))

    two, again = first(2), first(2)
    assert all(
        torch.equal(a, b) for one, other in zip(two, again, strict=True) for a, b in zip(one, other, strict=True)
    )
    inputs, targets, _ = two[0]
    assert torch.equal(inputs.flatten()[1:], targets.flatten()[:-1])
    assert two[1][0].flatten()[0] == targets.flatten()[-1]


def test_what_counts_in_an_exercise_occurred_before_it(tokenizer: PreTrainedTokenizerFast) -> None:
    for inputs, targets, counts in islice(exercises(tokenizer.backend_tokenizer, "seed", 256), 20):
        assert inputs.shape == targets.shape == counts.shape == (1, 256)
        assert torch.equal(inputs[0, 1:], targets[0, :-1])
        marks = {END, *tokenizer(" ", add_special_tokens=False).input_ids}
        for place, (target, weight) in enumerate(zip(targets[0].tolist(), counts[0].tolist(), strict=True)):
            assert weight == 1.0 or weight == pytest.approx(UNPREDICTABLE)
            assert weight < 1.0 or target in marks or target in inputs[0, : place + 1].tolist()
        assert 0.2 < (counts == 1.0).float().mean() < 0.9


def trained(
    folder: Path, tokenizer: PreTrainedTokenizerFast, *stops: int, recipe: Recipe = TINY
) -> dict[str, torch.Tensor]:
    """The weights after all steps, in a run that was ended and resumed at these steps."""
    for stop in [*stops, recipe.steps]:
        run = Training(recipe, tokenizer, folder, torch.device("cpu"), compiled=False)
        run.resume()
        run.run(until=stop)
    return run.model.state_dict()


def test_a_run_that_is_resumed_ends_where_one_that_was_not_does(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    straight, resumed = trained(tmp_path / "a", tokenizer), trained(tmp_path / "b", tokenizer, 2, 4)
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


@pytest.mark.full
def test_more_steps_go_on_from_before_the_learning_rate_fell(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    """So a longer run ends where it would have, had it been asked for from the beginning."""
    longer = replace(TINY, steps=12)
    trained(tmp_path / "a", tokenizer)
    further = trained(tmp_path / "a", tokenizer, recipe=longer)
    straight = trained(tmp_path / "b", tokenizer, recipe=longer)
    assert all(torch.equal(straight[name], further[name]) for name in straight)


@pytest.mark.full
def test_a_run_from_a_checkpoint_begins_with_its_weights_and_names_what_was_before(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    trained(tmp_path / "a", tokenizer)
    first = Training(TINY, tokenizer, tmp_path / "a", torch.device("cpu"), compiled=False)
    first.resume()
    first.export(tokenizer, tmp_path / "b" / "start")
    second = Training(replace(TINY, seed=2), tokenizer, tmp_path / "b", torch.device("cpu"), compiled=False)
    second.resume()
    assert second.step == 0
    kept = {name: weight.half() for name, weight in trained(tmp_path / "a", tokenizer).items()}
    assert all(torch.equal(weight.half(), kept[name]) for name, weight in second.model.state_dict().items())
    second.run()
    second.export(tokenizer, tmp_path / "c")
    recipe = json.loads((tmp_path / "c" / "recipe.json").read_text())
    assert (recipe["seed"], recipe["before"]["seed"], recipe["before"]["before"]) == (2, TINY.seed, None)
    losses = [json.loads(line)["step"] for line in (tmp_path / "c" / "losses.jsonl").read_text().splitlines()]
    assert losses == [2, 4, 6, 2, 4, 6]
    assert [runs_before(tmp_path / folder) for folder in ("none", "b/start", "c")] == [0, 1, 2]


@pytest.mark.full
def test_two_processes_that_share_the_batches_stay_alike(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    """The first one saves what both computed: what one process alone comes to, but for rounding."""
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    command = [sys.executable, "-m", "tools.demo_model", "train", str(tmp_path), "--steps", "2", "--processes", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    state = torch.load(tmp_path / "latest.pt", weights_only=True)
    assert state["step"] == 2
    assert all(momentum.abs().max() > 0 for momentum in state["momenta"])  # those of the second process are there too
    alone = Training(replace(Recipe(), steps=2), tokenizer, tmp_path / "alone", torch.device("cpu"), compiled=False)
    alone.run()
    for name, weight in alone.model.state_dict().items():
        assert torch.allclose(state["model"][name], weight, atol=2e-3), name


def test_the_learning_rate_rises_stays_and_falls_to_nothing() -> None:
    recipe = Recipe(steps=1000, warmup_steps=100, decay_share=0.2)
    assert [round(recipe.rate_at(step), 3) for step in (0, 49, 99, 500, 799, 900, 999)] == [
        0.01, 0.5, 1.0, 1.0, 1.0, 0.293, 0.003,
    ]  # fmt: skip
