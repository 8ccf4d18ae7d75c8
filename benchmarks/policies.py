"""What each choice that lookahead decoding leaves open is worth: steps with it, and steps when it is done otherwise.

Run as `python -m benchmarks.policies [--json FILE]`. Greedy answers, the pool empty at each prompt. Every variant
replaces one function of the decoder, and must write the same tokens, so that steps tell all; the machine's speed does
not matter. The choices were made on questions that the corpus generator of the bundled model asks; beside them stand
the prompts, and the checkpoint, that the method's reference implementation was run on.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.demo_decoding import BUNDLED, END, REFERENCE
from ladechat.bench.machine import describe
from ladechat.decoder import lookahead
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.jacobi import JacobiWindow, Successor
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings, _Generation
from ladechat.decoder.ngram_pool import Guess, Known, Ngram, NGramPool
from ladechat.decoder.step import Limits, Source
from ladechat.model.eager import EagerRunner
from tools.demo_model.conversations import conversations

ROOT = Path(__file__).parent.parent
SETTINGS = [(5, 3, 5), (7, 5, 7), (10, 5, 10), (15, 5, 15)]
QUESTIONS, LONGEST_ANSWER = 40, 96
IMPOSSIBLE = -1
"""No token: a guess that is never accepted."""

_guesses, _going_on, _add_each = NGramPool.guesses, NGramPool._going_on, NGramPool.add_each
_ngrams, _learn = JacobiWindow.ngrams, _Generation.learn


@dataclass(frozen=True)
class Prompt:
    """A prompt, and what plain decoding answers to it."""

    token_ids: list[int]
    answer: list[int]


@dataclass(frozen=True)
class Variant:
    """Another way: settings that differ, and what stands in for a function, as (owner, name, replacement)."""

    settings: Mapping[str, bool] = field(default_factory=dict)
    swaps: Sequence[tuple[Any, str, Callable[..., Any]]] = ()


def _by_last_token(pool: NGramPool, key: int, length: int, limit: int, _: Sequence[int]) -> list[Guess]:
    return _guesses(pool, key, length, limit)


def _counting(pool: NGramPool, ngrams: Iterable[Ngram], source: Source) -> int:
    came = list(ngrams)
    _counts(pool).update(came)
    return _add_each(pool, came, source)


def _most_frequent(pool: NGramPool, tokens: Ngram) -> Iterator[tuple[Ngram, Known]]:
    return iter(sorted(_going_on(pool, tokens), key=lambda one: -_counts(pool)[one[0]]))


def _counts(pool: NGramPool) -> Counter[Ngram]:
    """How often each n-gram came to a pool."""
    counts: Counter[Ngram] = vars(pool).setdefault("counts", Counter())
    return counts


def _whole_columns(window: JacobiWindow, fresh: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return (ngram for ngram in _ngrams(window, fresh) if len(ngram) == window.ngram)


def _by_the_accepted(generation: _Generation, draft: Any, fresh: tuple[int, ...], tokens: Sequence[int]) -> Any:
    """The window moves on by as many tokens as were accepted; from the right come those of the newer row."""
    learnt = _learn(generation, draft, fresh, tokens)
    below: list[int] = []
    for row in reversed(_rows(generation, draft)):
        _move_on(row, len(tokens) - 1, below, generation._successor)
        below = row
    _begin_with(tokens[-1], generation)
    return learnt


def _refilled(generation: _Generation, draft: Any, fresh: tuple[int, ...], tokens: Sequence[int]) -> Any:
    """The window moves on by as many tokens as were accepted; from the right come the pool's successors."""
    learnt = _learn(generation, draft, fresh, tokens)
    for row in _rows(generation, draft):
        _move_on(row, len(tokens) - 1, [], generation._successor)
    _begin_with(tokens[-1], generation)
    return learnt


def _rows(generation: _Generation, draft: Any) -> list[list[int]]:
    """Those of the window, if it took part in the step."""
    return [] if draft.window is None or generation._window is None else generation._window.rows


def _begin_with(token: int, generation: _Generation) -> None:
    if generation._window is not None:
        generation._window.rows[0][0] = token


def _move_on(row: list[int], places: int, below: Sequence[int], successor: Successor) -> None:
    width = len(row)
    del row[: min(places, width - 1)]
    row.extend(below[len(row) - 1 : width - 1])
    while len(row) < width:
        row.append(successor(row[-1]))


def _any_token(generation: _Generation, _: int) -> int:
    return generation._random.choice(generation._text)


