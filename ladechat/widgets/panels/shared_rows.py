"""The layout of the panels: rows go to those that have something to show in them."""

from collections.abc import Sequence

from textual.geometry import NULL_OFFSET, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.widget import Widget

from ladechat.widgets.panels.mask_panel import MaskPanel
from ladechat.widgets.panels.panel import Needs, Panel

GAP_CELLS = 3
"""Between two panels side by side."""


class SharedRows(Layout):
    """Panels below each other, as high as `shared` says. Optional ones are left out, the highest first, while there are
    not the usual rows for all.
    """

    name = "shared-rows"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        lines: list[list[Panel]] = []
        for panel in (child for child in children if isinstance(child, Panel)):
            if isinstance(panel, MaskPanel) and lines and lines[-1] == [panel.beside]:
                lines[-1].append(panel)
            else:
                lines.append([panel])
        cells = [(size.width + GAP_CELLS) // len(line) - GAP_CELLS for line in lines]
        gaps = [line[0].styles.margin.bottom for line in lines]
        needs = [Needs(*map(max, zip(*(panel.needs() for panel in line), strict=True))) for line in lines]
        places = list(range(len(lines)))
        while sum(needs[place].usual + gaps[place] for place in places) > size.height:
            if not (optional := [place for place in places if all(one.optional for one in lines[place])]):
                break
            places.remove(max(optional, key=lambda place: needs[place].usual))
        room = max(size.height - sum(gaps[place] for place in places), 0)
        placements, top = [], 0
        for place, rows in zip(places, shared(room, [needs[place] for place in places]), strict=True):
            for number, panel in enumerate(lines[place] if rows else []):
                region = Region(number * (cells[place] + GAP_CELLS), top, cells[place], rows)
                placements.append(WidgetPlacement(region, NULL_OFFSET, panel.styles.margin, panel))
            top += rows + gaps[place]
        return placements


def shared(room: int, needs: Sequence[Needs]) -> list[int]:
    """Share rows, one by one in turn: first until each has the least that it needs, then its usual rows, then the most.
    What is left goes to the last, whose bars may be of any height.
    """
    rows = [0] * len(needs)
    for wanted in zip(*needs, strict=True):
        while room and (short := [place for place, own in enumerate(rows) if own < wanted[place]][:room]):
            for place in short:
                rows[place] += 1
            room -= len(short)
    return [*rows[:-1], rows[-1] + room] if rows else []
