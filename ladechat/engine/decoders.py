"""The decoders of one model, made when they are first used, with the settings and the dice that hold."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from msgspec.structs import asdict, replace

from ladechat import catalog, registry
from ladechat.decoder.drafters.window import WindowDrafter
from ladechat.decoder.layer_skipping_model import LayerSkippingModel, layers_of
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.sampler import Sampler, Sampling
from ladechat.engine.policy_view import PolicyView, decision_of
from ladechat.engine.sampling import sampling
from ladechat.layer_search import Over, improved, read_skipped
from ladechat.model.loading.trained_maps import Maps
from ladechat.protocol import Configure, Decision, DecoderInfo, PolicyChoice, Settings, Value
from ladechat.registry import Shared
from ladechat.tuning.adaptive import AdaptivePolicy
from ladechat.tuning.costs import PassCosts

PLAIN = "autoregressive"
FEW = 2
"""What whole-numbered parameters are brought down to when memory is short."""


class RefusedSettings(ValueError):
    """A decoder that there is not, or not for this model, or a parameter out of its range: what, and what would do."""


def smaller(settings: Settings) -> Settings:
    """Settings whose passes take fewer slots: few of everything, or from there on, plain decoding."""
    info = catalog.DECODERS[settings.decoder]
    by_hand = catalog.DECODERS[info.by_hand or info.name]
    now = catalog.resolved(by_hand.name, settings.parameters)
    few = {one.name: _few(one.least, now[one.name]) for one in by_hand.parameters}
    saved = info.by_hand is not None or few != now
    return replace(settings, decoder=by_hand.name, parameters=few) if saved else replace(settings, decoder=PLAIN)


def _few(least: int, value: Value) -> Value:
    return value if isinstance(value, bool) else min(value, max(least, FEW))


class Decoders:
    """They live as long as the engine does, and with them what they have learnt.

    A parameter that was given counts for every decoder that has one of that name.

    Args:
        runner: the model's.
        device: where random numbers are drawn.
        settings: what they begin with.
        costs: the file that the costs of passes are kept in.
        maps: what was trained for the model; by default nothing.
        skipped: the file that the layers to skip are kept in.

    Raises:
        RefusedSettings: there are no such settings.
    """

    def __init__(
        self,
        runner: Runner,
        device: torch.device,
        settings: Settings,
        costs: Path | None = None,
        maps: Maps | None = None,
        skipped: Path | None = None,
    ) -> None:
        self._runner = runner
        self._maps = maps or Maps()
        self._skipped = skipped
        known = None if skipped is None else read_skipped(skipped, layers_of(runner))
        self._shared = Shared(PassCosts(runner, costs), trained=self._maps.by_kind, skipped=known)
        self.pool = self._shared.pool
        self._view = PolicyView(self._shared.costs.known)
        self._made: dict[str, Decoder] = {}
        self._lens = False
        self._given: dict[str, Value] = {}
        self._generator = torch.Generator(device)
        self._sampler: Sampler | None = None
        self.settings = settings
        self.apply(settings)

    def offered(self) -> list[DecoderInfo]:
        """Those that this model can be run with."""
        return [info for info in catalog.DECODERS.values() if self._why_unusable(info) is None]

    def apply(self, settings: Settings) -> None:
        """Use these settings from the next step on, of a text that is being written too.

        A model that takes one token a pass is decoded plainly, whatever decoder they name.

        Raises:
            RefusedSettings: there are no such settings; nothing has changed then.
        """
        check(settings.decoder, settings.parameters)
        name = settings.decoder if self._runner.capabilities.tree_attention else PLAIN
        info = catalog.DECODERS[name]
        if (why := self._why_unusable(info)) is not None:
            raise RefusedSettings(f"{info.label} cannot be used with this model: {why.removesuffix('.')}")
        self._given.update(settings.parameters)
        self.settings = replace(settings, decoder=name, parameters=catalog.resolved(name, self._given))
        if name in self._made:
            self._made[name].configure(self.settings.parameters)
        if self._sampler is not None:
            self._sampler.sampling = self._sampling()

    def change(self, change: Configure) -> None:
        """Use the settings with what a change names, and no other parameters: those that were given before are known.

        Those of `settings` have defaults among them, and another decoder has defaults of its own.

        Raises:
            RefusedSettings: there are no such settings; nothing has changed then.
        """
        named = {name: value for name, value in asdict(change).items() if value is not None}
        self.apply(replace(self.settings, **{"parameters": {}, **named}))

    def _why_unusable(self, info: DecoderInfo) -> str | None:
        return registry.why_unusable(info, self._runner, self._maps.by_kind, self._maps.missing)

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Decoders that have learnt nothing from any text. Behind it, those from before are back as they were."""
        shared, made, sampler = self._shared, self._made, self._sampler
        self._shared, self._made = Shared(shared.costs, trained=shared.trained, skipped=shared.skipped), {}
        try:
            yield
        finally:
            self._shared, self._made, self._sampler = shared, made, sampler
            if (name := self.settings.decoder) in made:  # settings may have changed meanwhile
                made[name].configure(self.settings.parameters)
            self.watch(self._lens)

    @contextmanager
    def using(self, decoder: str) -> Iterator[None]:
        """Settings with this decoder in the place of theirs, for one answer: after it all of them are as they were.

        Raises:
            RefusedSettings: there is no such decoder, or not for this model.
        """
        settings, given = self.settings, dict(self._given)
        self.apply(replace(settings, decoder=decoder, parameters={}))
        try:
            yield
        finally:
            self.settings, self._given = settings, given
            if settings.decoder in self._made:
                self._made[settings.decoder].configure(settings.parameters)

    def begin(self, prompt: list[int], seed: int, answer: Sequence[int] = ()) -> Sampler:
        """What chooses the tokens of an answer. What the pool has learnt before it was learnt earlier.

        That of an answer which goes on was not, unless another one came in between.

        Args:
            prompt: the tokens before the answer.
            seed: of the answer's random numbers.
            answer: the tokens that it has already, where it goes on.
        """
        text = [*prompt, *answer]
        if not answer or self._sampler is None or self._sampler.text[: len(text)] != text:
            self._shared.pool.begin_run()
        self._sampler = Sampler(text, self._sampling(), seed, answered=len(answer))
        return self._sampler

    def chosen(self) -> Decoder:
        """The decoder that the settings name. `auto` times passes when it is made, if nothing is known of them."""
        name = self.settings.decoder
        if name not in self._made:
            self._made[name] = registry.make(name, self._runner, self._shared)
            self._made[name].configure(self.settings.parameters)
            self._made[name].watch(self._lens)
        return self._made[name]

    def watch(self, lens: bool) -> None:
        """Whether somebody looks at what hidden states read at each layer, from the next step on."""
        self._lens = lens
        for decoder in self._made.values():
            decoder.watch(lens)

    def prepare(self) -> None:
        """Make the decoder before there is a text, so that the first answer need not wait for passes to be timed."""
        for _ in self._runner.prefill([0, 0]):
            pass
        self.chosen()

    def search_layers(self, prompt: Sequence[int], over: Over) -> None:
        """Search for better layers to skip, see `ladechat.layer_search.improved`, before the first answer."""
        assert isinstance(self._runner, LayerSkippingModel) and self._skipped is not None
        self._shared.skipped = improved(self._runner, self._runner, prompt, self._skipped, over).skipped

    @property
    def timed_seconds(self) -> float:
        """What passes have taken so far that were run only to be timed."""
        return self._shared.costs.timed_seconds

    def observe_policy(self) -> Decision | None:
        """Take in what the adaptive policy planned for the pass that is over, and return it; None of another policy."""
        policy = self.chosen().policy
        if not isinstance(policy, AdaptivePolicy):
            return None
        self._view.observe(policy.forecast)
        return decision_of(policy.forecast)

    def policy_choice(self, turn: int) -> PolicyChoice | None:
        """Return what the adaptive policy has chosen lately; None while another one is in force."""
        decoder = self.chosen()
        if not isinstance(decoder.policy, AdaptivePolicy):
            return None
        window = any(isinstance(drafter, WindowDrafter) and drafter.width for drafter in decoder.drafters)
        return self._view.choice(turn, window)

    def _sampling(self) -> Sampling:
        now = self.settings
        return sampling(self._generator, now.temperature, now.top_k, now.top_p, now.min_p, now.repetition_penalty)


def check(decoder: str, parameters: Mapping[str, Value]) -> None:
    """Refuse what no decoder of the catalog has.

    Raises:
        RefusedSettings: an unknown decoder, or a value out of its range.
    """
    if decoder not in catalog.DECODERS:
        raise RefusedSettings(f"there is no decoder {decoder!r}; there are {', '.join(catalog.DECODERS)}")
    known = catalog.parameters() | {one.name: one for one in catalog.DECODERS[decoder].parameters}
    for name, value in parameters.items():
        wrong = catalog.problem(known[name], value) if name in known else "is unknown"
        if wrong is not None:
            raise RefusedSettings(f"the parameter {name!r} {wrong}")
