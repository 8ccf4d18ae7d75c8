"""The options that several commands share: which engine, and with what settings. Each is declared once, here."""

import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, NoReturn

import msgspec
import typer

from ladechat.protocol import (
    DECODERS,
    GUESSES_RANGE,
    NGRAM_RANGE,
    PENALTY_RANGE,
    TEMPERATURE_RANGE,
    WINDOW_RANGE,
    Settings,
)
from ladechat.session.live import EngineOptions

USAGE_ERROR = 2

Model = Annotated[
    str, typer.Option("--model", "-m", help="A folder, a GGUF file, a hub id, or demo, the bundled model.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps …; auto takes a GPU if there is one.")]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16, float16; auto: what is fast there.")]

Pool = Annotated[str | None, typer.Option(metavar="FILE", help="Keep the n-gram pool in a file, for the next session.")]

PASSES = ("compile", "compiled", "eager")
Passes = Annotated[
    str,
    typer.Option(help="Compile passes (on a CPU those of small models); use what takes no compiler; or stay eager."),
]

TensorParallel = Annotated[
    int, typer.Option("--tensor-parallel", metavar="GPUS", help="Share a model too large for one GPU among several.")
]

QUANTIZATIONS = ("int8", "int4")
Quantize = Annotated[
    str | None,
    typer.Option(metavar="int8|int4", help="Quantise the weights while they are read; int4 needs a CUDA GPU."),
]

PLACES: dict[str, Any] = {
    "model": Model,
    "device": Device,
    "dtype": Dtype,
    "quantize": Quantize,
    "pool": Pool,
    "passes": Passes,
    "tensor_parallel": TensorParallel,
}
"""Which model, where and how it runs, and what it begins with."""

PINNED = ("window", "ngram", "guesses")
"""The settings that `auto` chooses, unless one of them is given."""


def _pinning(option: str, short: str, says: str, default: int) -> Any:
    """An option of one of them. Whether it is given matters, so it has no value where it is not."""
    return Annotated[int | None, typer.Option(option, short, show_default=str(default), help=says)]


SETTINGS: dict[str, Any] = {
    "decoder": Annotated[str, typer.Option(help=f"{', '.join(DECODERS[:-1])} or {DECODERS[-1]}.")],
    "window": _pinning("--window", "-W", "W: how many future positions the window works on.", Settings().window),
    "ngram": _pinning("--ngram", "-N", "N: tokens in an n-gram.", Settings().ngram),
    "guesses": _pinning("--guesses", "-G", "G: how many n-grams a step verifies.", Settings().guesses),
    "auto": Annotated[
        bool | None,
        typer.Option(
            show_default="on, but for the bundled model, or where W, N or G is given",
            help="Let W, N and G follow what they yield here.",
        ),
    ],
    "pool_prompt": Annotated[bool, typer.Option(help="N-grams of the prompt enter the pool.")],
    "pool_accepted": Annotated[bool, typer.Option(help="N-grams of the accepted text enter the pool.")],
    "temperature": Annotated[float, typer.Option("--temperature", "-T", help="0: the likeliest token; else a draw.")],
    "top_k": Annotated[int, typer.Option(help="Draw from so many of the likeliest tokens; 0: from all.")],
    "top_p": Annotated[float, typer.Option("--top-p", "-P", help="Draw from tokens of this probability together.")],
    "min_p": Annotated[float, typer.Option(help="Draw from tokens of this part of the likeliest one's probability.")],
    "repetition_penalty": Annotated[float, typer.Option(help="Above 1, words of the text come again less often.")],
    "seed": Annotated[int | None, typer.Option(help="Where random numbers begin: the same seed, the same answers.")],
}
"""One for each field of `Settings`, by its name."""


