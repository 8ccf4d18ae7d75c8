"""What is bundled is what its card, its recipe and its examination say."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from safetensors import safe_open

from tests.tiny import DEMO
from tools.demo_model import card
from tools.demo_model.evaluation import transcripts
from tools.demo_model.train import RUNS


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    checkpoints: dict[str, Any] = json.loads(card.EXAMINATION.read_text(encoding="utf-8"))["checkpoints"]
    return checkpoints


AVERAGED = (6, 9)
"""The numbers of the runs after which the weights are the mean of theirs and of those before, as the card says."""


def test_it_is_small_and_in_half_precision() -> None:
    assert sum(path.stat().st_size for path in DEMO.iterdir()) <= 12_000_000
    with safe_open(DEMO / "model.safetensors", framework="pt") as weights:
        assert {weights.get_slice(name).get_dtype() for name in weights.keys()} == {"F16"}  # noqa: SIM118


def test_its_recipes_are_those_of_the_training_command_and_were_followed_to_the_end() -> None:
    noted = json.loads((DEMO / "recipe.json").read_text(encoding="utf-8"))
    losses = [json.loads(line) for line in (DEMO / "losses.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, run in reversed(list(enumerate(RUNS, 1))):
        assert noted.pop("averaged", 1) == (2 if number in AVERAGED else 1)
        before = noted.pop("before")
        assert noted.pop("step") == run.steps
        assert noted == json.loads(json.dumps(asdict(run)))
        count = run.steps // run.segment
        losses, lines = losses[:-count], losses[-count:]
        assert [line["step"] for line in lines] == list(range(run.segment, run.steps + 1, run.segment))
        assert lines[-1]["rate"] < 0.01
        noted = before
    assert noted is None and losses == []


def test_its_card_is_made_of_what_was_measured() -> None:
    assert (DEMO / "README.md").read_text(encoding="utf-8") == card.card()


def test_the_examination_asked_enough_of_both_checkpoints_in_every_kind(report: dict[str, Any]) -> None:
    for name in (card.BUNDLED, card.FIRST):
        assert report[name]["overall"]["questions"] >= 60
        assert len(report[name]["kinds"]) == 10


def test_the_transcripts_have_every_conversation_and_every_turn() -> None:
    text = transcripts.FILE.read_text(encoding="utf-8")
    talks = transcripts.conversations()
    assert len(talks) == 10
    rest = text
    for number, talk in enumerate(talks, start=1):
        assert len(talk["turns"]) == 4
        for piece in (f"## {number}. {talk['title']}", *(f"> {turn}" for turn in talk["turns"])):
            assert piece in rest, piece
            rest = rest.partition(piece)[2]
