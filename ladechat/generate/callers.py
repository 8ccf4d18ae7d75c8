"""Looks up the call stack: the caller's line for warnings, and arguments that `generate` does not pass on.

transformers (5.17 to 5.24) drops the options of `generate` that are about its loops before it calls a
`custom_generate`. They are still local variables of its frame.
"""

import inspect
import sys
import warnings
from types import FrameType
from typing import Any, NamedTuple

from transformers import GenerationConfig, GenerationMixin

ON_THE_WAY = ("ladechat", "transformers", "torch")
"""Packages whose frames may lie between a caller's line and this module."""

WRAPPERS = ("torch.utils._contextlib", "transformers.utils.deprecation")
"""The modules of the decorators of `generate`."""


class LoopArguments(NamedTuple):
    """The arguments of `generate` that are meant for its own decoding loops.

    Attributes:
        streamer: has received the prompt already.
        assistant_model: the draft model.
        synced_gpus: whether ranks wait for each other; None: `generate` decides.
        inputs_tensor: the prompt, before it is repeated for several answers.
        tokenizer: the tokenizer that stop strings are matched with.
        assistant_tokenizer: the draft model's tokenizer.
    """

    streamer: Any = None
    assistant_model: Any = None
    synced_gpus: bool | None = None
    inputs_tensor: Any = None
    tokenizer: Any = None
    assistant_tokenizer: Any = None


def given_to_generate(config: GenerationConfig) -> LoopArguments:
    """Return the arguments of the `generate` call that prepared this config; all defaults if there is none."""
    own_code = inspect.unwrap(GenerationMixin.generate).__code__
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is own_code and frame.f_locals.get("generation_config") is config:
            found = {**_of_its_wrappers(frame), **frame.f_locals}
            return LoopArguments(**{name: found[name] for name in LoopArguments._fields if name in found})
        frame = frame.f_back
    return LoopArguments()


def _of_its_wrappers(frame: FrameType) -> dict[str, Any]:
    """Return the keyword arguments that the decorators of `generate` got: it removes tokenizers from its own."""
    outer = frame.f_back
    while outer is not None and outer.f_globals.get("__name__") in WRAPPERS:
        keywords = outer.f_locals.get("kwargs", {})
        if "custom_generate" in keywords:
            return dict(keywords)
        outer = outer.f_back
    return {}


def warn_at_callers_line(message: str) -> None:
    """Warn at the line of the first caller outside of these packages; it may have called transformers' `generate`."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ON_THE_WAY:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
