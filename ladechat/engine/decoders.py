"""The decoders of one model, and how they draw, as the settings say."""

from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace

from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.jacobi_only import JacobiDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.prompt_lookup import PromptLookupDecoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Decoder
from ladechat.decoder.tuned import TunedDecoder
from ladechat.model.cost import PassCosts
from ladechat.model.sampling import selection
from ladechat.protocol import DecoderName, Expectation, PassCost, Settings, Tuned

SMALL = {"window": 1, "ngram": 3, "guesses": 1}
"""The most of W, N and G when memory is short: four slots a pass."""


def smaller(settings: Settings) -> Settings:
    """Settings whose passes take fewer slots: hardly a window and one guess, or from there on, plain decoding."""
    if settings.decoder == "autoregressive":
        return settings
    least = {name: min(most, getattr(settings, name)) for name, most in SMALL.items()}
    auto = settings.auto and settings.decoder == "lookahead"
    saved = auto or any(getattr(settings, name) != value for name, value in least.items())
    saving = replace(settings, auto=False, **least)
    return saving if saved else replace(saving, decoder="autoregressive")


class Decoders:
    """They live as long as the engine does, and with them the n-gram pool.

    W, N and G mean to each decoder what comes nearest: Jacobi decoding works on W tokens ahead; prompt lookup drafts W
    tokens from where the last N − 1 or fewer stood before.

    Args:
        runner: the model's.
        device: where random numbers are drawn.
        settings: what they begin with.
        costs: the file that the costs of passes are kept in.
    """

    def __init__(self, runner: Runner, device: torch.device, settings: Settings, costs: Path | None = None) -> None:
        self._runner = runner
        self._lookahead = LookaheadDecoder(runner)
        self.pool = self._lookahead.pool
        self._jacobi = JacobiDecoder(runner)
        self._prompt_lookup = PromptLookupDecoder(runner)
        self._by_name: dict[DecoderName, Decoder] = {
            "lookahead": self._lookahead,
            "prompt_lookup": self._prompt_lookup,
            "jacobi": self._jacobi,
            "autoregressive": AutoregressiveDecoder(runner),
        }
        self._costs = PassCosts(runner, costs)
        self._tuned = TunedDecoder(self._lookahead, self._costs)
        self._plain_only = runner.plain_only is not None
        self._generator = torch.Generator(device)
        self._selector: Selector | None = None
        self.settings = settings
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Use these settings from the next step on, of a text that is being written too.

        A model that can only be decoded plainly is, whatever decoder they name.
        """
        if self._plain_only:
            settings = replace(settings, decoder="autoregressive")
        self.settings = settings
        self._lookahead.settings = LookaheadSettings(
            window=settings.window,
            ngram=settings.ngram,
            guesses=settings.guesses,
            pool_prompt=settings.pool_prompt,
            pool_accepted=settings.pool_accepted,
        )
        self._jacobi.block = settings.window
        self._prompt_lookup.length, self._prompt_lookup.match = settings.window, settings.ngram - 1
        if self._selector is not None:
            self._selector.selection = selection(self._generator, **_sampling(settings))

    def begin(self, prompt: list[int], seed: int) -> Selector:
        """What chooses the tokens of a new text. What the pool has learnt before it was learnt earlier."""
        self.pool.begin_run()
        self._generator.manual_seed(seed)
        self._selector = Selector(prompt, selection(self._generator, **_sampling(self.settings)))
        return self._selector

    def measure(self) -> None:
        """Find out what passes cost, if that decides anything. The cache must hold a text."""
        if self.chosen() is self._tuned and self._costs.refresh():
            self._tuned.tuner.forget_times()

    def measure_at_rest(self) -> None:
        """The same before there is a text, so that the first answer need not wait for it."""
        if self.chosen() is self._tuned:
            for _ in self._runner.prefill([0, 0]):
                pass
            self._costs.refresh()

    @property
    def timed_seconds(self) -> float:
        """What passes have taken so far that `auto` only wanted to time."""
        return self._costs.timed_seconds

    def chosen_by_auto(self) -> LookaheadSettings | None:
        """What `auto` has taken; None while it is not in force, or knows nothing yet."""
        in_force = self.chosen() is self._tuned and self._costs.measured
        return self._tuned.tuner.settings if in_force else None

    def tuning(self, turn: int) -> Tuned:
        """What `auto` has taken, and why."""
        tuner = self._tuned.tuner
        return Tuned(
            turn=turn,
            window=tuner.settings.window,
            ngram=tuner.settings.ngram,
            guesses=tuner.settings.guesses,
            exploring=tuner.exploring,
            expectations=[
                Expectation(
                    window=one.settings.window,
                    ngram=one.settings.ngram,
                    guesses=one.settings.guesses,
                    slots=round(one.slots, 2),
                    tokens_per_step=round(one.tokens_per_step, 3),
                    tokens_per_second=float(f"{one.rate:.4g}"),
                    known=one.known,
                )
                for one in tuner.estimates()
            ],
            costs=[
                PassCost(slots=slots, ms=round(1000 * seconds, 3)) for slots, seconds in self._costs.known().items()
            ],
        )

    def chosen(self) -> Decoder:
        """The decoder that the settings name."""
        if self.settings.auto and self.settings.decoder == "lookahead":
            return self._tuned
        return self._by_name[self.settings.decoder]


def _sampling(settings: Settings) -> dict[str, Any]:
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    return {name: getattr(settings, name) for name in names}
