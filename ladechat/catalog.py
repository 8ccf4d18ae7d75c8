"""The catalog of decoders, as plain data: their names and parameters.

Options, sliders, palette, benchmarks and documentation read it, and the engine announces it in `ready`; the engine
binds each name to its drafters in `ladechat.registry`. So a new decoder is an entry in each, and a drafter.
"""

from collections.abc import Mapping

from ladechat.protocol import DecoderInfo, Parameter, Value
from ladechat.server_address import is_server

BUNDLED = "demo"
"""The name of the model that comes with ladechat."""

FIRST_QUESTION = "How does lookahead decoding work?"
FIRST_QUESTIONS = (FIRST_QUESTION, "What does W do?", "Is lookahead decoding exact?")
"""The questions that users are offered first; the bundled model answers them."""

DECODERS: dict[str, DecoderInfo] = {}
"""All decoders by name, in display order."""

SERVER = DecoderInfo(name="server", label="the server's decoding", help="The server decodes as it was started.")
"""How a model on a server is decoded. It is none of this program's decoders."""


def register(info: DecoderInfo) -> DecoderInfo:
    """Add a decoder to the catalog.

    Raises:
        ValueError: the name is taken.
    """
    if info.name in DECODERS:
        raise ValueError(f"There is a decoder {info.name!r} already.")
    DECODERS[info.name] = info
    return info


def parameters() -> dict[str, Parameter]:
    """Return the parameters of all decoders by name; of a name that several have, the first decoder's parameter."""
    found: dict[str, Parameter] = {}
    for info in DECODERS.values():
        for parameter in info.parameters:
            found.setdefault(parameter.name, parameter)
    return found


def first_decoder(model: str) -> DecoderInfo:
    """Return the default decoder of a model: the bundled model demonstrates lookahead decoding, a server has its own,
    any other model is decoded as fast as possible.
    """
    if is_server(model):
        return SERVER
    return DECODERS["lookahead" if model == BUNDLED else "auto"]


def resolved(decoder: str, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return a value for each parameter of a decoder: the given one, or its default. Other names are ignored."""
    return {one.name: given.get(one.name, one.default) for one in DECODERS[decoder].parameters}


def problem(parameter: Parameter, value: Value) -> str | None:
    """Return why a parameter cannot have this value, as the end of a sentence; None if it can."""
    if isinstance(parameter.default, bool):
        return None if isinstance(value, bool) else f"has to be on or off, not {value}"
    if isinstance(value, bool) or not parameter.least <= value <= parameter.most:
        return f"has to be from {parameter.least} to {parameter.most}, not {value}"
    return None


for _info in (
    DecoderInfo(
        name="auto",
        label="auto",
        help="All drafters together, as many drafts a pass as pay on this machine.",
        by_hand="lookahead",
    ),
    DecoderInfo(
        name="lookahead",
        label="lookahead",
        help="Guess with a Jacobi window and a pool of n-grams, at fixed W, N and G.",
        window=True,
        parameters=[
            Parameter(
                "window",
                "W",
                "W: how many tokens a row of the window has. One more: up to N − 1 more slots in a pass.",
                5,
                1,
                64,
            ),
            Parameter(
                "ngram",
                "N",
                "N: length of an n-gram. The window keeps N − 1 rows, a guess has up to N − 1 tokens. One more: up to "
                "W + G more slots.",
                3,
                2,
                16,
            ),
            Parameter(
                "guesses",
                "G",
                "G: how many guesses of the pool a pass checks. One more: up to N − 1 more slots. 0: none.",
                5,
                0,
                64,
            ),
            Parameter("pool_prompt", "prompt", "N-grams of the prompt enter the pool.", True),
            Parameter("pool_accepted", "text", "N-grams of the accepted text enter the pool.", True),
        ],
    ),
    DecoderInfo(
        name="prompt_lookup",
        label="prompt lookup",
        help="Guess what followed the same words earlier in the text.",
        parameters=[
            Parameter("window", "W", "How many tokens are copied.", 10, 1, 64),
            Parameter("ngram", "N", "One more than the most tokens that have to be the same.", 3, 2, 16),
        ],
    ),
    DecoderInfo(
        name="suffix",
        label="suffix matching",
        help="Guess what followed the longest match in the text and in earlier answers.",
        parameters=[Parameter("nodes", "nodes", "The most drafts a pass tries.", 8, 1, 64)],
    ),
    DecoderInfo(
        name="recycling",
        label="token recycling",
        help="Guess from a table of the likeliest successors of each token, filled by every pass.",
        parameters=[Parameter("nodes", "nodes", "The most drafts a pass tries.", 8, 1, 64)],
    ),
    DecoderInfo(
        name="hidden_transfer",
        label="hidden transfer",
        help="Guess with trained matrices half-way up the model; the upper layers still work on what they guess.",
        parameters=[
            Parameter("nodes", "nodes", "The most drafts a pass tries, likeliest first.", 16, 1, 64),
            Parameter(
                "carriers",
                "carriers",
                "Nobody knows yet which slot will be the last accepted one, so this many make guesses for the next "
                "pass; fewer are faster.",
                64,
                1,
                64,
            ),
        ],
        needs="transfer",
    ),
    DecoderInfo(
        name="medusa",
        label="Medusa",
        help="Guess with trained heads on the state after the last layer.",
        parameters=[Parameter("nodes", "nodes", "The most drafts a pass tries, likeliest first.", 16, 1, 64)],
        needs="medusa",
    ),
    DecoderInfo(
        name="layer_skip",
        label="layer skipping",
        help="Guess with the model itself, some of its layers skipped, a pass for each guess.",
        parameters=[Parameter("nodes", "nodes", "The most drafts a pass tries.", 8, 1, 64)],
        least_layers=2,
    ),
    DecoderInfo(
        name="jacobi",
        label="Jacobi",
        help="Guess W tokens at once and improve them pass by pass, without a pool.",
        window=True,
        parameters=[Parameter("window", "W", "How many tokens are guessed at once.", 5, 1, 64)],
    ),
    DecoderInfo(
        name="autoregressive",
        label="plain decoding",
        help="One token a pass, nothing guessed.",
        tree_attention=False,
    ),
):
    register(_info)
