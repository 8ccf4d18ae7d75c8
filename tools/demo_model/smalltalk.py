"""Greetings, questions about the model, thanks, complaints, and plain refusals of what it does not know."""

import tomllib
from pathlib import Path
from random import Random
from typing import Any

from tools.demo_model.dialogue import Exchange, as_typed, vary

with (Path(__file__).parent / "smalltalk.toml").open("rb") as _file:
    _read: dict[str, Any] = tomllib.load(_file)

TALK: list[dict[str, list[str]]] = _read["talk"]
SUBJECTS = tuple(subject.strip() for area in _read["subjects"].values() for subject in area.split(";"))
REFUSAL: dict[str, Any] = _read["refusal"]


def write(rng: Random) -> list[Exchange]:
    """Something polite, or a question that cannot be answered and at most two more about that."""
    if rng.random() < 0.45:
        talk = rng.choice(TALK)
        return [Exchange(as_typed(rng.choice(talk["ask"]), rng), vary(rng.choice(talk["answer"]), rng))]
    if rng.random() < 0.25:
        dialogue = [Exchange(as_typed(rng.choice(REFUSAL["other_ask"]), rng), rng.choice(REFUSAL["other_answer"]))]
    else:
        subject = rng.choice(SUBJECTS)
        question = rng.choice(REFUSAL["ask"]).replace("{s}", subject)
        answer = rng.choice(REFUSAL["answer"]).replace("{s}", _as_you(subject))
        dialogue = [Exchange(as_typed(question[:1].upper() + question[1:], rng), answer)]
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        about = rng.choice(("why", "who"))
        dialogue.append(Exchange(as_typed(rng.choice(REFUSAL[about]), rng), REFUSAL[f"{about}_answer"]))
    return dialogue


def _as_you(subject: str) -> str:
    """A subject as somebody else says it: my dog is your dog."""
    return f"your {subject.removeprefix('my ')}" if subject.startswith("my ") else subject
