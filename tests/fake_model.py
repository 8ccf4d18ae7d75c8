"""What a `FakeEngine` says of the model that it does not have."""

import msgspec

from ladechat import catalog, protocol
from ladechat.protocol import Settings


def memory(cache_bytes: int) -> protocol.Memory:
    """As of an engine on a CPU, with a cache of this size."""
    return protocol.Memory(
        resident_bytes=610_000_000 + cache_bytes,
        peak_bytes=None,
        device_bytes=None,
        reserved_bytes=None,
        cache_bytes=cache_bytes,
    )


POLICY_CHOICE = protocol.PolicyChoice(
    turn=0,
    slots=9.0,
    tokens=2.1,
    window=False,
    costs=[
        protocol.PassCost(slots=slots, ms=ms) for slots, ms in [(1, 9.5), (4, 10.4), (8, 12.9), (16, 19.0), (64, 57.0)]
    ],
    expected=[
        protocol.ExpectedTokens(slots=slots, tokens=tokens)
        for slots, tokens in [(1, 1.0), (2, 1.4), (4, 1.75), (8, 2.05), (16, 2.25), (32, 2.35)]
    ],
)
"""As of a machine on which a pass of nine slots costs 1.4 plain ones."""
DECISION = protocol.Decision(why="pays", tokens=2.4, cost=2.1)
"""Of each pass of `auto`."""


TRAINED = [
    protocol.TrainedPart(kind="transfer", layers=[2, 2, 2], width=96, right=[0.69, 0.55, 0.47], steps=500),
    protocol.TrainedPart(kind="medusa", layers=[], width=96, right=[0.52, 0.47, 0.43], steps=500),
]
"""As of maps half-way up four layers, and of heads."""


def resolved(settings: Settings) -> Settings:
    """The settings with a value for each parameter of their decoder."""
    if settings.decoder not in catalog.DECODERS:
        return settings
    parameters = catalog.resolved(settings.decoder, settings.parameters)
    return msgspec.structs.replace(settings, parameters=parameters)


def header(settings: Settings) -> protocol.Header:
    """How its stream begins."""
    return protocol.Header(
        format=protocol.FORMAT,
        version=protocol.VERSION,
        program="fake",
        model="demo",
        tokenizer=None,
        device="cpu",
        dtype="float32",
        settings=resolved(settings),
        seed=None,
        started="2030-01-01T00:00:00+00:00",
    )


def ready(settings: Settings) -> protocol.Ready:
    """What it says when it has loaded."""
    return protocol.Ready(
        model="demo",
        model_type="llama",
        tokenizer="demo",
        parameters=3_000_000,
        layers=4,
        vocabulary=4096,
        context_length=1024,
        device="cpu",
        dtype="float32",
        chat_template="checkpoint",
        eos_ids=[2],
        load_seconds=0.5,
        settings=resolved(settings),
        decoders=list(catalog.DECODERS.values()),
        memory=memory(2_097_152),
        trained=TRAINED,
    )
