"""Makes the bundled model. In order: `train` (with its tokenizer), `export`, `examine`, `transcripts`."""

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True)

Work = Annotated[Path, typer.Argument(help="Folder for the tokenizer, the states and the losses of a training run.")]
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
def train(work: Work, steps: int = 6000, device: str = "cpu", compiled: bool = False) -> None:
    """Train the tokenizer, if the folder has none, and the model, from where an earlier run ended."""
    import torch
    from transformers import PreTrainedTokenizerFast

    from tools.demo_model import tokenizer
    from tools.demo_model.conversations import conversations
    from tools.demo_model.data import as_text
    from tools.demo_model.train import Recipe, Training

    kept = work / "tokenizer"
    if not kept.exists():
        texts = map(as_text, islice(conversations("tokenizer", 6), TOKENIZER_CONVERSATIONS))
        tokenizer.train(texts).save_pretrained(kept)
    kept_tokenizer = PreTrainedTokenizerFast.from_pretrained(kept)
    training = Training(Recipe(steps=steps), kept_tokenizer, work, torch.device(device), compiled)
    training.resume()
    training.run()


@app.command()
def export(work: Work, checkpoint: Path, steps: int = 6000) -> None:
    """Write what training has reached as a checkpoint in float16."""
    import torch
    from transformers import PreTrainedTokenizerFast

    from tools.demo_model.train import Recipe, Training

    tokenizer = PreTrainedTokenizerFast.from_pretrained(work / "tokenizer")
    training = Training(Recipe(steps=steps), tokenizer, work, torch.device("cpu"), compiled=False)
    training.resume()
    training.export(tokenizer, checkpoint)


@app.command()
def examine(
    checkpoint: Annotated[list[Path], typer.Option(help="A checkpoint's folder; give several to compare them.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Where scores and all answers go.")] = None,
) -> None:
    """Ask checkpoints the questions of the examination, and show their scores side by side."""
    import json

    from rich.console import Console

    from tools.demo_model.evaluation import examine as examination

    reports = {folder.name: examination.report(examination.examine(folder)) for folder in checkpoint}
    Console().print(examination.table(reports))
    if json_file:
        json_file.write_text(json.dumps(reports, indent=1, ensure_ascii=False) + "\n")


@app.command()
def transcripts(checkpoint: Path, file: Path) -> None:
    """Write what a checkpoint answers in ten conversations."""
    from tools.demo_model.evaluation.transcripts import transcripts

    file.write_text("".join(transcripts(checkpoint)))


if __name__ == "__main__":
    app()
