"""The service of a model: what all its turns work with."""

import secrets
from dataclasses import asdict, dataclass

from ladechat import protocol
from ladechat.engine.chat_format import ChatFormat
from ladechat.engine.decoders import Decoders, smaller
from ladechat.engine.detokenizer import TokenTexts
from ladechat.engine.failures import memory_used_up, passes_made_smaller
from ladechat.engine.plain_cost import PlainStepCost
from ladechat.engine.warm_start import VERSION, WarmStart
from ladechat.model.loaded import LoadedModel, pass_facts
from ladechat.model.loading.memory import memory_use
from ladechat.protocol import Settings
from ladechat.saved_drafts import drafts_file
from ladechat.tuning.saved import saved_file, write_value

SEED_BITS = 32
SEEDS = 2**53
"""Numbers from here on are not exact in every language's JSON."""


@dataclass(frozen=True)
class Service:
    """The objects shared by all turns; they live as long as the model."""

    loaded: LoadedModel
    decoders: Decoders
    chat: ChatFormat
    texts: TokenTexts
    cost: PlainStepCost
    warm_start: WarmStart | None = None

    @classmethod
    def of(cls, loaded: LoadedModel, settings: Settings, warm_start: bool = False) -> "Service":
        """Return the service of a model that has just been loaded.

        With `warm_start`, its drafting begins with what earlier sessions have saved, and saves what it learns.

        Raises:
            RefusedSettings: the settings are invalid.
        """
        facts = pass_facts(loaded)
        costs, skipped = saved_file("costs", **facts), saved_file("skipped", **facts)
        if loaded.pass_seconds and not costs.exists():
            write_value(costs, {"seconds": dict(loaded.pass_seconds)})
        decoders = Decoders(loaded.runner, loaded.runner.device, settings, costs, loaded.maps, skipped)
        drafts = drafts_file(VERSION, facts["weights"], loaded.tokenizer_fingerprint)
        return cls(
            loaded=loaded,
            decoders=decoders,
            chat=ChatFormat(loaded.tokenizer, loaded.eos_ids, loaded.name),
            texts=TokenTexts(loaded.tokenizer),
            cost=PlainStepCost(loaded.runner),
            warm_start=WarmStart(drafts, decoders.shared, loaded.vocabulary) if warm_start else None,
        )

    def memory(self) -> protocol.Memory:
        """Return the engine's present memory use."""
        return protocol.Memory(**asdict(memory_use(self.loaded.runner)))

    def save_memory(self, turn: int | None, *, own_decoder: bool = False) -> list[protocol.Event]:
        """Free the cache and make later passes smaller: a pass has used up the memory. Return the events to report it.

        The settings stay if the answer had a decoder of its own: they are not to blame.
        """
        self.loaded.runner.save_memory()
        if own_decoder:
            return [memory_used_up(turn, fatal=False)]
        self.decoders.apply(smaller(self.decoders.settings))
        settings = self.decoders.settings
        return [passes_made_smaller(settings, turn), protocol.SettingsApplied(settings=settings)]

    def seed(self, turn: int) -> int:
        """Return the seed of an answer: a random one, or one derived from the settings' seed and the turn."""
        begin = self.decoders.settings.seed
        return secrets.randbits(SEED_BITS) if begin is None else (begin + turn - 1) % SEEDS
