"""The panels beside a lesson: where there is little room, the one that its card is about."""

from ladechat.widgets.panel import Panel
from ladechat.widgets.side import SidePanels

ROWS_FOR_ALL = 36
"""Of the terminal. On a lower one several panels would have too few rows each to tell anything."""
WITH_EVERY_DECODER = "speed"


class LessonPanels(SidePanels):
    """Shows a panel that is asked for by its id; with the others that the decoder has, where the terminal is high."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wanted = ""

    def show_panel(self, wanted: str) -> None:
        """Have this panel on the screen, whatever else is."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._apply()

    def _apply(self) -> None:
        super()._apply()
        low = self.app.size.height < ROWS_FOR_ALL
        for panel in self.query(Panel):
            among_others = panel.display or panel.id == WITH_EVERY_DECODER
            panel.display = panel.id == self._wanted or (among_others and not low)
        side_by_side = self.query_one("#pass")
        side_by_side.display = any(panel.display for panel in side_by_side.query(Panel))
