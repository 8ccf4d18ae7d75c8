"""Lists of options: the highlighted row stays visible, and a long list creates rows as the user gets near them."""

from collections.abc import Callable

from textual.content import Content
from textual.widgets import OptionList


class MarkedList(OptionList):
    """Scrolls to the highlighted row when the list gets fewer rows, as below a longer sentence."""

    def on_resize(self) -> None:
        self.call_after_refresh(self.scroll_to_highlight)


LINES_OF_A_ROW = 2
LEAST_AHEAD = 8
"""The least number of rows that are created below the highlighted one."""


class LongList(MarkedList):
    """A list whose rows, of two lines each, are created as needed: thousands of them take no longer than one screen."""

    def __init__(self) -> None:
        super().__init__(compact=True, markup=False)
        self._count = 0
        self._row: Callable[[int], Content] = lambda _: Content("")

    def show(self, count: int, row: Callable[[int], Content], marked: int = 0) -> None:
        """Replace the rows by `count` others, and highlight number `marked`, or the last if there are fewer."""
        self._count, self._row = count, row
        if rows := [row(place) for place in range(min(marked + self._ahead, count))]:
            self.set_options(rows)  # at once, so that the screen is laid out only if their number changes
        else:
            self.clear_options()
        self.highlighted = min(marked, count - 1) if count else None

    @property
    def _ahead(self) -> int:
        """More rows than are in view."""
        return max(self.size.height // LINES_OF_A_ROW, LEAST_AHEAD) + LEAST_AHEAD // 2

    def _make(self, number: int) -> None:
        """Create the rows up to this one, and some below it."""
        made = self.option_count
        wanted = min(number + self._ahead, self._count)
        if wanted > made:
            self.add_options([self._row(place) for place in range(made, wanted)])

    def watch_highlighted(self, highlighted: int | None) -> None:
        """Create rows below the highlighted one."""
        super().watch_highlighted(highlighted)
        if highlighted is not None and highlighted + self._ahead // 2 > self.option_count:
            self._make(highlighted)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Create rows below the view when scrolling comes near the last one."""
        super().watch_scroll_y(old_value, new_value)
        if self.option_count < self._count and new_value >= self.max_scroll_y - self.size.height:
            self._make(self.option_count)
