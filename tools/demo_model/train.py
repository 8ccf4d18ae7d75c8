"""Training of the bundled model from scratch: one command, seeded, resumable at any time.

The learning rate warms up, stays, and falls to zero over most of the steps. Sequences are short at first, which costs
the least, and in the end as long as the model's context. The state before the fall is kept: to train further, ask for
more steps.
"""

import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, distributed
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tools.demo_model.copying import exercises
from tools.demo_model.data import batches
from tools.demo_model.tokenizer import BEGIN, CONTEXT, END, VOCABULARY

LATEST, STEADY, LOSSES, RECIPE = "latest.pt", "steady.pt", "losses.jsonl", "recipe.json"
START = "start"
"""The checkpoint that a run goes on from, in its folder, where it is not from scratch."""

SHORT = 256
"""Up to this many tokens, attention computed in the plain way is faster on a CPU than torch's fused one."""


@dataclass(frozen=True)
class Phase:
    """A part of the training: how long its sequences are, and the most stretches of the conversations in them."""

    until: float
    """The share of all steps at which it ends."""
    length: int
    stretches: int


@dataclass(frozen=True)
class Recipe:
    """All that decides what comes out, besides corpus and tokenizer."""

    seed: int = 1
    steps: int = 5800
    hidden: int = 256
    layers: int = 6
    heads: int = 4
    feed_forward: int = 640
    batch_tokens: int = 4096
    phases: tuple[Phase, ...] = (Phase(0.82, 256, 6), Phase(0.95, 512, 6), Phase(1.0, CONTEXT, 20))
    copying_from: int = 400
    """From this step on, until sequences fill the context, one of a batch in eight is exercises in copying."""
    warmup_steps: int = 100
    decay_share: float = 0.95
    matrix_rate: float = 0.02
    vector_rate: float = 0.003
    segment: int = 200
    """Steps between two saved states. Each segment has its own stretch of the corpus."""

    def rate_at(self, step: int) -> float:
        """The learning rate at a step, as a part of its largest value. It falls fast at first, then slowly."""
        left = (self.steps - step) / (self.decay_share * self.steps)
        falling = 1 - math.sqrt(max(0.0, 1 - left))
        return min(1.0, (step + 1) / self.warmup_steps, falling)

    @property
    def decay_from(self) -> int:
        """The segment boundary from which on the learning rate falls."""
        return int(self.steps * (1 - self.decay_share)) // self.segment * self.segment

    def phase_at(self, step: int) -> Phase:
        """The phase of the segment that a step is in: phases change between segments."""
        begun = step // self.segment * self.segment
        return next(phase for phase in self.phases if begun < phase.until * self.steps)


_LATER = Recipe(
    steps=1400,
    segment=100,
    phases=(Phase(0.78, 256, 6), Phase(0.92, 512, 6), Phase(1.0, CONTEXT, 20)),
    copying_from=0,
    matrix_rate=0.004,
    vector_rate=0.0006,
)
"""A short run that teaches something more to a model that can do most of it."""

# The last runs have their long sequences first: at the end of the others the rate is too low to learn from them.
_LONG_FIRST = (Phase(0.12, CONTEXT, 20), Phase(0.25, 1024, 12), Phase(0.88, 256, 6), Phase(1.0, 512, 8))

RUNS = (
    Recipe(),
    Recipe(seed=2, steps=6600, copying_from=0, matrix_rate=0.01, vector_rate=0.0015),
    replace(_LATER, seed=3, steps=1200, phases=(Phase(0.74, 256, 6), Phase(0.9, 512, 6), Phase(1.0, CONTEXT, 20))),
    replace(_LATER, seed=4),
    replace(_LATER, seed=5, matrix_rate=0.006, vector_rate=0.0009),
    replace(_LATER, seed=6, steps=1600, phases=_LONG_FIRST),
    replace(_LATER, seed=7, steps=1600, phases=_LONG_FIRST),
    replace(_LATER, seed=8, steps=1600, phases=_LONG_FIRST),
    replace(_LATER, seed=9, steps=1400, phases=_LONG_FIRST),
)
"""The runs that made the bundled model, each from the weights of the one before, with other conversations."""


def runs_before(start: Path) -> int:
    """How many runs a checkpoint has seen; none if there is no checkpoint."""
    if not start.exists():
        return 0
    recipe, count = json.loads((start / RECIPE).read_text()), 1
    while (recipe := recipe["before"]) is not None:
        count += 1
    return count


