"""The prompt: the input in which the user types a question or a command."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast
from weakref import WeakSet

from textual import events, on
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.document._document import Document
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult

from ladechat.attachments import dropped, named
from ladechat.widgets.inputs import ALT, TypedText, forwarded
from ladechat.widgets.later import call_later
from ladechat.widgets.prompt.completions import Completions

MOVES = {
    "cursor_left": "left",
    "cursor_right": "right",
    "cursor_line_start": "home",
    "line_end": "end",
    "earlier": "up",
    "delete_right": "delete",
}
"""Keys that a screen may claim, by the text area's actions for them."""

SECONDS_BETWEEN_KEYS = 0.005
"""Keys closer together than this were not typed by hand."""
SECONDS_TO_COLLECT = 0.1
"""How long such keys are collected before they are inserted together."""
NOT_OF_THE_PROMPT = ("select_line", "select_all")
"""The actions of a text area for F6 and F7, which belong to the app."""
EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
"""Those before a text. The indentation of its first line stays."""


class Prompt(TypedText):
    """Several lines of input: Enter sends, Ctrl+J, Alt+Enter or Shift+Enter breaks the line, up and down recall earlier
    texts, `@path` names a file.
    """

    DEFAULT_CSS = """
    Prompt { height: auto; min-height: 1; max-height: 6; padding: 0 1; border: none; background: $surface; }
    Prompt:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="prompt.send", tooltip="Send the question."),
        Binding("ctrl+j,alt+enter,shift+enter", "break_line", "New line", show=False, id="prompt.break_line"),
        Binding("up", "earlier", "Earlier question", show=False, id="prompt.earlier"),
        Binding("down", "later", "Later question", show=False, id="prompt.later"),
        Binding("ctrl+a", "all", "Select all", show=False, id="prompt.all"),
        Binding("ctrl+x", "cut", "Cut; Ctrl+E after it: editor", show=False, id="prompt.cut"),
        Binding("ctrl+home", "document_start(False)", "To the first line", show=False, id="prompt.document_start"),
        Binding("ctrl+end", "document_end(False)", "To the last line", show=False, id="prompt.document_end"),
        Binding("ctrl+shift+home", "document_start(True)", "Select", show=False, id="prompt.select_to_start"),
        Binding("ctrl+shift+end", "document_end(True)", "Select", show=False, id="prompt.select_to_end"),
        Binding("end", "line_end", "End of line", show=False, id="prompt.line_end"),
        Binding("tab", "complete", "Complete", show=False, id="prompt.complete"),
        Binding("escape", "close_commands", "Close the list", show=False, id="prompt.close_commands"),
    ]

    @dataclass
    class Sent(Message):
        """The user has sent a question: `text`."""

        text: str

    @dataclass
    class Commanded(Message):
        """The user has sent a command: `text` is its name and its argument, without the slash."""

        text: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask something. Enter sends, Ctrl+J begins a new line, @ names a file.",
        )
        self.commands = Completions()
        self._past: list[str] = []
        self._place = 0
        self._draft = ""
        self._typed: list[str] = []
        self._last_key_at = 0.0
        self._after_ctrl_x = False
        self.shown_at = 0.0
        """Monotonic time of the first frame, in seconds. Keys typed before it were read in the shell's line mode, in
        which Enter arrives as a line feed (ctrl+j).
        """
        self.seen: WeakSet[events.Key] = WeakSet()
        """Keys handled by the prompt; in a burst, more are handled before the first has bubbled up to the screen."""
        self.passed_on: frozenset[str] = frozenset()
        """Keys that belong to the screen while the prompt is empty."""
        self.offered: Sequence[str] = ()
        """Questions that Tab writes into the empty prompt, one after the other."""
        self.lent: frozenset[str] = frozenset()
        """Keys that belong to the screen in any case."""

    @property
    def question(self) -> str:
        """The typed question; "" if there is none, or a command.

        A text that begins with a slash is a command; with two slashes, or a space before the slash, it is a question.
        """
        text = EMPTY_LINES.sub("", self.text).rstrip()
        return "" if is_command(text) else text[1:] if text.startswith(("//", " /")) else text

    @property
    def draft(self) -> str:
        """What was typed and not sent, also while an earlier question stands in its place."""
        return self.text if self._place == len(self._past) else self._draft

    @property
    def is_blank(self) -> bool:
        return not (self._typed or self.document.text)

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        """Return whether a key is text for the prompt."""
        return not self.passes_on(key) and super().check_consume_key(key, character)

    def passes_on(self, key: str) -> bool:
        return key in self.lent or (key in self.passed_on and self.is_blank)

    def remember(self, past: Sequence[str]) -> None:
        """Set the history to these questions of earlier sessions, oldest first."""
        self._past = [_as_question(text) for text in past]
        self._place = len(self._past)

    async def on_key(self, event: events.Key) -> None:
        """Handle Enter, which a text area takes for a line break, and all other keys in order. A priority binding for
        Enter would act before text typed earlier is inserted.

        Bindings, including the screen's, are run immediately. Textual would look them up when the key has bubbled up to
        the app: a letter typed after Backspace would be handled before it, and a search typed after Ctrl+O would be
        sent as a question.

        Keys faster than anybody types, as in a paste that the terminal does not mark as one, are collected and inserted
        together, since each insertion wraps the whole line again. The time that counts is when they were read: after a
        slow insertion, the next key is handled late.
        """
        if forwarded(self, event):
            return
        self.seen.add(event)
        if self.passes_on(event.key):
            event.prevent_default()
            await self._run_bound(event)
            return
        if event.key.startswith(ALT):
            self._insert_typed()
            if await self._run_bound(event):
                return
        character = event.character if event.is_printable else None
        fast, self._last_key_at = event.time - self._last_key_at < SECONDS_BETWEEN_KEYS, event.time
        if character is not None and (fast or self._typed):
            event.prevent_default().stop()
            if not self._typed:
                call_later(self, SECONDS_TO_COLLECT, self._insert_typed)
            self._typed.append(character)
            return
        self._insert_typed()
        after_ctrl_x, self._after_ctrl_x = self._after_ctrl_x, event.key == "ctrl+x" and self.selection.is_empty
        if event.key == "ctrl+e" and after_ctrl_x:
            event.prevent_default().stop()
            await self.app.run_action("editor", self.screen)
            return
        if event.key == "enter" or (event.key == "ctrl+j" and event.time < self.shown_at):
            event.prevent_default().stop()
            await self.action_send()
            return
        if not event.is_printable:
            await self._run_bound(event)

    async def _run_bound(self, event: events.Key) -> bool:
        """Run the binding of a key, in the prompt, on the screen, or in the app; return whether there is one."""
        if bound := await self.app._check_bindings(event.key):
            event.prevent_default().stop()
        return bound

    def on_paste(self, event: events.Paste) -> None:
        """Insert a paste after the typed text, and only once: the app would send it here again.

        Paths of files, as those dropped on the terminal, are inserted as a question or a command names them.
        """
        if forwarded(self, event):
            return
        event.stop()
        self._insert_typed()
        if paths := dropped(event.text):
            event.text = " ".join(paths) if is_command(self.text) else " ".join(map(named, paths)) + " "

    def _insert_typed(self) -> None:
        text, self._typed = "".join(self._typed), []
        if text:
            self.replace(text, *self.selection, maintain_selection_offset=False)

    @property
    def text(self) -> str:
        """The text, including keys collected so far."""
        self._insert_typed()
        return super().text

    @text.setter
    def text(self, value: str) -> None:
        self.load_text(value)

    def edit(self, edit: Edit) -> EditResult:
        """Insert or replace text. The first text in an empty prompt decides its line breaks; to empty it leaves the
        history.
        """
        if not self.document.text:
            cast(Document, self.document)._newline = "\r\n" if "\r\n" in edit.text else "\n"
        result = super().edit(edit)
        if not self.document.text:
            self._place = len(self._past)
        return result

    async def action_send(self) -> None:
        """Send the text unless it is empty; for an incomplete command, run the highlighted one. A highlighted file is
        only written.

        The screen handles it before the next key acts, since that key may belong to a screen that a command opens.
        """
        text = self.text.rstrip()
        if self.commands.display:  # messages about the last keys may not have reached the list
            self._offer_completions()
        marked = self.commands.marked
        if marked is not None and marked.enter != "ignores" and not marked.is_typed:
            self.action_complete()
            text = self.text.rstrip()
            if marked.enter == "writes":
                return
        command = is_command(text)
        said = text if command else self.question
        if said:
            remembered = said if command else _as_question(said)
            if self._past[-1:] != [remembered]:
                self._past.append(remembered)
            self._place = len(self._past)
            self.load_text("")  # cannot be undone
            self.commands.display = False
            taken = asyncio.Event()
            self.screen.post_message(self.Commanded(said[1:]) if command else self.Sent(said))
            self.screen.call_later(taken.set)
            await taken.wait()

    @on(TextArea.Changed)
    def _offer_completions(self) -> None:
        """List what the typed text may become, except for text recalled from the history."""
        typing = self._place == len(self._past)
        row, column = self.cursor_location
        before_cursor = self.document.get_line(row)[:column]
        self.commands.offer(*(self.document.text, before_cursor) if typing else ("", ""))

    def action_complete(self) -> None:
        """Write what is highlighted in the list, or without a list the next of the questions that are offered."""
        marked, offered = self.commands.marked, self.offered
        if marked is None:
            if offered:
                self._put(offered[(offered.index(self.text) + 1) % len(offered) if self.text else 0])
            return
        if marked.typed == self.document.text:
            self._put(marked.text)
        else:
            row, column = self.cursor_location
            self.replace(marked.text, (row, column - len(marked.typed)), (row, column), maintain_selection_offset=False)

    def action_close_commands(self) -> None:
        """Close the list; the typed text stays."""
        self.commands.display = False

    def action_break_line(self) -> None:
        self.insert("\n")

    def action_earlier(self) -> None:
        """Recall the previous text in the first row; elsewhere move up."""
        if self.commands.display:
            self.commands.action_cursor_up()
        elif not self.navigator.is_first_wrapped_line(self.cursor_location) or not self._past:
            self.action_cursor_up()
        else:
            self._recall(self._place - 1)

    def action_later(self) -> None:
        """Recall the next text in the last row; elsewhere move down."""
        if self.commands.display:
            self.commands.action_cursor_down()
        elif not self.navigator.is_last_wrapped_line(self.cursor_location) or not self._past:
            self.action_cursor_down()
        else:
            self._recall(self._place + 1)

    def action_line_end(self) -> None:
        """Move to the end of the line; in an empty prompt, leave the key to the conversation."""
        if not self.text:
            raise SkipAction
        self.action_cursor_line_end()

    def action_all(self) -> None:
        """Select all lines, for Backspace or other text to replace."""
        self.select_all()

    def action_cut(self) -> None:
        """Cut the selection; without one, do nothing: Ctrl+E may follow."""
        if not self.selection.is_empty:
            super().action_cut()

    def action_document_start(self, select: bool) -> None:
        self.move_cursor((0, 0), select=select)

    def action_document_end(self, select: bool) -> None:
        self.move_cursor(self.document.end, select=select)

    def action_cursor_page_up(self) -> None:
        """Leave the key to the conversation: the prompt has no pages."""
        raise SkipAction

    action_cursor_page_down = action_cursor_page_up

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: keys that belong to the screen do not move the cursor."""
        if action in ("complete", "close_commands"):
            return self.commands.display or (
                bool(self.offered) and action == "complete" and self.document.text in ("", *self.offered)
            )
        passed_on = action in MOVES and self.passes_on(MOVES[action])
        return not passed_on and action not in NOT_OF_THE_PROMPT

    def replace_all(self, text: str) -> None:
        """Replace the text by an edited one, which Ctrl+Z undoes."""
        self.replace(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def offer(self, text: str) -> None:
        """Put back a text that could not be answered, unless the user has typed something."""
        if not self.text:
            self._put(_as_question(text))

    def offer_command(self, text: str) -> None:
        """Put a command into the prompt, to be run or edited, unless the user has typed something."""
        if not self.text:
            self._put(text)
            self.commands.display = False

    def _recall(self, place: int) -> None:
        if self._place == len(self._past):
            self._draft = self.text
        self._place = min(max(place, 0), len(self._past))
        self._put(self._past[self._place] if self._place < len(self._past) else self._draft)

    def _put(self, text: str) -> None:
        """Replace the text, with the cursor at its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)


def is_command(text: str) -> bool:
    """Return whether a typed text is a command."""
    return text.startswith("/") and not text.startswith("//")


def _as_question(text: str) -> str:
    """Return a question as it would be typed, so that it is not taken for a command."""
    return f" {text}" if text.startswith("/") else text
