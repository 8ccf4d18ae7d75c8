"""Asks a checkpoint the questions of the examination and scores the answers by the rules.

Answers are greedy, in float32, decoded by lookahead (W 5, N 3, G 5, the pool empty at each question): the text is that
of plain decoding, and the steps tell how well each kind of text can be guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from transformers import AutoModelForCausalLM, AutoTokenizer

from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.step import Limits
from ladechat.model.eager import EagerRunner
from tools.demo_model.evaluation.questions import Question, questions
from tools.demo_model.evaluation.rules import LIMIT_TOKENS, failures

SETTINGS = LookaheadSettings(5, 3, 5)


@dataclass(frozen=True)
class Reply:
    """One answer: its text, whether it ended by itself, and what it took."""

    text: str
    ended: bool
    tokens: int
    steps: int


class Speaker:
    """A checkpoint that answers. The history keeps its own tokens, as the engine does."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._runner = EagerRunner(model, model.config.max_position_embeddings)
        self._end = int(model.config.eos_token_id)

    def converse(self, turns: Sequence[str]) -> Iterator[Reply]:
        """The answers to the turns of one conversation, each with those before it in view."""
        text: list[int] = []
        for turn in turns:
            text += self._question(turn)
            reply, answer = self._answer(text)
            text += answer
            yield reply

    def _question(self, turn: str) -> list[int]:
        messages = [{"role": "user", "content": turn}]
        laid_out = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids: list[int] = self._tokenizer(laid_out, add_special_tokens=False).input_ids
        return ids

    def _answer(self, text: list[int]) -> tuple[Reply, list[int]]:
        for _ in self._runner.prefill(text):
            pass
        decoder = LookaheadDecoder(self._runner, SETTINGS)
        steps = list(decoder.run(text, Limits(LIMIT_TOKENS, frozenset([self._end]))))
        answer = [token for step in steps for token in step.tokens]
        ended = answer[-1] == self._end
        said = str(self._tokenizer.decode(answer, skip_special_tokens=True))
        return Reply(said.strip(), ended, len(answer), len(steps)), answer


@dataclass(frozen=True)
class Marked:
    """A question, its answers, and what is wrong with the last one."""

    question: Question
    replies: Sequence[Reply]
    wrong: Sequence[str]

    def as_row(self) -> dict[str, Any]:
        return {
            "id": self.question.id,
            "kind": self.question.kind,
            "passed": not self.wrong,
            "wrong": list(self.wrong),
            "turns": [
                {"question": turn, **asdict(reply)}
                for turn, reply in zip(self.question.turns, self.replies, strict=True)
            ],
        }


def examine(folder: Path) -> list[Marked]:
    """All questions, asked and scored."""
    speaker = Speaker(folder)
    return [mark(question, list(speaker.converse(question.turns))) for question in questions()]


def mark(question: Question, replies: Sequence[Reply]) -> Marked:
    """Score the last answer."""
    return Marked(question, replies, failures(question.rules, [reply.text for reply in replies], replies[-1].ended))


def report(marked: Sequence[Marked]) -> dict[str, Any]:
    """Scores and tokens per step, by kind and overall, and every answer."""
    kinds = dict.fromkeys(one.question.kind for one in marked)
    return {
        "overall": summary(marked),
        "kinds": {kind: summary([one for one in marked if one.question.kind == kind]) for kind in kinds},
        "answers": [one.as_row() for one in marked],
    }


def summary(marked: Sequence[Marked]) -> dict[str, Any]:
    """How many passed, and tokens per step over all answers."""
    passed = sum(not one.wrong for one in marked)
    replies = [reply for one in marked for reply in one.replies]
    tokens, steps = sum(reply.tokens for reply in replies), sum(reply.steps for reply in replies)
    return {
        "questions": len(marked),
        "passed": passed,
        "score": round(passed / len(marked), 3),
        "tokens": tokens,
        "steps": steps,
        "tokens_per_step": round(tokens / steps, 3),
    }


def table(reports: Mapping[str, Mapping[str, Any]]) -> Table:
    """Scores and tokens per step of checkpoints, side by side."""
    shown = Table("kind", "questions", *(heading for name in reports for heading in (name, "S")))
    first = next(iter(reports.values()))
    for kind in [*first["kinds"], "overall"]:
        row = [report["overall"] if kind == "overall" else report["kinds"][kind] for report in reports.values()]
        figures = (figure for one in row for figure in (f"{one['score']:.0%}", f"{one['tokens_per_step']:.2f}"))
        shown.add_row(kind, str(row[0]["questions"]), *figures)
    return shown
