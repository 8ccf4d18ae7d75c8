"""What the frames say that called: which line asked, and what `generate` was given and does not hand on.

transformers (5.17 to 5.24) drops the options of `generate` that are about its loops before it calls a
`custom_generate`. They are still the local variables of its frame.
"""

import inspect
import sys
import warnings
from types import FrameType
from typing import Any, NamedTuple

from transformers import GenerationConfig, GenerationMixin

ON_THE_WAY = ("ladechat", "transformers", "torch")
"""Packages between a caller's line and this module."""

WRAPPERS = ("torch.utils._contextlib", "transformers.utils.deprecation")
"""Where the decorators of `generate` come from."""


class Given(NamedTuple):
    """What `generate` was given for a loop of its own.

    Attributes:
        streamer: it has got the prompt already.
        assistant_model: the model that would draft.
        synced_gpus: whether ranks wait for each other; None: `generate` finds out.
        inputs_tensor: the prompt, before it is repeated for several answers.
        tokenizer: what stop strings are matched with.
        assistant_tokenizer: of the model that would draft.
    """

    streamer: Any = None
    assistant_model: Any = None
    synced_gpus: bool | None = None
    inputs_tensor: Any = None
    tokenizer: Any = None
    assistant_tokenizer: Any = None


def given_to_generate(config: GenerationConfig) -> Given:
    """What the call of `generate` was given that has prepared this config; nothing, where no such call is under way."""
    own_code = inspect.unwrap(GenerationMixin.generate).__code__
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is own_code and frame.f_locals.get("generation_config") is config:
            found = {**_of_its_wrappers(frame), **frame.f_locals}
            return Given(**{name: found[name] for name in Given._fields if name in found})
        frame = frame.f_back
    return Given()


def _of_its_wrappers(frame: FrameType) -> dict[str, Any]:
    """The keywords of a call as its decorators got them: `generate` takes tokenizers out of its own."""
    outer = frame.f_back
    while outer is not None and outer.f_globals.get("__name__") in WRAPPERS:
        keywords = outer.f_locals.get("kwargs", {})
        if "custom_generate" in keywords:
            return dict(keywords)
        outer = outer.f_back
    return {}


def warn_at_callers_line(message: str) -> None:
    """Warn of the line from which all this was called, which may have gone through transformers' `generate`."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ON_THE_WAY:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
