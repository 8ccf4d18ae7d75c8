"""Lookahead decoding with one choice made in another way: how many steps the same texts take. See docs/experiments.md.

Run as `python -m benchmarks.variants`; it takes some minutes. Counts of steps do not depend on the machine.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from ladechat.decoder.drafters import ngram_pool, pool
from ladechat.decoder.drafters.drafter import PassResult
from ladechat.decoder.drafters.window import WindowDrafter
from ladechat.decoder.jacobi import JacobiWindow
from ladechat.decoder.step import Limits
from ladechat.model.loading.self_check import choose_runner
from ladechat.registry import lookahead

REFERENCE = Path(__file__).parent.parent / "tests" / "reference"
SETTINGS = ((5, 3, 5), (7, 5, 7), (10, 5, 10), (15, 5, 15))
"""W, N and G."""


@contextmanager
def context_of(tokens: int) -> Iterator[None]:
    """The pool matches at most so many of the last tokens."""
    with ExitStack() as stack:
        for module in (pool, ngram_pool):
            stack.enter_context(patch.object(module, "LONGEST_CONTEXT", tokens))
        yield


def whole_columns(window: JacobiWindow, fresh: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The n-grams of N tokens alone."""
    yield from reversed(list(zip(*window.rows, fresh, strict=True)))


def moved_on(observe: Callable[..., Any]) -> Callable[..., Any]:
    """The window moves on by as many tokens as were emitted."""

    def observed(drafter: Any, outcome: PassResult, slots: Sequence[int]) -> Any:
        view = observe(drafter, outcome, slots)
        for row in drafter._window.rows if drafter._window else ():
            del row[: len(outcome.tokens) - 1]
            while len(row) < drafter.width:
                row.append(drafter._filler())
        if drafter._window:
            drafter._window.rows[0][0] = outcome.tokens[-1]
        return view

    return observed


VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ladechat": (ExitStack(), {}),
    "only whole columns enter the pool": (patch.object(JacobiWindow, "ngrams", whole_columns), {}),
    "the pool matches the last token alone": (context_of(1), {}),
    "the window moves on by as many as were emitted": (
        patch.object(WindowDrafter, "observe", moved_on(WindowDrafter.observe)),
        {},
    ),
    "without n-grams of the prompt": (ExitStack(), {"pool_prompt": False}),
    "without n-grams of the accepted text": (ExitStack(), {"pool_accepted": False}),
    "n-grams of the window alone": (ExitStack(), {"pool_prompt": False, "pool_accepted": False}),
}
"""What is replaced, and options of `lookahead`."""


def steps(
    model: PreTrainedModel, prompts: list[dict[str, Any]], settings: tuple[int, int, int], options: dict[str, Any]
) -> int:
    """How many steps all answers take, with an empty pool at each.

    Raises:
        AssertionError: a text is not that of plain decoding.
    """
    runner, count = choose_runner(model, model.config.max_position_embeddings), 0
    for prompt in prompts:
        decoder = lookahead(runner, *settings, **options)
        found = list(decoder.run(prompt["prompt_ids"], Limits(len(prompt["greedy_ids"]))))
        assert [token for step in found for token in step.tokens] == prompt["greedy_ids"]
        count += len(found)
    return count


def main() -> None:
    """Print the table, a row at a time."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    torch.set_num_threads(1)
    reference = json.loads((REFERENCE / "reference.json").read_text(encoding="utf-8"))
    model = AutoModelForCausalLM.from_pretrained(REFERENCE / "checkpoint", dtype=torch.float32).eval()
    print("| W, N, G |", " | ".join(", ".join(map(str, one)) for one in SETTINGS), "|")
    print("|---" * (1 + len(SETTINGS)) + "|")
    for name, (replaced, options) in VARIANTS.items():
        with replaced:
            counts = [steps(model, reference["prompts"], one, options) for one in SETTINGS]
        print(f"| {name} |", " | ".join(map(str, counts)), "|", flush=True)
    print("| the authors' implementation |", " | ".join(map(str, reference["total"]["reference_steps"].values())), "|")


if __name__ == "__main__":
    main()