def with_engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all these options; they arrive, checked, as its parameter `engine`, an `EngineOptions`."""
    places = {name: getattr(EngineOptions(), name) for name in PLACES}
    defaults = {**msgspec.structs.asdict(Settings()), **dict.fromkeys([*PINNED, "auto"]), **places}
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind)
        for name, kind in {**PLACES, **SETTINGS}.items()
    ]

    @wraps(command)
    def called(**given: Any) -> None:
        places = {name: given.pop(name) for name in PLACES}
        check_passes(places["passes"])
        check_quantize(places["quantize"])
        check_tensor_parallel(places["tensor_parallel"], places["quantize"])
        settings = checked(with_auto({name: given.pop(name) for name in SETTINGS}, places["model"]))
        command(engine=EngineOptions(**places, settings=settings), **given)

    own = [one for one in inspect.signature(command).parameters.values() if one.name != "engine"]
    ordered = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    called.__signature__ = inspect.Signature([*ordered, *shared])  # type: ignore[attr-defined]  # where typer looks
    called.__annotations__ = {one.name: one.annotation for one in [*ordered, *shared]}
    return called


def with_auto(given: dict[str, Any], model: str) -> dict[str, Any]:
    """The options with values of W, N and G, and `auto` on or off.

    It is on unless one of them is given. With the bundled model it is off: that is there to be looked at, and so small
    that on a CPU nothing of the method would pay, and nothing would be seen.
    """
    pinned = any(given[name] is not None for name in PINNED)
    usual = not pinned and given["decoder"] == "lookahead" and model != "demo"
    auto = given["auto"] if given["auto"] is not None else usual
    defaults = msgspec.structs.asdict(Settings())
    return {**given, "auto": auto} | {name: defaults[name] for name in PINNED if given[name] is None}


def checked(given: dict[str, Any]) -> Settings:
    """The settings, or one sentence that says what is wrong with them, and the end of the program."""
    if given["decoder"] not in DECODERS:
        fail(f"There is no decoder {given['decoder']!r}; use --decoder {', '.join(DECODERS[:-1])} or {DECODERS[-1]}.")
    check_w_n_g((given["window"], given["ngram"], given["guesses"]), ("--window", "--ngram", "--guesses"))
    for name, option, value, (least, most) in (
        ("The temperature", "--temperature", given["temperature"], TEMPERATURE_RANGE),
        ("The penalty", "--repetition-penalty", given["repetition_penalty"], PENALTY_RANGE),
    ):
        if not least <= value <= most:
            fail(f"{name} has to be from {least:g} to {most:g}, not {value:g}; set it with {option}.")
    if not 0 < given["top_p"] <= 1:
        fail(f"Top-p has to be above 0 and at most 1, not {given['top_p']:g}; set it with --top-p.")
    if not 0 <= given["min_p"] < 1:
        fail(f"Min-p has to be at least 0 and below 1, not {given['min_p']:g}; set it with --min-p.")
    if given["top_k"] < 0:
        fail(f"Top-k has to be at least 0, not {given['top_k']}; set it with --top-k.")
    try:
        return msgspec.convert(given, Settings)
    except msgspec.ValidationError:
        fail(f"The seed has to be a number from 0 to 2⁵³ − 1, not {given['seed']}; set it with --seed.")


def check_auto(settings: Settings) -> None:
    """Refuse `--auto` with a decoder that it does nothing for."""
    if settings.auto and settings.decoder != "lookahead":
        fail(f"--auto chooses W, N and G of lookahead decoding, not of {settings.decoder}; leave one of the two out.")


def check_passes(passes: str) -> None:
    """Refuse what is no way to run passes."""
    if passes not in PASSES:
        fail(f"Passes cannot be {passes!r}; use --passes {', '.join(PASSES[:-1])} or {PASSES[-1]}.")


def check_tensor_parallel(gpus: int, quantize: str | None) -> None:
    """Refuse what is no number of GPUs, and weights that cannot be shared."""
    if gpus < 1:
        fail(f"A model cannot be shared among {gpus} GPUs; set 1, for no sharing, or more with --tensor-parallel.")
    if gpus > 1 and quantize is not None:
        fail("Quantised weights cannot be shared among GPUs; leave out --quantize or --tensor-parallel.")


def check_quantize(quantize: str | None) -> None:
    """Refuse what weights cannot be quantised to, and what would do it if it is not there."""
    if quantize is None:
        return
    if quantize not in QUANTIZATIONS:
        fail(f"Weights cannot be quantised to {quantize!r}; use --quantize {' or '.join(QUANTIZATIONS)}.")
    if importlib.util.find_spec("torchao") is None:
        fail("--quantize needs torchao, which is not installed: pip install 'ladechat[quantize]' brings it.")


def check_w_n_g(values: tuple[int, int, int], options: tuple[str, str, str]) -> None:
    """Refuse values of W, N and G that are out of range; `options` set them."""
    ranges = (WINDOW_RANGE, NGRAM_RANGE, GUESSES_RANGE)
    for letter, option, value, (least, most) in zip("WNG", options, values, ranges, strict=True):
        if not least <= value <= most:
            fail(f"{letter} has to be from {least} to {most}, not {value}; set it with {option}.")


def fail(sentence: str) -> NoReturn:
    """Say what is wrong and what to do, and end the program."""
    print(f"ladechat: {sentence}", file=sys.stderr)
    raise typer.Exit(USAGE_ERROR)
