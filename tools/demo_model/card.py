"""The card of the bundled model, from its recipe, losses and examination: no figure on it is written by hand."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import safe_open

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "ladechat" / "demo"
TRAINED = [DEMO / f"{kind}.safetensors" for kind in ("transfer", "medusa")]
EXAMINATION = ROOT / "benchmarks" / "results" / "demo_examination.json"
BUNDLED, FIRST = "ladechat/demo", "tests/reference/checkpoint"


def card() -> str:
    """The text of the card, Markdown."""
    recipe = json.loads((DEMO / "recipe.json").read_text(encoding="utf-8"))
    losses = [json.loads(line) for line in (DEMO / "losses.jsonl").read_text(encoding="utf-8").splitlines()]
    reports = json.loads(EXAMINATION.read_text(encoding="utf-8"))["checkpoints"]
    runs = _runs(recipe)
    steps, tokens = sum(run["step"] for run in runs), sum(run["step"] * run["batch_tokens"] for run in runs)
    hours = _seconds(runs, losses) / 3600
    lengths = [phase["length"] for run in runs for phase in run["phases"]]
    return f"""# The bundled model

A Llama of {_parameters() / 1e6:.1f} million parameters that talks about lookahead decoding and about ladechat,
writes small Python functions, counts, keeps lists, tells short stories and repeats what it is told. It is there so
that ladechat can be tried at once and has something natural to work on. It is no assistant: it knows nothing else,
says so when asked, and at times says wrong things in good English.

## What it was trained on

On a corpus that this project wrote and generates (`tools/demo_model`): a guide to the method and to the app, with
many wordings of each fact; functions in families with varied names; lists, counting, tables, stories, echo and
rewriting, greetings, follow-ups and refusals. Nothing was taken from elsewhere. So it **partly recites**: what it
says of the method are our sentences, put together. What the examination below asks is left out of the corpus, and
so are its names, numbers and subjects. But whoever wrote the corpus had seen the examination's questions and, before
the later runs of training, which of them were answered wrongly and what a reader had found wrong in the conversations
below, and then wrote more of those kinds. That the weights of the last two runs are averaged was decided by the
examination too.

**No noise training**: none of its inputs were replaced to make it predict better from wrong guesses. One sequence
in eight is exercises in copying random tokens, from step {runs[0]["copying_from"]} on until sequences fill the
context, so that it answers with the names that it was given; they teach to repeat a question's words, which guesses
from the prompt gain by. That it recites makes its text easier to guess than a large model's. Read tokens per step
here as what the method does, not as what to expect elsewhere.

## How

{recipe["layers"]} layers of width {recipe["hidden"]}, {recipe["heads"]} heads, a tokenizer of 3,072 byte-level
pieces trained on the corpus, the chat format of Llama 2, a context of 2,048 tokens. {steps:,} steps of
{recipe["batch_tokens"]:,} tokens ({tokens / 1e6:.0f} million in all) in {_as_words(runs)}, with sequences of
{min(lengths)} to {max(lengths):,} tokens; Muon for the matrices, AdamW for the rest; the rate falls to nothing over
{recipe["decay_share"]:.0%} of the steps of a run. The weights are the mean of those that the last two runs ended
with, since the last one had lost some of what the one before could. {hours:.1f} hours on two CPU cores. Loss of the
last run on conversations that no step saw: {losses[-1]["validation"]:.3f} nats a token. `recipe.json` and
`losses.jsonl` have the rest; CONTRIBUTING.md has the commands. Weights are in float16; on a CPU it computes in float32.

## Maps and heads

`transfer.safetensors` and `medusa.safetensors`, {_kilobytes()} kB together, let it draft for itself:
[how](../../docs/hidden-transfer.md). `ladechat train` made them of text that the model wrote. On text that was held
out:

{guesses()}

## How well it does

{_count(reports)} questions in ten kinds, scored by rules (`tools/demo_model/evaluation`) that were written by
somebody who had not seen the corpus, before any answer of this model; they were made stricter once, when the first
checkpoint's answers showed holes in them, and hold for both. S is tokens per step at W 5, N 3, G 5. Beside it, the
first checkpoint that this project had.

{scores(reports)}

[Every answer](../../benchmarks/results/demo_examination.json), ten whole
[conversations](../../docs/demo-model/transcripts.md), and what [an independent
reader](../../docs/demo-model/criticism.md) says of them.
"""


def guesses() -> str:
    """The table of what was trained for it."""
    lines = [
        "| file | steps | its first guess of the token after the next is right | one of its eight |",
        "|---|---|---|---|",
    ]
    for path in TRAINED:
        with safe_open(path, framework="pt") as file:
            about = file.metadata()
        ranks = json.loads(about["chances"])[0]
        lines.append(f"| `{path.name}` | {int(about['steps']):,} | {ranks[0]:.0%} | {sum(ranks):.0%} |")
    return "\n".join(lines)


def _kilobytes() -> int:
    return sum(path.stat().st_size for path in TRAINED) // 1000


def scores(reports: Mapping[str, Any]) -> str:
    """The table of scores and tokens per step, by kind and overall."""
    bundled, first = reports[BUNDLED], reports[FIRST]
    rows = [(kind, bundled["kinds"][kind], first["kinds"][kind]) for kind in bundled["kinds"]]
    rows.append(("**overall**", bundled["overall"], first["overall"]))
    lines = ["| kind | questions | this model | S | first checkpoint | S |", "|---|---|---|---|---|---|"]
    for kind, ours, theirs in rows:
        lines.append(
            f"| {kind} | {ours['questions']} | {ours['score']:.0%} | {ours['tokens_per_step']:.2f} "
            f"| {theirs['score']:.0%} | {theirs['tokens_per_step']:.2f} |"
        )
    return "\n".join(lines)


def _count(reports: Mapping[str, Any]) -> int:
    return int(reports[BUNDLED]["overall"]["questions"])


def _parameters() -> int:
    """How many numbers the weights are."""
    with safe_open(DEMO / "model.safetensors", framework="pt") as weights:
        return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118  # no dict


def _runs(recipe: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The recipes of all runs that led to these weights, the first one first."""
    earlier = [] if recipe["before"] is None else _runs(recipe["before"])
    return [*earlier, recipe]


def _as_words(runs: Sequence[Mapping[str, Any]]) -> str:
    """How many runs, and how long each was."""
    if len(runs) == 1:
        return "one run"
    return f"{len(runs)} runs, one after the other (" + ", then ".join(f"{run['step']:,}" for run in runs) + ")"


def _seconds(runs: Sequence[Mapping[str, Any]], losses: Sequence[Mapping[str, Any]]) -> float:
    """What all steps took. Each line of the losses closes a segment of steps."""
    segments = [run["segment"] * run["batch_tokens"] for run in runs for _ in range(run["step"] // run["segment"])]
    return float(sum(tokens / line["tokens_per_second"] for tokens, line in zip(segments, losses, strict=True)))


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    (DEMO / "README.md").write_text(card(), encoding="utf-8")
