"""The layers to skip in the measured model: the saved ones, or a search for better ones."""

from collections.abc import Callable
from pathlib import Path

from ladechat.bench.options import BenchRefused, skips_layers
from ladechat.bench.prompts import judged_prompt
from ladechat.catalog import DECODERS
from ladechat.decoder.layer_skipping_model import LayerSkippingModel, layers_of
from ladechat.layer_search import budget, improved, read_skipped
from ladechat.model.loaded import LoadedModel, pass_facts
from ladechat.registry import why_unusable
from ladechat.tuning.saved import saved_file


def saved_layers(loaded: LoadedModel) -> frozenset[int] | None:
    """Return the layers that an earlier search saved; None if there was none."""
    return read_skipped(_file(loaded), layers_of(loaded.runner))


def search_layers(loaded: LoadedModel, seconds: float, progress: Callable[[float], None]) -> None:
    """Search for better layers to skip, and save them. `progress` is called with the fraction of the time that has
    passed.

    Raises:
        BenchRefused: its layers cannot be run one by one, or there is no room for the answer that judges a set of
            layers.
    """
    runner = loaded.runner
    skipping = next(info for info in DECODERS.values() if skips_layers(info.name))
    why = why_unusable(skipping, runner, {}, {})
    if why is not None:
        raise BenchRefused(f"No layer of {loaded.name} can be skipped: {why} Leave --layer-search out.")
    assert isinstance(runner, LayerSkippingModel)
    improved(runner, runner, judged_prompt(loaded), _file(loaded), budget(seconds, progress))


def _file(loaded: LoadedModel) -> Path:
    return saved_file("skipped", **pass_facts(loaded))
