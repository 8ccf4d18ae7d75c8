"""The options of a benchmark, checked as far as possible without a model and torch: mistakes are reported at once."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ladechat.catalog import DECODERS
from ladechat.files import check_replaceable
from ladechat.installing import command_for_extra
from ladechat.protocol import DecoderInfo, Parameter

PLAIN = "autoregressive"
"""Plain decoding, which is always measured: all others are compared with it."""

TRANSFORMERS = {"transformers": {}, "transformers-prompt-lookup": {"prompt_lookup_num_tokens": 10}}
"""transformers' own `generate`, with further options."""

KINDS = ("chat", "code", "maths", "summary", "multi_turn")
"""The kinds of questions that come with ladechat: the files of the folder `questions`."""

DEFAULT_MAX_NEW_TOKENS = 64
DEFAULT_ROUNDS = 2

PLOT_SUFFIXES = (".png", ".svg")


class BenchRefused(ValueError):
    """A measurement that is impossible as requested: what, why, and what to do, in one sentence."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """A benchmark, as requested on the command line.

    Attributes:
        quantize: how weights are quantised while they are read, one of `ladechat.options.QUANTIZATIONS`, or None.
        passes: how llama.cpp computes the passes of a GGUF file, one of `ladechat.engine_options.WAYS_OF_PASSES`.
        maps: files of trained parts for the model.
        decoders: some of `method_names`.
        named: whether the user named them; if not, those that lack a trained part for the model are left out.
        settings: values of `numbers_by_hand`, one for each measurement of this decoder; none: its defaults.
        questions: names of `KINDS`, and paths of files in the same format.
        max_new_tokens: the maximum number of tokens of an answer.
        rounds: how often everything is measured, after a warm-up.
        json: the file for the figures, if any.
        plot: the file for the plot, if any.
        layer_search: seconds to search for better layers to skip.
        tensor_parallel: the number of GPUs that share the model.
        lookahead_parallel: the number of GPUs that share the slots of each pass.
    """

    model: str
    device: str
    dtype: str
    quantize: str | None
    passes: str
    maps: Sequence[Path]
    decoders: Sequence[str]
    named: bool
    settings: Sequence[tuple[int, ...]]
    questions: Sequence[str]
    max_new_tokens: int
    rounds: int
    json: Path | None
    plot: Path | None
    layer_search: float = 0.0
    tensor_parallel: int = 1
    lookahead_parallel: int = 1

    def check(self) -> None:
        """Check the options before anything is loaded.

        Raises:
            BenchRefused: an unknown decoder, no round, or a file that cannot be written.
        """
        unknown = [name for name in self.decoders if name not in method_names()]
        if unknown or not self.decoders:
            missing = f"There is no decoder {unknown[0]!r}" if unknown else "No decoder is named"
            names = ", ".join(method_names())
            raise BenchRefused(f"{missing}; give --decoders one or more of {names}, with commas between.")
        if self.rounds < 1:
            raise BenchRefused(f"--rounds has to be at least 1, not {self.rounds}.")
        if self.layer_search and not any(skips_layers(name) for name in self.decoders):
            skipping = ", ".join(name for name in DECODERS if skips_layers(name))
            raise BenchRefused(f"--layer-search is for {skipping}; name it with --decoders, or leave the search out.")
        if self.settings and by_hand().name not in self.decoders:
            raise BenchRefused(f"--settings is for {by_hand().name}; name it with --decoders, or leave --settings out.")
        if self.plot is not None:
            _check_plot(self.plot)
        for option, path in (("--json", self.json), ("--plot", self.plot)):
            if path is not None:
                _check_writable(option, path)


def method_names() -> tuple[str, ...]:
    """Return the names of all methods of `ladechat.bench.methods`: plain decoding, other decoders, transformers."""
    return tuple(dict.fromkeys((PLAIN, *DECODERS, *TRANSFORMERS)))


def skips_layers(name: str) -> bool:
    """Return whether a method is a decoder that runs layers of the model one by one."""
    return name in DECODERS and DECODERS[name].least_layers > 0


def by_hand() -> DecoderInfo:
    """Return the decoder whose parameters --settings sets: the one that does not choose them itself."""
    return DECODERS[next(info.by_hand for info in DECODERS.values() if info.by_hand is not None)]


def numbers_by_hand() -> list[Parameter]:
    """Return the parameters that --settings sets: W, N and G."""
    return [one for one in by_hand().parameters if not isinstance(one.default, bool)]


def listed(text: str) -> tuple[str, ...]:
    """Return the items of a list with commas, each once, in order."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _check_plot(path: Path) -> None:
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise BenchRefused(
            f"A plot is written as {' or '.join(PLOT_SUFFIXES)}, and {path} is neither; change its ending."
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise BenchRefused(f"--plot needs matplotlib, which is not installed: {command_for_extra('plot')}")


def _check_writable(option: str, path: Path) -> None:
    try:
        check_replaceable(path)
    except OSError as error:
        raise BenchRefused(
            f"{path} cannot be written: {error.strerror or error}; give {option} another name."
        ) from error
