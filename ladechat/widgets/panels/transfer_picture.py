"""Hidden transfer as a picture: the layers of the model, the maps, and the pseudo states beside a real one."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.style import Style

from ladechat.protocol import TrainedPart
from ladechat.widgets.panels.panel import Row, wrapped

TRANSFER, MEDUSA = "transfer", "medusa"
LABEL_CELLS = 8
LEAST_PITCH, MOST_PITCH = 7, 9
"""Cells from one state to the next."""
BESIDE_CELLS = 14
"""For the words at the right of the picture."""
MEDUSA_BEGINS = "← Medusa's", "  heads begin", "  here"
MEDUSA_IS = "Medusa, an older method, guesses by trained heads on top of the last layer."
CARRIERS_ARE = "Carriers make pseudo states: slots that may be the last accepted."


class TransferPicture(NamedTuple):
    """The picture of a model with so many layers, and of the maps that were trained for it."""

    layers: int
    part: TrainedPart

    @property
    def maps(self) -> int:
        return len(self.part.layers)

    def rows(self, width: int, height: int, strong: Style, muted: Style) -> list[Row]:
        """Return the picture, and below it what it means, as far as there is room; [] if there is none for it."""
        pitch = min(MOST_PITCH, (width - LABEL_CELLS - BESIDE_CELLS) // (self.maps + 1))
        beside = pitch >= LEAST_PITCH
        pitch = pitch if beside else min(MOST_PITCH, (width - LABEL_CELLS) // (self.maps + 1))
        lines = self._lines(pitch) if pitch >= LEAST_PITCH else []
        if not lines or len(lines) > height:
            return self.described(width, height, muted)
        rows: list[Row] = []
        for number, (label, picture) in enumerate(lines):
            words = MEDUSA_BEGINS[number - 1] if beside and 1 <= number <= len(MEDUSA_BEGINS) else ""
            drawn = f"{picture:<{(self.maps + 1) * pitch}}"
            rows.append([(f"{label:<{LABEL_CELLS}}", muted), (drawn, strong), (words, muted)])
        return [*rows, *self.described(width, height - len(rows), muted)]

    def words(self) -> list[str]:
        size = f"{self.part.width:,} × {self.part.width:,}"
        names = f"M1 to M{self.maps}" if self.maps > 1 else "M1"
        return [
            f"{names}, the maps: matrices of {size} numbers, one a token ahead.",
            "Only they are trained, on text that the model wrote.",
            "A pseudo state sees the text and the pseudo states left of it.",
        ]

    def described(self, width: int, height: int, style: Style) -> list[Row]:
        """Return as many of the sentences as fit: the `words`, and what is beside the maps."""
        words = [*self.words(), CARRIERS_ARE, MEDUSA_IS]
        texts = (wrapped(" ".join(words[:count]), width, style) for count in range(len(words), 0, -1))
        return next((lines for lines in texts if len(lines) <= height), [])

    def _lines(self, pitch: int) -> list[tuple[str, str]]:
        """Return the label and the picture of each line, from the top."""
        start, top = self.part.layers[0], self.layers
        ahead = range(2, self.maps + 2)

        def across(first: str, others: Sequence[str], filling: str = " ") -> str:
            return "".join(one.ljust(pitch, filling) for one in (first, *others[:-1])) + others[-1]

        def states(layer: int) -> tuple[str, str]:
            return f"layer {layer}", across("[real]", [f"[t+{place}]" for place in ahead], "─")

        bars = ["  │"] * self.maps
        lines = [("guess", across(" t+1", [f" t+{place}" for place in ahead])), states(top)]
        if top > start + 2:
            lines.append(("   ⋮", across("  │", bars)))
        if top > start + 1:
            lines.append(states(start + 1))
        for number in range(1, self.maps):
            reach = f"  ├─M{number}".ljust(pitch * number, "─") + "──┘"
            lines.append(("", reach + "".join("│".rjust(pitch) for _ in range(self.maps - number))))
        last = f"[real]─M{self.maps}".ljust(pitch * self.maps, "─") + "──┘"
        lines.append((f"layer {start}" if start else "input", last))
        if start > 1:
            lines += [("   ⋮", "  │"), ("layer 1", "[real]  token t")]
        return lines


def part_of(trained: Sequence[TrainedPart], kind: str) -> TrainedPart | None:
    """Return what was trained of one kind; None if there is nothing."""
    return next((part for part in trained if part.kind == kind), None)
