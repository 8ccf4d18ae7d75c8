"""Rotary embeddings whose angles depend on the length of the text: the boundary where they change, which no pass may
cross.
"""

from dataclasses import dataclass
from typing import Any, Literal

RECOMPUTED = ("phi3", "phimoe", "phi4_multimodal")
"""Model types whose own generation recomputes the whole text when it outgrows the boundary. Others mix the angles.

transformers 5.17 then loses the text: it drops the cache, but still passes the last token only. So the reference for
these is their generation without a cache, which does what is intended.
"""


@dataclass(frozen=True)
class RopeBoundary:
    """The length beyond which a model uses other angles in a whole pass (`transformers.modeling_rope_utils`).

    The highest position of a pass decides. A drafted token beyond the boundary would change the angles of the real
    tokens before it, so no pass may cross it.

    Attributes:
        kind: "longrope" has two sets of angles; "dynamic" has other angles for each length beyond the boundary.
        length: texts of up to this many tokens have the usual angles.
        recomputes: whether the whole text is recomputed when it outgrows the boundary.
    """

    kind: Literal["longrope", "dynamic"]
    length: int
    recomputes: bool = False

    def angles(self, length: int) -> int:
        """Return a number that identifies the angles of the last pass over a text of `length` tokens."""
        return max(length, self.length) if self.kind == "dynamic" else int(length > self.length)

    def max_positions(self, position: int) -> int | None:
        """Return how many positions, from this one on, share their angles: at least 1; None for all that follow."""
        if position < self.length:
            return self.length - position
        return 1 if self.kind == "dynamic" else None


def rope_boundary(config: Any) -> RopeBoundary | None:
    """Return the boundary in a language model's configuration, if any; the lowest, where kinds of layers differ.

    Args:
        config: the language model's configuration, as transformers standardises it.
    """
    found = []
    for rope in rope_parameters(config):
        if rope.get("rope_type") == "longrope":
            length = rope.get("original_max_position_embeddings") or config.max_position_embeddings
            found.append(RopeBoundary("longrope", int(length), config.model_type in RECOMPUTED))
        elif rope.get("rope_type") == "dynamic":
            found.append(RopeBoundary("dynamic", int(config.max_position_embeddings)))
    return min(found, key=lambda boundary: boundary.length, default=None)


def stretched_context(config: Any, longest: int) -> int:
    """Return the number of positions of a model, which `max_position_embeddings` (`longest`) tells only for some types.

    - `dynamic` and `linear`: the positions before scaling; transformers stretches them by `factor`. Not so where kinds
      of layers have their own settings: Gemma 3 stretches some of its layers, and `longest` is the final number.
    - `yarn`: those before scaling are `original_max_position_embeddings`; `longest` may be either.
    - `longrope`, `llama3`: the final number.
    """
    rope = getattr(config, "rope_parameters", None) or {}
    whole = rope if "rope_type" in rope else {}
    factors = [float(one.get("factor") or 1.0) for one in rope_parameters(config) if one.get("rope_type") == "dynamic"]
    if whole.get("rope_type") == "linear":
        factors.append(float(whole.get("factor") or 1.0))
    stretched = longest * max(factors, default=1.0)
    if whole.get("rope_type") == "yarn":
        before = whole.get("original_max_position_embeddings") or longest
        stretched = max(stretched, before * float(whole.get("factor") or 1.0))
    return int(stretched)


def rope_parameters(config: Any) -> list[dict[str, Any]]:
    """Return the settings of rotary embeddings: one for the model, or one for each kind of layer."""
    rope = getattr(config, "rope_parameters", None) or {}
    if "rope_type" in rope:
        return [rope]
    return [parameters for parameters in rope.values() if isinstance(parameters, dict)]
