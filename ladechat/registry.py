"""The registry of decoders: binds each name of `ladechat.catalog` to its drafters and policy."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ladechat.decoder.drafters.drafter import Drafter
from ladechat.decoder.drafters.hidden_transfer import HiddenTransferDrafter
from ladechat.decoder.drafters.jacobi_block import JacobiBlockDrafter
from ladechat.decoder.drafters.layer_skip import LayerSkipDrafter
from ladechat.decoder.drafters.medusa import MedusaDrafter, MedusaHeads
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.drafters.pool import PoolDrafter
from ladechat.decoder.drafters.prompt_lookup import PromptLookupDrafter
from ladechat.decoder.drafters.recycling import RecyclingDrafter, Successors
from ladechat.decoder.drafters.suffix import SuffixDrafter
from ladechat.decoder.drafters.window import WindowDrafter
from ladechat.decoder.hidden import TransferMaps
from ladechat.decoder.layer_skipping_model import LayerSkippingModel, layers_of
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.tuning.adaptive import MAX_DRAFTS, AdaptivePolicy
from ladechat.tuning.costs import PassCosts
from ladechat.tuning.learning import AcceptanceRates


class TrainedParts(Protocol):
    """Trained maps or heads, as drafters need them."""

    @property
    def maps(self) -> TransferMaps | MedusaHeads:
        """The maps or heads, on the model's device and in its type."""

    @property
    def chances(self) -> Sequence[Sequence[float]]:
        """The acceptance rates, see `ladechat.decoder.drafters.heads.HeadsDrafter`."""


@dataclass
class Shared:
    """The state shared by the decoders of one model, so that one can continue where another stopped.

    Attributes:
        costs: the costs of its passes.
        pool: the n-gram pool.
        answers: earlier answers of the model, the latest last, for suffix matching.
        successors: the tables of token recycling.
        rates: the acceptance rates of `auto`'s drafts.
        trained: maps and heads trained for it, by the kind that a catalog entry needs.
        skipped: the layers that layer skipping skips in drafting; None is its default set.
    """

    costs: PassCosts
    pool: NGramPool = field(default_factory=NGramPool)
    answers: list[Sequence[int]] = field(default_factory=list)
    successors: Successors = field(default_factory=Successors)
    rates: AcceptanceRates = field(default_factory=AcceptanceRates)
    trained: Mapping[str, TrainedParts] = field(default_factory=dict)
    skipped: frozenset[int] | None = None

    def fresh(self) -> "Shared":
        """Return the same without anything learnt from texts."""
        return Shared(self.costs, trained=self.trained, skipped=self.skipped)

    def forget(self) -> None:
        """Forget what was learnt from answers, as far as a warm start would know it."""
        self.answers.clear()
        self.successors.restore(*Successors().tables())
        self.rates.by_kind.clear()


class Requirements(Protocol):
    """A decoder's requirements of a model, see `ladechat.protocol.DecoderInfo`."""

    @property
    def tree_attention(self) -> bool:
        """Whether passes have to take several slots."""

    @property
    def needs(self) -> str | None:
        """The kind of maps or heads that have to be trained; None for none."""

    @property
    def least_layers(self) -> int:
        """The fewest layers that the model must be able to run one by one; 0: it need not run any so."""


def why_unusable(
    decoder: Requirements, runner: Runner, trained: Mapping[str, TrainedParts], missing: Mapping[str, str]
) -> str | None:
    """Return why a model cannot be used with a decoder, as a sentence; None where it can. Maps and heads trained for it
    are given by kind, for other kinds the reason why there are none, as a sentence.
    """
    if decoder.tree_attention and not runner.capabilities.tree_attention:
        return runner.capabilities.single_token
    if decoder.needs is not None and decoder.needs not in trained:
        return missing.get(decoder.needs, "Nothing was trained for it yet.")
    layers, least = layers_of(runner), decoder.least_layers
    if layers < least:
        return runner.capabilities.logits_only or f"At least {least} layers are needed, and it has {layers}."
    return None


Make = Callable[[Runner, Shared], Decoder]
DECODERS: dict[str, Make] = {}


def register(name: str, make: Make) -> None:
    """Bind a name of the catalog to the function that makes its decoder.

    Raises:
        ValueError: it is bound already.
    """
    if name in DECODERS:
        raise ValueError(f"There is a decoder {name!r} already.")
    DECODERS[name] = make


def make(name: str, runner: Runner, shared: Shared | None = None) -> Decoder:
    """Return the decoder of a name of the catalog, with default parameters; `configure` sets others.

    Raises:
        KeyError: there is no such decoder, or the maps or heads that it needs were not trained.
        ValueError: it runs layers one by one, which this model does not support.
    """
    return DECODERS[name](runner, shared or Shared(PassCosts(runner)))


