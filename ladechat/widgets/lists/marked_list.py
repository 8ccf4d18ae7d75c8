"""A list of options whose highlighted row stays visible."""

from textual.widgets import OptionList


class MarkedList(OptionList):
    """Scrolls to the highlighted row when the list gets fewer rows, as below a longer sentence."""

    def on_resize(self) -> None:
        self.call_after_refresh(self.scroll_to_highlight)
