"""A list to choose from, in which what is marked can be seen."""

from textual.widgets import OptionList


class MarkedList(OptionList):
    """Keeps the marked row in view also when there is less room for the list, as below a sentence that is longer."""

    def on_resize(self) -> None:
        self.call_after_refresh(self.scroll_to_highlight)
