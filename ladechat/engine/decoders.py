"""The decoders of one model, and how they draw, as the settings say."""

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
from ladechat.protocol import DecoderName, Settings


class Decoders:
    """They live as long as the engine does, and with them the n-gram pool.

    W, N and G mean to each decoder what comes nearest: Jacobi decoding works on W tokens ahead; prompt lookup drafts W
    tokens from where the last N − 1 or fewer stood before.
    """

    def __init__(self, runner: Runner, device: torch.device, settings: Settings) -> None:
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
        self._costs = PassCosts(runner)
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

    @property
    def follows_costs(self) -> bool:
        """Whether what passes cost decides anything."""
        return self.chosen() is self._tuned

    def measure(self) -> None:
        """Find out what passes cost, if that decides anything. The cache must hold a text."""
        if self.follows_costs:
            self._costs.refresh()

    def chosen(self) -> Decoder:
        """The decoder that the settings name."""
        if self.settings.auto and self.settings.decoder == "lookahead":
            return self._tuned
        return self._by_name[self.settings.decoder]


def _sampling(settings: Settings) -> dict[str, Any]:
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    return {name: getattr(settings, name) for name in names}