def _no_guess(window: JacobiWindow) -> tuple[int, ...]:
    return (IMPOSSIBLE,) * (len(window.rows) - 1)


OURS = "**ladechat**"
VARIANTS = {
    OURS: Variant(),
    "guesses ranked by the last token alone, not the last two": Variant(swaps=[(NGramPool, "guesses", _by_last_token)]),
    "guesses ranked by how often they came, not how lately": Variant(
        swaps=[(NGramPool, "add_each", _counting), (NGramPool, "_going_on", _most_frequent)]
    ),
    "only whole columns enter the pool, not their newer ends": Variant(
        swaps=[(JacobiWindow, "ngrams", _whole_columns)]
    ),
    "the first column is not verified as a guess": Variant(swaps=[(lookahead, "column_guess", _no_guess)]),
    "the window moves on by the number accepted, filled from the row below": Variant(
        swaps=[(_Generation, "learn", _by_the_accepted)]
    ),
    "the window moves on by the number accepted, filled from the pool": Variant(
        swaps=[(_Generation, "learn", _refilled)]
    ),
    "unknown places hold any token of the text, not the pool's successor": Variant(
        swaps=[(_Generation, "_successor", _any_token)]
    ),
    "without n-grams of the prompt": Variant({"pool_prompt": False}),
    "without n-grams of the accepted text": Variant({"pool_accepted": False}),
    "without either: those of the window alone": Variant({"pool_prompt": False, "pool_accepted": False}),
}


def main() -> None:
    """Measure, print the tables, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen_on = _measured(BUNDLED, _asked_by_the_corpus)
    reported_on = _measured(REFERENCE / "checkpoint", _of_the_reference)
    print(table(chosen_on["steps"]), table(reported_on["steps"]), sep="\n\n")
    report = {"machine": describe(), "dtype": "float32", "chosen_on": chosen_on, "reported_on": reported_on}
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _measured(checkpoint: Path, prompts_of: Callable[[EagerRunner, Path], list[Prompt]]) -> dict[str, Any]:
    """Steps of every variant at every W, N, G."""
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    runner = EagerRunner(model, model.config.max_position_embeddings)
    prompts = prompts_of(runner, checkpoint)
    steps: dict[str, dict[str, int]] = {}
    for name, variant in VARIANTS.items():
        steps[name] = {",".join(map(str, wng)): steps_of(runner, prompts, variant, wng) for wng in SETTINGS}
        print(name, steps[name], flush=True)
    tokens = sum(len(prompt.answer) for prompt in prompts)
    about = {"checkpoint": checkpoint.relative_to(ROOT).as_posix(), "prompts": len(prompts), "tokens": tokens}
    return {**about, "steps": steps}


def _asked_by_the_corpus(runner: EagerRunner, checkpoint: Path) -> list[Prompt]:
    """The first questions of conversations that no training has seen, with the model's own answers."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    prompts = []
    for conversation in islice(conversations("policies", 1), QUESTIONS):
        messages = [{"role": "user", "content": conversation[0].question}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False).input_ids
        plain = AutoregressiveDecoder(runner).run(ids, Limits(LONGEST_ANSWER, END))
        prompts.append(Prompt(ids, [token for step in plain for token in step.tokens]))
    return prompts


def _of_the_reference(*_: object) -> list[Prompt]:
    recorded = json.loads((REFERENCE / "reference.json").read_text(encoding="utf-8"))["prompts"]
    return [Prompt(prompt["prompt_ids"], prompt["greedy_ids"]) for prompt in recorded]


def steps_of(runner: EagerRunner, prompts: Sequence[Prompt], variant: Variant, wng: tuple[int, int, int]) -> int:
    """Steps to write all answers.

    Raises:
        AssertionError: a variant has written something else.
    """
    taken = 0
    with ExitStack() as stack:
        for owner, name, replacement in variant.swaps:
            stack.enter_context(patch.object(owner, name, replacement))
        for prompt in prompts:
            decoder = LookaheadDecoder(runner, LookaheadSettings(*wng, **variant.settings))
            steps = list(decoder.run(prompt.token_ids, Limits(len(prompt.answer), END)))
            assert [token for step in steps for token in step.tokens] == prompt.answer
            taken += len(steps)
    return taken


def table(steps: Mapping[str, Mapping[str, int]]) -> str:
    """The figures in Markdown, a variant a line."""
    heads = [wng.replace(",", ", ") for wng in next(iter(steps.values()))]
    lines = [f"| W, N, G | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    lines += [f"| {name} | {' | '.join(map(str, figures.values()))} |" for name, figures in steps.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
