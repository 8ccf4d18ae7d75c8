"""The decoders of one model, made when they are first used, with the current settings and random generator."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from msgspec.structs import asdict, replace

from ladechat import catalog, protocol, registry
from ladechat.decoder.drafters.window import WindowDrafter
from ladechat.decoder.layer_skipping_model import LayerSkippingModel, layers_of
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.sampler import Sampler
from ladechat.engine.policy_view import PolicyView, decision_of
from ladechat.engine.sampling import sampling
from ladechat.layer_search import Over, improved, read_skipped
from ladechat.model.trained import Maps
from ladechat.protocol import Configure, Decision, DecoderInfo, PassCost, PolicyChoice, Settings, Value
from ladechat.registry import Shared
from ladechat.tuning.adaptive import AdaptivePolicy
from ladechat.tuning.costs import PassCosts

PLAIN = "autoregressive"
FEW = 2
"""The upper limit of whole-numbered parameters once memory is short."""


class RefusedSettings(ValueError):
    """An unknown decoder, one that this model cannot run, or a parameter out of range, with what to do instead."""


def smaller(settings: Settings) -> Settings:
    """Return settings whose passes take fewer slots: all parameters at most `FEW`, or else plain decoding."""
    info = catalog.DECODERS[settings.decoder]
    by_hand = catalog.DECODERS[info.by_hand or info.name]
    now = catalog.resolved(by_hand.name, settings.parameters)
    few = {one.name: _few(one.least, now[one.name]) for one in by_hand.parameters}
    saved = info.by_hand is not None or few != now
    return replace(settings, decoder=by_hand.name, parameters=few) if saved else replace(settings, decoder=PLAIN)


def _few(least: int, value: Value) -> Value:
    return value if isinstance(value, bool) else min(value, max(least, FEW))


class Decoders:
    """All decoders of one model, and what they have learnt. They live as long as the engine.

    A parameter that the user gave applies to every decoder that has a parameter of that name. `shared` is what has been
    learnt. Random numbers are drawn on `device`; `costs` and `skipped` are the files with the measured costs of passes
    and the layers to skip.

    Raises:
        RefusedSettings: the settings are invalid.
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
        self.shared = Shared(PassCosts(runner, costs), trained=self._maps.by_kind, skipped=known)
        self._view = PolicyView(self.shared.costs.known)
        self._made: dict[str, Decoder] = {}
        self._lens = self._costs = self._rivals = False
        self._given: dict[str, Value] = {}
        self._generator = torch.Generator(device)
        self._sampler: Sampler | None = None
        self.settings = settings
        self.apply(settings)

    def offered(self) -> list[DecoderInfo]:
        """Return the decoders that can run this model."""
        return [info for info in catalog.DECODERS.values() if self._why_unusable(info) is None]

    def apply(self, settings: Settings) -> None:
        """Use these settings from the next step on, also in the answer under way.

        A model that takes one token a pass always uses plain decoding.

        Raises:
            RefusedSettings: the settings are invalid; nothing has changed then.
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
            self._sampler.sampling = sampling(self._generator, self.settings)

    def change(self, change: Configure) -> None:
        """Apply the fields that `change` sets. Parameters that it does not set keep the values that the user gave.

        Only its own parameters are passed on: those in `settings` include defaults, which differ between decoders.

        Raises:
            RefusedSettings: the settings are invalid; nothing has changed then.
        """
        named = {name: value for name, value in asdict(change).items() if value is not None}
        self.apply(replace(self.settings, **{"parameters": {}, **named}))

    def _why_unusable(self, info: DecoderInfo) -> str | None:
        return registry.why_unusable(info, self._runner, self._maps.by_kind, self._maps.missing)

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Use decoders that have learnt nothing, inside the `with` block. After it, the earlier ones are restored."""
        shared, made, sampler = self.shared, self._made, self._sampler
        self.shared, self._made = shared.fresh(), {}
        try:
            yield
        finally:
            self.shared, self._made, self._sampler = shared, made, sampler
            if (name := self.settings.decoder) in made:  # settings may have changed meanwhile
                made[name].configure(self.settings.parameters)
            self.watch(self._lens, self._costs, self._rivals)

    @contextmanager
    def using(self, decoder: str) -> Iterator[None]:
        """Use this decoder, for one answer, inside the `with` block. After it, all settings are restored.

        Raises:
            RefusedSettings: the decoder is unknown, or cannot run this model.
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
        """Return the sampler of an answer. N-grams that the pool already holds count from now on as earlier ones.

        They do not where the last answer, which has the tokens `answer` already, is continued, unless another came in
        between.
        """
        text = [*prompt, *answer]
        if not answer or self._sampler is None or self._sampler.text[: len(text)] != text:
            self.shared.pool.begin_run()
        self._sampler = Sampler(text, sampling(self._generator, self.settings), seed, answered=len(answer))
        return self._sampler

    def chosen(self) -> Decoder:
        """Return the decoder that the settings name. Making `auto` times passes, if their costs are unknown."""
        name = self.settings.decoder
        if name not in self._made:
            self._made[name] = registry.make(name, self._runner, self.shared)
            self._made[name].configure(self.settings.parameters)
            self._made[name].watch(self._lens, self._rivals)
        return self._made[name]

    def watch(self, lens: bool, costs: bool = False, rivals: bool = False) -> None:
        """Turn lens (argmax of pseudo rows at each layer), `pass_costs` and rivals on or off, from the next step on."""
        self._lens, self._costs, self._rivals = lens, costs, rivals
        for decoder in self._made.values():
            decoder.watch(lens, rivals)

    def prepare(self) -> None:
        """Make the decoder now, so that the first answer does not wait for passes to be timed."""
        for _ in self._runner.prefill([0, 0]):
            pass
        self.chosen()

    def search_layers(self, prompt: Sequence[int], over: Over) -> None:
        """Search for better layers to skip, see `ladechat.layer_search.improved`, before the first answer."""
        assert isinstance(self._runner, LayerSkippingModel) and self._skipped is not None
        self.shared.skipped = improved(self._runner, self._runner, prompt, self._skipped, over).skipped

    def pass_costs(self, turn: int) -> protocol.PassCosts | None:
        """Return what passes cost, measured now if it is not known; None if nobody watches, or for a model that takes
        one token a pass.
        """
        if not self._costs or not self._runner.capabilities.tree_attention:
            return None
        self.shared.costs.refresh()
        known = self.shared.costs.known()
        return protocol.PassCosts(turn=turn, costs=[PassCost(slots=size, ms=1000 * known[size]) for size in known])

    @property
    def timed_seconds(self) -> float:
        """Seconds spent so far on passes that were run only to be timed."""
        return self.shared.costs.timed_seconds

    def observe_policy(self) -> Decision | None:
        """Record and return the adaptive policy's decision for the last pass; None with any other policy."""
        policy = self.chosen().policy
        if not isinstance(policy, AdaptivePolicy):
            return None
        self._view.observe(policy.forecast)
        return decision_of(policy.forecast)

    def policy_choice(self, turn: int) -> PolicyChoice | None:
        """Return what the adaptive policy has chosen recently; None while another policy is active."""
        decoder = self.chosen()
        if not isinstance(decoder.policy, AdaptivePolicy):
            return None
        window = any(isinstance(drafter, WindowDrafter) and drafter.width for drafter in decoder.drafters)
        return self._view.choice(turn, window)


def check(decoder: str, parameters: Mapping[str, Value]) -> None:
    """Check a decoder's name and its parameters against the catalog.

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
