"""ladechat: a terminal chat app that shows lookahead decoding while it runs, and that decoding for your own code."""

TYPE_CHECKING = False  # typing's takes longer to import than all of this: Ctrl+C during it would print a traceback

if TYPE_CHECKING:
    from ladechat.decoder.sampler import Sampling as Sampling
    from ladechat.generate.lookahead import lookahead_generate as lookahead_generate, lookahead_steps as lookahead_steps
    from ladechat.model.runners.cache_probe import UnsupportedModel as UnsupportedModel

__version__ = "0.1.0"
__all__ = ["Sampling", "UnsupportedModel", "lookahead_generate", "lookahead_steps"]


def __getattr__(name: str) -> object:
    """Import the names that need torch only when they are accessed: the app starts without it."""
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("ladechat.generate.lookahead"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, also those that were not accessed yet."""
    return sorted({*globals(), *__all__})
