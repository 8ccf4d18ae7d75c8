"""The list of saved conversations: search, open, rename and delete them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, Label, OptionList

from ladechat.keys import CONVERSATIONS_KEYS
from ladechat.own_keys import with_own_keys
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.session.conversations.folder import ConversationInUse
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.search import Listed, Listing, MatchPlace, ScannedConversations, place_of
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.cells import printable
from ladechat.widgets.dates import dated
from ladechat.widgets.formatting import counted, name_of
from ladechat.widgets.inputs import Field
from ladechat.widgets.lists import LongList

NONE_YET = "No conversations yet. Ask something: answers are saved here."
NONE_FOUND = "Nothing has all of these words, neither a title nor a text."
DELETED = "Deleted; Ctrl+Z brings it back: {}"
READING = "Reading {:,} conversations that are new or have changed: {:.0%}"
GONE = "It cannot be read any more; the list is up to date again."
RENAMING = "A title for it; an empty one is the first question again."
LONG = 200
"""The number of files from which on reading them takes as long as to be worth a word."""
RENAMING_ACTIONS = ("take_title", "leave_title")
SEARCH_ACTIONS = ("leave", "move", "undo")
CHOSEN_ACTIONS = ("open", "rename", "pin", "delete")
"""The actions on the highlighted conversation."""


class Chosen(NamedTuple):
    """The conversation that was chosen from the list. `place` is where the search text was found in it; None if nothing
    was searched for, or the title matched.
    """

    conversation: SavedConversation
    place: MatchPlace | None = None


class ConversationsScreen(StyledOnce[Chosen | None]):
    """A searchable list, pinned conversations first, then the latest. Deletions can be undone until the program ends.

    One field has the keyboard: the search, or the new title. The arrow keys move in the list. `hint` is what to know
    first; it stands above the list while nothing else does.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(CONVERSATIONS_KEYS)

    def __init__(self, store: ConversationStore, hint: str = "") -> None:
        super().__init__()
        self._store, self._hint = store, hint
        self._listing: Listing = ScannedConversations(())
        self._found: Sequence[Listed] = ()
        self._read: dict[Path, SavedConversation | None] = {}  # those whose excerpts were shown
        self._left = False
        self._shown_for: str | None = None  # the search text whose matches are listed
        self._loaded = asyncio.Event()
        self._renamed: Listed | None = None
        self._search = Field(self._settle, placeholder="Words or a phrase in titles and texts", id="search")
        self.first_focus = self._search
        self._title = Field(self._settle, id="title")
        self._list = LongList()
        self._head = Label("Conversations", id="head")
        self._said = Label("", markup=False, id="said")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._search
        yield self._title
        yield self._said
        yield self._list
        yield from bottom()

    async def on_mount(self) -> None:
        self._list.can_focus = False
        self._title.display = False
        self.set_focus(self._search)
        self.run_worker(self._begin())

    def on_unmount(self) -> None:
        """End the reading of files."""
        self._left = True

    async def _begin(self) -> None:
        await self._list_anew()
        if self._store.deleted:
            self._say(DELETED.format(self._store.deleted[-1].title))

    async def _list_anew(self, chosen: Listed | None = None) -> None:
        """Read what has changed, in a thread; then show the list, with `chosen` highlighted, or else its first row."""
        loop = asyncio.get_running_loop()

        def go_on(done: int, count: int) -> bool:
            loop.call_soon_threadsafe(self._show_reading, done, count)
            return not self._left

        self._listing = await asyncio.to_thread(self._store.listing, go_on)
        self._loaded.set()
        self._read.clear()
        self._show(chosen)

    def _show_reading(self, done: int, count: int) -> None:
        if count > LONG and not self._loaded.is_set():
            self._say(READING.format(count, done / count))

    # --- the list -----------------------------------------------------------------------------------------------------

    @property
    def _chosen(self) -> Listed | None:
        place = self._list.highlighted
        return self._found[place] if place is not None and place < len(self._found) else None

    @on(Input.Changed, "#search")
    def _searched(self) -> None:
        """Update the list; a key may arrive before the field's event for the letters typed before it."""
        if self._search.value != self._shown_for and self._loaded.is_set():
            self._show()

    async def _settle(self) -> None:
        """Wait for the list and for the search, so that keys act on the conversations that are typed for."""
        await self._loaded.wait()
        self._searched()

    def _show(self, chosen: Listed | None = None) -> None:
        """Show the matches of the search, and highlight one."""
        self._shown_for = self._search.value
        self._found = self._listing.find(self._shown_for)
        path = None if chosen is None else chosen.path
        place = next((place for place, one in enumerate(self._found) if one.path == path), 0)
        self._list.show(len(self._found), lambda number: self._row(self._found[number]), place)
        head = f"Conversations · {len(self._found):,}" if self._found else "Conversations"
        self._head.update(head, layout=False)
        self._say(self._store.problem or (self._hint if self._found else NONE_FOUND if self._listing.all else NONE_YET))
        self.refresh_bindings()

    def _row(self, conversation: Listed) -> Content:
        facts = [
            dated(conversation.when),
            counted(conversation.questions, "question"),
            printable(name_of(conversation.model)),
        ]
        if conversation.path == self._store.path:
            facts.append("open")
        if conversation.pinned:
            facts.insert(0, "pinned")
        title, place = (f"{printable(conversation.title)}\n", "bold"), self._place(conversation)
        if place is None:
            return Content.assemble(title, " · ".join(facts))
        before, found, after = printable(place.excerpt).partition(printable(" ".join(place.text.split())))
        other = "" if place.shown else "another variant: "
        return Content.assemble(title, f"{other}… {before}", (found, "bold"), " · ".join([f"{after} …", *facts]))

    def _place(self, conversation: Listed) -> MatchPlace | None:
        """Return the place that the search has found in a conversation."""
        saved = self._saved(conversation) if self._search.value.strip() else None
        return None if saved is None else place_of(saved, self._search.value)

    def _saved(self, conversation: Listed) -> SavedConversation | None:
        """Return a conversation with its texts; None if it cannot be read any more."""
        if conversation.path not in self._read:
            self._read[conversation.path] = self._store.read(conversation.path)
        return self._read[conversation.path]

    def _say(self, text: str) -> None:
        said = printable(with_own_keys(text, self.app))
        if said != self._said.content:  # else the screen would be laid out for nothing, at every letter
            self._said.update(said)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: while a title is edited, only saving and cancelling are."""
        renaming = self._renamed is not None
        if action in RENAMING_ACTIONS:
            return renaming
        if action in CHOSEN_ACTIONS:
            return not renaming and (True if self._chosen is not None else None)
        if action == "undo" and not self._store.deleted:
            return False
        return not (renaming and action in SEARCH_ACTIONS)

    @on(OptionList.OptionSelected)
    async def action_open(self) -> None:
        """Close the list and continue the conversation in the chat."""
        if (chosen := self._chosen) is None:
            return
        if (saved := self._saved(chosen)) is not None:
            self.dismiss(Chosen(saved, self._place(chosen)))
        else:
            await self._list_anew()
            self._say(GONE)

    def action_move(self, how: str) -> None:
        getattr(self._list, f"action_{how}")()

    def action_rename(self) -> None:
        """Open the field for a new title."""
        assert self._chosen is not None
        self._renamed = self._chosen
        self._title.value = self._chosen.title
        self._search.display, self._title.display = False, True
        self.set_focus(self._title)
        self._say(RENAMING)
        self.refresh_bindings()

    async def action_take_title(self) -> None:
        conversation, title = self._renamed, self._title.value
        assert conversation is not None
        self.action_leave_title()
        try:
            self._store.rename(conversation, title)
        except OSError as error:
            self._say(f"It cannot be renamed: {error.strerror or error}.")
        else:
            await self._list_anew(conversation)

    def action_leave_title(self) -> None:
        self._renamed = None
        self._search.display, self._title.display = True, False
        self.set_focus(self._search)
        self._say("")
        self.refresh_bindings()

    async def action_pin(self) -> None:
        """Pin the conversation to the top of the list, or unpin it."""
        conversation = self._chosen
        assert conversation is not None
        try:
            self._store.pin(conversation, not conversation.pinned)
        except OSError as error:
            self._say(f"It cannot be pinned: {error.strerror or error}.")
        else:
            await self._list_anew(conversation)

    async def action_delete(self) -> None:
        """Delete the conversation. It can be restored until the program ends."""
        conversation = self._chosen
        assert conversation is not None
        try:
            self._store.delete(conversation)
        except ConversationInUse:
            self._say("It is open, here or in another ladechat. Begin a new conversation there first (Ctrl+L).")
        except OSError as error:
            self._say(f"It cannot be deleted: {error.strerror or error}.")
        else:
            place = self._found.index(conversation)
            below, above = self._found[place + 1 : place + 2], self._found[:place][-1:]
            await self._list_anew(next(iter((*below, *above)), None))
            self._say(DELETED.format(conversation.title))

    async def action_undo(self) -> None:
        """Restore the conversation that was deleted last."""
        try:
            conversation = self._store.restore()
        except OSError as error:
            self._say(f"It cannot be brought back: {error.strerror or error}.")
        else:
            await self._list_anew(conversation)
