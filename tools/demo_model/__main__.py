"""Makes the bundled model. In order: `train` (with its tokenizer), `export`.

Then `python -m tools.demo_model.evaluation.examine` and `… .transcripts` show what came out.
"""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tools.demo_model.train import Recipe

app = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True)

Work = Annotated[Path, typer.Argument(help="Folder for the tokenizer, the states and the losses of a training run.")]
Seed = Annotated[int | None, typer.Option(help="Of the weights and of the conversations.")]
Steps = Annotated[int | None, typer.Option(help="How many; without it, as many as the recipe of the bundled model.")]
TOKENIZER_CONVERSATIONS = 20_000


@app.command()
def corpus(count: int = 10, seed: str = "look", stretches: int = 6) -> None:
    """Print conversations of the corpus."""
    from tools.demo_model.conversations import conversations

    for conversation in islice(conversations(seed, stretches), count):
        for exchange in conversation:
            print(f"> {exchange.question}\n{exchange.answer}\n")
        print("─" * 60)


@app.command()
def train(
    work: Work,
    steps: Steps = None,
    seed: Seed = None,
    start: Annotated[Path | None, typer.Option(help="A checkpoint to go on from, instead of from scratch.")] = None,
    device: str = "cpu",
    compiled: bool = False,
    processes: int = 1,
) -> None:
    """Train the tokenizer, if the folder has none, and the model, from where an earlier run ended.

    On a CPU, `--compiled --processes` as many as there are cores is fastest. A run that goes on from a checkpoint has
    its tokenizer, and reads other conversations.
    """
    import multiprocessing
    import shutil

    from transformers import PreTrainedTokenizerFast

    from tools.demo_model import tokenizer
    from tools.demo_model.conversations import conversations
    from tools.demo_model.data import as_text
    from tools.demo_model.train import START, run_process

    if start is not None and not (work / START).exists():
        shutil.copytree(start, work / START)
        PreTrainedTokenizerFast.from_pretrained(start).save_pretrained(work / "tokenizer")
    if not (work / "tokenizer").exists():
        texts = map(as_text, islice(conversations("tokenizer", 6), TOKENIZER_CONVERSATIONS))
        tokenizer.train(texts).save_pretrained(work / "tokenizer")
    (work / "meeting").unlink(missing_ok=True)
    context = multiprocessing.get_context("spawn")
    arguments = (processes, _recipe(work, steps, seed), work, device, compiled)
    running = [context.Process(target=run_process, args=(rank, *arguments)) for rank in range(processes)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    raise typer.Exit(max(abs(process.exitcode or 0) for process in running))


@app.command()
def export(work: Work, checkpoint: Path, steps: Steps = None, seed: Seed = None) -> None:
    """Write what training has reached as a checkpoint in float16."""
    import torch
    from transformers import PreTrainedTokenizerFast

    from tools.demo_model.train import Training

    tokenizer = PreTrainedTokenizerFast.from_pretrained(work / "tokenizer")
    training = Training(_recipe(work, steps, seed), tokenizer, work, torch.device("cpu"), compiled=False)
    training.resume()
    training.export(tokenizer, checkpoint)


@app.command()
def average(earlier: Path, later: Path, checkpoint: Path) -> None:
    """Write the mean of the weights that two runs ended with, the later of which went on from the earlier one.

    What one run forgot of the other's is often in the mean (Wortsman et al. 2022, "Model soups").
    """
    import json
    import shutil

    from safetensors.torch import load_file, save_file

    shutil.copytree(later, checkpoint)
    one, other = (load_file(folder / "model.safetensors") for folder in (earlier, later))
    mean = {name: ((one[name].float() + other[name].float()) / 2).to(other[name].dtype) for name in other}
    save_file(mean, checkpoint / "model.safetensors", metadata={"format": "pt"})
    recipe = json.loads((later / "recipe.json").read_text(encoding="utf-8"))
    recipe["averaged"] = 2
    (checkpoint / "recipe.json").write_text(json.dumps(recipe, indent=1) + "\n", encoding="utf-8")


def _recipe(work: Path, steps: int | None, seed: int | None) -> "Recipe":
    """The recipe of the next run of a checkpoint, or of the first one, with these values of its own."""
    from tools.demo_model.train import RUNS, START, runs_before

    recipe = RUNS[min(runs_before(work / START), len(RUNS) - 1)]
    return replace(recipe, steps=steps or recipe.steps, seed=recipe.seed if seed is None else seed)


if __name__ == "__main__":
    app()