def lookahead(
    runner: Runner,
    window: int = 5,
    ngram: int = 3,
    guesses: int = 5,
    pool: NGramPool | None = None,
    pool_prompt: bool = True,
    pool_accepted: bool = True,
) -> Decoder:
    """Return a decoder for lookahead decoding (Fu et al. 2024, arXiv 2402.02057) with fixed W, N and G. With W = 0,
    without a window, a pass only verifies guesses.

    Raises:
        ValueError: W < 0, N < 2 or G < 0.
    """
    for name, value, least in (("W", window, 0), ("N", ngram, 2), ("G", guesses, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}.")
    pool = NGramPool() if pool is None else pool
    drafters = [WindowDrafter(pool, window, ngram), PoolDrafter(pool, ngram, guesses, pool_prompt, pool_accepted)]
    return Decoder(runner, drafters, name="Lookahead decoding")


AUTO_WINDOW, AUTO_NGRAM, AUTO_GUESSES = 15, 5, 15
"""W, N and G of `auto`; W only where it uses the window."""

RECYCLING_PASSES = 2.0
"""Token recycling does not often bring more than two tokens a pass: drafts for which a pass costs more than so
many plain ones are not worth the time that finding them takes."""


def _auto(runner: Runner, shared: Shared) -> Decoder:
    """Return a decoder with pool, suffix and recycling; with the window where slots are nearly free; with hidden
    transfer and Medusa where maps and heads are trained.
    """
    shared.costs.refresh()
    drafters = [
        WindowDrafter(shared.pool, AUTO_WINDOW if shared.costs.slots_are_nearly_free else 0, AUTO_NGRAM),
        PoolDrafter(shared.pool, AUTO_NGRAM, AUTO_GUESSES),
        SuffixDrafter(MAX_DRAFTS, texts=shared.answers),
        RecyclingDrafter(min(MAX_DRAFTS, shared.costs.slots_within(RECYCLING_PASSES)), shared.successors),
        *_trained_drafters(shared),
    ]
    return Decoder(runner, drafters, AdaptivePolicy(shared.costs, shared.rates), name="Drafting")


def _hidden_transfer(trained: TrainedParts, nodes: int = 16, carriers: int = 64) -> HiddenTransferDrafter:
    assert isinstance(trained.maps, TransferMaps)
    return HiddenTransferDrafter(trained.maps, trained.chances, nodes, carriers)


def _medusa(trained: TrainedParts, nodes: int = 16) -> MedusaDrafter:
    assert isinstance(trained.maps, MedusaHeads)
    return MedusaDrafter(trained.maps, trained.chances, nodes)


def _trained_drafters(shared: Shared) -> Iterator[Drafter]:
    if "transfer" in shared.trained:
        # No limit on carriers: the policy chooses them, and drafts come after a window of any size.
        yield _hidden_transfer(shared.trained["transfer"], MAX_DRAFTS, carriers=sys.maxsize)
    if "medusa" in shared.trained:
        yield _medusa(shared.trained["medusa"], MAX_DRAFTS)


def _layer_skip(runner: Runner, shared: Shared) -> Decoder:
    """Return a decoder for self-speculative decoding, "Draft & Verify" (Zhang et al. 2023, arXiv 2309.08168)."""
    if not isinstance(runner, LayerSkippingModel):
        raise ValueError(runner.capabilities.logits_only)
    return Decoder(runner, [LayerSkipDrafter(runner, shared.skipped)], name="Layer skipping")


register("auto", _auto)
register("lookahead", lambda runner, shared: lookahead(runner, pool=shared.pool))
register("prompt_lookup", lambda runner, _: Decoder(runner, [PromptLookupDrafter()], name="Prompt lookup"))
register(
    "suffix",
    lambda runner, shared: Decoder(runner, [SuffixDrafter(texts=shared.answers)], name="Suffix matching"),
)
register(
    "recycling",
    lambda runner, shared: Decoder(runner, [RecyclingDrafter(successors=shared.successors)], name="Token recycling"),
)
register(
    "hidden_transfer",
    lambda runner, shared: Decoder(runner, [_hidden_transfer(shared.trained["transfer"])], name="Hidden transfer"),
)
register("medusa", lambda runner, shared: Decoder(runner, [_medusa(shared.trained["medusa"])], name="Medusa"))
register("layer_skip", _layer_skip)
register("jacobi", lambda runner, _: Decoder(runner, [JacobiBlockDrafter()], name="Jacobi decoding"))
register("autoregressive", lambda runner, _: Decoder(runner, name="Plain decoding"))
