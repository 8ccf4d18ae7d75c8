"""The panels beside a lesson: on a low terminal, only the one that the card is about."""

from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.panels.side import SidePanels

ROWS_FOR_ALL = 36
"""Minimum height of the terminal for several panels; on a lower one, each would have too few rows."""
WITH_EVERY_DECODER = "speed"


class LessonPanels(SidePanels):
    """Shows the panel requested by its id, and on a high terminal also the decoder's other panels."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wanted = ""

    def show_panel(self, wanted: str) -> None:
        """Show this panel in any case."""
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