def new_model(recipe: Recipe) -> LlamaForCausalLM:
    """A Llama with random weights."""
    torch.manual_seed(recipe.seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=recipe.hidden,
        intermediate_size=recipe.feed_forward,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=BEGIN,
        eos_token_id=END,
        pad_token_id=END,
    )
    return LlamaForCausalLM(config)


class Training:
    """A run of training in a folder, as far as it has come.

    Args:
        folder: where states and losses are kept.
        device: where it runs. Matrix products are in bfloat16, weights in float32.
        compiled: run the model through torch's compiler: a fifth faster, and needs a C++ compiler.
        rank, ranks: this process and how many there are, if torch.distributed has been set up for several: each takes
            its part of every batch, and of the matrices that Muon has to orthogonalise. On a CPU, two processes of one
            thread are much faster than one of two.
    """

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: PreTrainedTokenizerFast,
        folder: Path,
        device: torch.device,
        compiled: bool,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.recipe, self.folder, self.device, self._rank, self._ranks = recipe, folder, device, rank, ranks
        self._tokenizer = tokenizer.backend_tokenizer
        self.model = new_model(recipe)
        self.model.to(device)  # type: ignore[arg-type]
        self._loss = torch.compile(self._weighted_loss, dynamic=False) if compiled else self._weighted_loss
        inner = list(self.model.model.layers.parameters())
        self._matrices = [one for one in inner if one.ndim == 2]
        vectors = [one for one in inner if one.ndim < 2]
        others = [*vectors, self.model.model.norm.weight, self.model.model.embed_tokens.weight]
        mine = self._matrices[rank::ranks]
        self._muon = torch.optim.Muon(mine, lr=recipe.matrix_rate, momentum=0.95, weight_decay=0.05)
        self._adam = torch.optim.AdamW(others, lr=recipe.vector_rate, betas=(0.9, 0.95), weight_decay=0.0)
        self.step = 0
        folder.mkdir(parents=True, exist_ok=True)

    def resume(self) -> None:
        """Go on where an earlier run ended; from before the fall of the learning rate, if more steps are asked for.

        A run that has not begun yet takes the weights of the checkpoint that it is to go on from, if there is one.
        """
        if (self.folder / START).exists():
            begun = LlamaForCausalLM.from_pretrained(self.folder / START, dtype=torch.float32)
            self.model.load_state_dict(begun.state_dict())
        for name in (LATEST, STEADY):
            if not (self.folder / name).exists():
                continue
            state = torch.load(self.folder / name, map_location=self.device, weights_only=True)
            if state["steps"] == self.recipe.steps or (state["steady"] and state["step"] <= self.recipe.decay_from):
                self.model.load_state_dict(state["model"])
                self._adam.load_state_dict(state["adam"])
                momenta = dict(zip(self._matrices, state["momenta"], strict=True))
                for matrix in self._matrices[self._rank :: self._ranks]:
                    self._muon.state[matrix]["momentum_buffer"] = momenta[matrix]
                self.step = state["step"]
                return

    def _save(self) -> None:
        """Keep the state; every process takes part, and the first one writes."""
        momenta = [
            self._muon.state.get(one, {}).get("momentum_buffer", torch.empty_like(one)) for one in self._matrices
        ]
        self._from_owners(momenta)
        state = {
            "model": self.model.state_dict(),
            "adam": self._adam.state_dict(),
            "momenta": momenta,
            "step": self.step,
            "steps": self.recipe.steps,
            "steady": self.step <= self.recipe.decay_from,
        }
        for name in ((LATEST, STEADY) if state["steady"] else (LATEST,)) if self._rank == 0 else ():
            partial = self.folder / f"{name}.partial"
            torch.save(state, partial)
            partial.replace(self.folder / name)

    def run(self, until: int | None = None) -> None:
        """Train to the last step, or to the end of the segment with step `until`, saving the state after every one."""
        while self.step < (self.recipe.steps if until is None else until):
            self.model.set_attn_implementation(self._attention())
            began, first = time.perf_counter(), self.step
            losses = [self._update(*batch) for batch in self._segment()]
            seconds = time.perf_counter() - began
            self._save()
            if self._rank:
                continue  # the first process speaks for all: they have the same weights
            self._note(
                loss=sum(losses) / len(losses),
                validation=self.validation(),
                rate=self.recipe.rate_at(self.step - 1),
                tokens_per_second=round((self.step - first) * self.recipe.batch_tokens / seconds),
            )

    def _attention(self) -> str:
        """The implementation of attention that is fastest for the sequences of this segment."""
        short = self.recipe.phase_at(self.step).length <= SHORT and self.device.type == "cpu"
        return "eager" if short else "sdpa"

    def _segment(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The batches up to the next state to save."""
        recipe, phase = self.recipe, self.recipe.phase_at(self.step)
        rows = recipe.batch_tokens // phase.length
        copying = rows // 8 if self.step >= recipe.copying_from else 0
        seed = f"{recipe.seed}/{self.step}"
        source = batches(self._tokenizer, seed, phase.length, rows - copying, phase.stretches)
        beside = exercises(self._tokenizer, seed, phase.length)
        for _ in range(min(recipe.segment - self.step % recipe.segment, recipe.steps - self.step)):
            parts = [next(source), *(next(beside) for _ in range(copying))]
            mine = slice(self._rank, None, self._ranks)
            inputs, targets, weights = (torch.cat(column)[mine] for column in zip(*parts, strict=True))
            yield inputs, targets, weights

    def _update(self, inputs: Tensor, targets: Tensor, weights: Tensor) -> float:
        """One step. The weighted loss, in nats a token."""
        rates = ((self._muon, self.recipe.matrix_rate), (self._adam, self.recipe.vector_rate))
        for optimizer, rate in rates:
            optimizer.param_groups[0]["lr"] = rate * self.recipe.rate_at(self.step)
        loss = self._loss(*(one.to(self.device) for one in (inputs, targets, weights)))
        torch.autograd.backward(loss)
        if self._ranks > 1:
            self._average_gradients()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._muon.step()  # type: ignore[no-untyped-call]
        self._adam.step()
        self.model.zero_grad()
        self._from_owners([one.data for one in self._matrices])
        self.step += 1
        return loss.item()

    def _average_gradients(self) -> None:
        """Give every process the mean of all processes' gradients, in one exchange."""
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        flat /= self._ranks
        for gradient, mean in zip(gradients, torch.split(flat, [one.numel() for one in gradients]), strict=True):
            gradient.copy_(mean.view_as(gradient))

    def _from_owners(self, tensors: list[Tensor]) -> None:
        """Copy each of these, one for every matrix, from the process whose Muon has the matrix to all others."""
        for owner in range(self._ranks if self._ranks > 1 else 0):
            part = tensors[owner :: self._ranks]
            flat = torch.cat([one.flatten() for one in part])
            distributed.broadcast(flat, owner)
            for one, theirs in zip(part, torch.split(flat, [one.numel() for one in part]), strict=True):
                one.copy_(theirs.view_as(one))

    def _weighted_loss(self, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16):
            logits = self.model(inputs, use_cache=False).logits
        each = functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none")
        return (each * weights.flatten()).sum() / weights.sum()

    @torch.no_grad()
    def validation(self) -> float:
        """The weighted loss on conversations that no step sees."""
        recipe, phase = self.recipe, self.recipe.phases[0]
        rows = recipe.batch_tokens // phase.length
        source = batches(self._tokenizer, "validation", phase.length, rows, phase.stretches)
        batch = (tuple(one.to(self.device) for one in next(source)) for _ in range(4))
        losses = [self._weighted_loss(*one).item() for one in batch]
        return sum(losses) / len(losses)

    def _note(self, **figures: float) -> None:
        line = json.dumps({"step": self.step, **{name: round(figure, 5) for name, figure in figures.items()}})
        print(line, flush=True)
        with (self.folder / LOSSES).open("a") as file:
            print(line, file=file)

    def export(self, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
        """Write the model as a checkpoint in float16, with its tokenizer, its losses and its recipe."""
        self.model.half().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        before = self.folder / START
        recipe = {**asdict(self.recipe), "step": self.step}
        recipe["before"] = json.loads((before / RECIPE).read_text()) if before.exists() else None
        (folder / RECIPE).write_text(json.dumps(recipe, indent=1) + "\n")
        earlier = (before / LOSSES).read_text() if before.exists() else ""
        (folder / LOSSES).write_text(earlier + (self.folder / LOSSES).read_text())


def run_process(rank: int, ranks: int, recipe: Recipe, work: Path, device: str, compiled: bool) -> None:
    """One process of a training run in the folder `work`, from where an earlier run ended.

    Several processes meet at a file in the folder and have one thread each.
    """
    if ranks > 1:
        torch.set_num_threads(1)
        meeting = (work / "meeting").absolute().as_uri()
        distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(work / "tokenizer")
    training = Training(recipe, tokenizer, work, torch.device(device), compiled, rank, ranks)
    training.resume()
    training.run()
    if ranks > 1:
        distributed.destroy_process_group()
