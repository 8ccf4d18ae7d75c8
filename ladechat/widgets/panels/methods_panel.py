"""The methods that draft beside each other: where their guesses come from, and how often these are right."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.style import Style
from textual.reactive import reactive

from ladechat.protocol import TrainedPart
from ladechat.widgets.panels.panel import Needs, Panel, Row
from ladechat.widgets.panels.transfer_picture import MEDUSA, TRANSFER, part_of

GAP = 2


class Method(NamedTuple):
    """A line of the table; `kind` is that of its trained part, "" for none."""

    name: str
    source: str
    trained: str
    kind: str


METHODS = (
    Method("lookahead", "window, pool", "nothing", ""),
    Method("Medusa", "heads on top", "heads", MEDUSA),
    Method("hidden tr.", "maps half-way", "maps", TRANSFER),
)
WHY = "Medusa's heads guess on top: no layers are left to think. Pseudo states pass the upper layers first."


class MethodsPanel(Panel):
    """A table with a line for each method. The figures are those of the model that runs."""

    NAME = "where guesses come from"
    NEEDS = Needs(least=5, usual=13, most=13)

    trained: reactive[Sequence[TrainedPart]] = reactive(())
    """The maps and heads whose figures are shown."""

    def rows(self, width: int, height: int) -> list[Row]:
        table = _that_fit(self._table(), width)
        sizes = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [(" " * GAP).join(f"{text:<{size}}" for text, size in zip(line, sizes, strict=True)) for line in table]
        styles = [self.muted, *[Style()] * (len(METHODS) - 1), Style(bold=True)]
        rows: list[Row] = [[(line.rstrip(), style)] for line, style in zip(lines, styles, strict=True)]
        words = [line for text in (WHY, self._what_figures_are()) for line in [[], *self.sentence(text, width)]]
        return [self.header(width, [self.NAME], ["a guess is right", ""]), *rows, *words]

    def explain(self) -> str:
        return f"{WHY} {self._what_figures_are()}"

    def _table(self) -> list[tuple[str, ...]]:
        """Return the heads and the lines: method, source, what is trained, figures."""
        parts = [part_of(self.trained, method.kind) for method in METHODS]
        ahead = max([len(part.right) for part in parts if part is not None], default=0)
        figures = [
            [f"{share:.2f}".lstrip("0") for share in (part.right if part else ())] + ["–"] * ahead for part in parts
        ]
        heads = ("", "guesses from", "trained", *(f"t+{place + 2}" for place in range(ahead)))
        lines = zip(METHODS, figures, strict=True)
        return [heads, *((one.name, one.source, one.trained, *own[:ahead]) for one, own in lines)]

    def _what_figures_are(self) -> str:
        steps = {part.steps for part in self.trained}
        if not steps:
            return "Nothing was trained for this model."
        trained = f"{min(steps):,}" if len(steps) == 1 else f"{min(steps):,} to {max(steps):,}"
        return (
            f"Best guesses that are right, on text not seen in training ({trained} steps). Lookahead's depend on the "
            "text."
        )


def _that_fit(table: Sequence[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """Return the columns that fit: without what is trained, then without the sources."""
    for left_out in ((), (2,), (1, 2)):
        fewer = [tuple(text for column, text in enumerate(line) if column not in left_out) for line in table]
        if sum(max(map(len, column)) + GAP for column in zip(*fewer, strict=True)) - GAP <= width:
            return fewer
    return [line[:1] for line in table]
