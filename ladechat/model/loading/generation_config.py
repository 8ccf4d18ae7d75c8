"""The valid values of a checkpoint's generation_config.json: its sampling defaults, and what `generate` takes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladechat.model.checkpoint.files import NoObject, is_gguf, read_object

if TYPE_CHECKING:
    from transformers import GenerationConfig

FILE = "generation_config.json"
MOST_OF_A_NUMBER = 1e38
MOST_OF_A_VALUE = 40
"""The most characters of a value in a notice."""


def _number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < MOST_OF_A_NUMBER  # excludes NaN, and integers too large for a float


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ids(value: object) -> bool:
    return all(map(_integer, value)) if isinstance(value, list) else _integer(value)


RULES: Mapping[str, Callable[[Any], bool]] = {
    "do_sample": lambda value: isinstance(value, bool),
    "temperature": lambda value: _number(value) and value >= 0,
    "top_p": lambda value: _number(value) and 0 < value <= 1,
    "top_k": lambda value: _integer(value) and 0 <= value < 2**53,
    "min_p": lambda value: _number(value) and 0 <= value < 1,
    "repetition_penalty": lambda value: _number(value) and value > 0,
    "eos_token_id": _ids,
    "bos_token_id": _integer,
    "pad_token_id": _ids,
}
"""Validity checks for the values that are used; null is always valid."""


@dataclass(frozen=True)
class GenerationDefaults:
    """A checkpoint's own sampling settings; None for those it does not give. For display only: requests decide."""

    do_sample: bool
    temperature: float | None
    top_p: float | None
    top_k: int | None


@dataclass(frozen=True)
class GenerationFile:
    """The content of a generation_config.json.

    Attributes:
        values: the valid values; None where there is no such file, or it cannot be read.
        left_out: a sentence for each value that is not used.
    """

    values: Mapping[str, Any] | None
    left_out: tuple[str, ...] = ()

    @property
    def sampling(self) -> GenerationDefaults | None:
        """Its sampling settings; None where it gives none."""
        values = self.values or {}
        if not values.keys() & {"do_sample", "temperature", "top_p", "top_k"}:
            return None
        floats = (values.get(key) for key in ("temperature", "top_p"))
        temperature, top_p = (None if value is None else float(value) for value in floats)
        return GenerationDefaults(values.get("do_sample") is True, temperature, top_p, values.get("top_k"))


def read_generation_config(folder: Path) -> GenerationFile:
    """Read the generation_config.json of a checkpoint. Invalid values are left out, with a notice."""
    path = folder / FILE
    if not path.exists():
        return GenerationFile(None)
    try:
        found = read_object(path)
    except NoObject as error:
        return GenerationFile(None, (f"The checkpoint's {FILE} {error}; it is left out.",))
    values, left_out = {}, []
    for key, value in found.items():
        rule = RULES.get(key)
        if value is None or rule is None or rule(value):
            values[key] = value
            continue
        if rule is _ids and isinstance(value, list):
            values[key] = [one for one in value if _integer(one)]
            value = next(one for one in value if not _integer(one))
        shown = json.dumps(value)[:MOST_OF_A_VALUE]
        left_out.append(f"The checkpoint's {FILE} has {key} {shown}, which cannot be; it is left out.")
    return GenerationFile(values, tuple(left_out))


def generation_config(folder: Path, config: Any) -> "GenerationConfig | None":
    """Return a model's generation config; None where it has no file, and transformers derives it from config.json."""
    from transformers import GenerationConfig

    if is_gguf(folder):
        return GenerationConfig.from_model_config(config)
    file = read_generation_config(folder)
    values = file.values
    if values is None:
        return GenerationConfig.from_model_config(config) if file.left_out else None
    try:
        return GenerationConfig.from_dict(dict(values))
    except Exception:  # another invalid value: those used here have been checked
        return GenerationConfig.from_dict({key: value for key, value in values.items() if key in RULES})
