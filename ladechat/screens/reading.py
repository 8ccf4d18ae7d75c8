"""A saved conversation that is read while another one is answered."""

from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Label

from ladechat.keys import READING_KEYS
from ladechat.palette import Palette
from ladechat.screens.lists.conversations import Chosen
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.widgets.bars.find_bar import FindBar
from ladechat.widgets.cells import printable
from ladechat.widgets.dates import dated
from ladechat.widgets.formatting import counted, name_of
from ladechat.widgets.transcript.transcript import Transcript
from ladechat.widgets.transcript.whole import WholeMessage, messages_of


class ReadingScreen(StyledOnce[Chosen | None]):
    """Shows a saved conversation over the chat, in which an answer is written meanwhile. Its result is the
    conversation, if the user wants to go on with it in the chat.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(READING_KEYS)

    def __init__(self, chosen: Chosen, *, formatted: bool) -> None:
        super().__init__()
        self._chosen, shown = chosen, replace(chosen.conversation.tree)
        if chosen.place is not None and not chosen.place.shown:
            shown.show(chosen.place.exchange)
        self._saved = replace(chosen.conversation, tree=shown)
        self._transcript = Transcript(id="transcript")
        self._transcript.set_reactive(Transcript.formatted, formatted)
        self._finding = FindBar(self._transcript, self._transcript)
        self.first_focus = self._transcript

    def compose(self) -> ComposeResult:
        saved = self._saved
        facts = (dated(saved.when), counted(saved.questions, "question"), name_of(saved.model))
        yield Label(printable(f"{saved.title} · {' · '.join(facts)}"), id="head", markup=False)
        yield self._transcript
        yield from bottom(self._finding)

    def on_mount(self) -> None:
        self.watch(self.app, "palette", self._show_palette)
        self.set_focus(self._transcript)
        self.call_after_refresh(self._show)

    def _show_palette(self, palette: Palette) -> None:
        self._transcript.palette = palette

    def _show(self) -> None:
        place, messages, begin = self._chosen.place, list[WholeMessage](), list[int]()
        for exchange in self._saved.exchanges:
            begin.append(len(messages))
            messages += messages_of(exchange)
        self._transcript.open(messages)
        if place is not None:
            shown = self._saved.tree.path.index(place.exchange)
            question, end = [*begin, len(messages)][shown : shown + 2]
            self._transcript.scroll_to_text(range(question + place.answer, end), place.text)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        """Go on with this conversation in the chat."""
        self.dismiss(self._chosen)

    def action_find(self) -> None:
        self._finding.open()

    def action_switch_format(self) -> None:
        self._transcript.formatted = not self._transcript.formatted

    def action_fold(self) -> None:
        self._transcript.action_fold()
