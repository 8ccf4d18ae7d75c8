"""What an engine does after the memory was used up in a pass."""

from ladechat.engine.decoders import Decoders, smaller
from ladechat.engine.failures import memory_used_up, passes_made_smaller
from ladechat.model.load import LoadedModel
from ladechat.protocol import Event, SettingsApplied


def save_memory(loaded: LoadedModel, decoders: Decoders, turn: int | None, *, own_decoder: bool = False) -> list[Event]:
    """Free the cache, and give the next answers smaller passes.

    Args:
        loaded: the model.
        decoders: its decoders.
        turn: the answer in which it happened; None outside of one.
        own_decoder: whether that answer had a decoder of its own: then settings are not to blame, and stay.

    Returns:
        The events that say so.
    """
    loaded.runner.save_memory()
    if own_decoder:
        return [memory_used_up(turn, fatal=False)]
    decoders.apply(smaller(decoders.settings))
    return [passes_made_smaller(decoders.settings, turn), SettingsApplied(settings=decoders.settings)]
