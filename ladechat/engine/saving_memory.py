"""Recovery after a pass has used up the memory."""

from ladechat.engine.decoders import Decoders, smaller
from ladechat.engine.failures import memory_used_up, passes_made_smaller
from ladechat.model.load import LoadedModel
from ladechat.protocol import Event, SettingsApplied


def save_memory(loaded: LoadedModel, decoders: Decoders, turn: int | None, *, own_decoder: bool = False) -> list[Event]:
    """Free the cache, and make the passes of the next answers smaller.

    Args:
        loaded: the model.
        decoders: its decoders.
        turn: the answer in which it happened; None outside of one.
        own_decoder: whether that answer had a decoder of its own: then the settings are not to blame, and stay.

    Returns:
        The events that report it.
    """
    loaded.runner.save_memory()
    if own_decoder:
        return [memory_used_up(turn, fatal=False)]
    decoders.apply(smaller(decoders.settings))
    return [passes_made_smaller(decoders.settings, turn), SettingsApplied(settings=decoders.settings)]
