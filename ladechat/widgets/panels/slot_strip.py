"""The slots of a pass of lookahead decoding, below its sliders: a sign for each, and how many W, N and G add."""

from collections.abc import Mapping
from typing import NamedTuple

from rich.style import Style
from textual.reactive import reactive

from ladechat.protocol import Step, Value
from ladechat.widgets.cells import cell_len
from ladechat.widgets.panels.panel import Row, StepPanel, longest
from ladechat.widgets.steps.draft_tree import drafted, slots_of

CELLS_FOR_NAMES = 46
"""Minimum width for the names of the parts."""
SLOT, SHARED, FREE, MORE, LESS = "▮", "▯", "·", "+", "−"


class Sizes(NamedTuple):
    """W, N and G."""

    window: int
    ngram: int
    guesses: int

    @classmethod
    def of(cls, parameters: Mapping[str, Value]) -> "Sizes | None":
        """Return them from the parameters of a decoder; None if it lacks one of them."""
        known = [int(parameters[name]) for name in cls._fields if name in parameters]
        return cls(*known) if len(known) == len(cls._fields) else None

    @property
    def parts(self) -> tuple[int, int, int]:
        """The most slots for the last token, the window and the guesses. The window's first cell is the last token."""
        rows = self.ngram - 1
        return 1, max(rows * self.window - 1, 0), rows * self.guesses

    @property
    def most(self) -> int:
        """The most slots of a pass: (N − 1)(W + G)."""
        return sum(self.parts)


class Part(NamedTuple):
    """A part of the strip: its signs with their numbers, and its name."""

    signs: tuple[tuple[str, int], ...]
    name: str

    @property
    def drawn(self) -> list[tuple[str, str]]:
        """Each sign, and as many of it as there are."""
        return [(sign, sign * count) for sign, count in self.signs if count > 0]

    @property
    def numbers(self) -> str:
        """The slots in numbers: those taken of those that there are room for, or those now and later; "" if none."""
        count = {sign: max(number, 0) for sign, number in self.signs}
        taken, whole = count[SLOT], sum(count.values())
        if count.get(MORE):
            return f"{taken} → {whole} {self.name}"
        if count.get(LESS):
            return f"{whole} → {taken} {self.name}"
        return f"{taken} {self.name}" if taken == whole else f"{taken}/{whole} {self.name}"


class SlotStrip(StepPanel):
    """Shows the slots of the pass; while a slider moves, those of the passes to come. More than fit are numbers."""

    NAME = "slots"
    SHOWS = "One sign for each slot of a pass: the last token, the window, the guesses; what W, N and G add."
    COMES = "In a high terminal, below the sliders of lookahead decoding."

    of_pass: reactive[Sizes | None] = reactive(None)
    """W, N and G of the pass that is shown, which others may have followed; None if unknown."""

    sizes: reactive[tuple[Sizes, Sizes] | None] = reactive(None)
    """W, N and G as they are set, and as the sliders show them; None for a decoder that lacks them."""

    def show_sizes(self, now: Sizes | None, moved: Sizes | None) -> None:
        """Set W, N and G as they are now, and as the sliders show them; None for a decoder that lacks them."""
        self.sizes = None if now is None or moved is None else (now, moved)

    def explain(self) -> str:
        if self.sizes is None:
            return ""
        now = self.sizes[1]
        window, ngram, guesses = now
        return (
            f"A slot is a token that goes into a pass: 1 for the last token, (N − 1) × W − 1 = {now.parts[1]} for the "
            f"window, at most (N − 1) × G = {now.parts[2]} for guesses of the pool; together (N − 1)(W + G) = "
            f"{now.most}. W + 1 or G + 1 adds N − 1 = {ngram - 1}, N + 1 adds W + G = {window + guesses}. {SHARED}: "
            f"begins like another, and shares its slots. {FREE}: room that the pool had no guess for."
        )

    def rows(self, width: int, height: int) -> list[Row]:
        if self.sizes is None:
            return []
        now, moved = self.sizes
        parts, total = self.parts(now, moved)
        shared = any(sign == SHARED for part in parts for sign, _ in part.drawn)
        added: Row = [(longest(width, what_is_added(moved, shared=shared)), self.muted)]
        row: Row = [(f"{total} ", Style(bold=True))]
        for part in parts:
            row += [(text, self._look(sign)) for sign, text in part.drawn]
            name = part.name if width >= CELLS_FOR_NAMES else ""
            row.append((f" {name} " if name and part.drawn else " ", self.muted))
        if cell_len("".join(text for text, _ in row).rstrip()) <= width:
            return [row, added]
        numbers = [part.numbers for part in parts if part.drawn]
        told = [f": {' · '.join(some)}" for some in (numbers, numbers[1:]) if some]
        return [[(total, Style(bold=True)), (longest(width - cell_len(total), told), self.muted)], added]

    def parts(self, now: Sizes, moved: Sizes) -> tuple[list[Part], str]:
        """Return the parts of the strip, and the number of slots in words: those of the pass that is shown, or, if
        other sizes followed it, of the next one.
        """
        names = "last", "window", "pool"
        if moved != now:
            changed = [
                ((SLOT, min(before, after)), (MORE, after - before), (LESS, before - after))
                for before, after in zip(now.parts, moved.parts, strict=True)
            ]
            return [Part(*each) for each in zip(changed, names, strict=True)], f"{now.most} → {moved.most} slots"
        step = self._step
        if step is None or step.window is None or self.of_pass not in (None, now):
            planned = [((SLOT, count),) for count in now.parts]
            return [Part(*each) for each in zip(planned, names, strict=True)], f"≤ {now.most} slots"
        used = [((SLOT, taken), (SHARED, shared), (FREE, free)) for taken, shared, free in _used(step, now)]
        return [Part(*each) for each in zip(used, names, strict=True)], f"{step.timing.slots}/{now.most} slots"

    def _look(self, sign: str) -> Style:
        return self.muted if sign in (SHARED, FREE, LESS) else Style(bold=sign == MORE)


def _used(step: Step, sizes: Sizes) -> list[tuple[int, int, int]]:
    """Return for last token, window and guesses: the slots taken, the tokens that share one, the room that is free."""
    slots = slots_of(step)
    window = sum(slot.row is not None for slot in slots)
    guesses = len(slots) - 1 - window
    cells, tokens = drafted(step)
    _, most_window, most_guesses = sizes.parts
    return [
        (1, 0, 0),
        (window, max(cells - window, 0), max(most_window - cells, 0)),
        (guesses, max(tokens - guesses, 0), max(most_guesses - tokens, 0)),
    ]


def what_is_added(sizes: Sizes, *, shared: bool = True) -> list[str]:
    """Return how many slots one more W, N or G adds, in versions from long to short, and the sign of `shared` slots."""
    rows, both = sizes.ngram - 1, sizes.window + sizes.guesses
    added = f"W + 1: + {rows}   N + 1: + {both}   G + 1: + {rows}"
    short = f"W+1, G+1: +{rows}  N+1: +{both}"
    legend = f"  {SHARED} shares a slot" if shared else ""
    return [
        f"{added}   slots ≤ (N − 1)(W + G) = {sizes.most} {legend}".rstrip(),
        f"{short}  ≤ (N−1)(W+G) = {sizes.most}{legend}",
        f"{short}  ≤ (N−1)(W+G){legend}",
        f"{short}{legend}",
        short,
    ]
