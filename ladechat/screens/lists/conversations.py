"""The list of saved conversations: search, open, rename and delete them."""

import asyncio
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, Label, OptionList

from ladechat.keys import CONVERSATIONS_KEYS
from ladechat.screens.styled_once import StyledOnce
from ladechat.session.conversations.saved import ConversationSearch, MatchPlace, SavedConversation
from ladechat.session.conversations.store import ConversationInUse, ConversationStore
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.bars.message_line import MessageLine
from ladechat.widgets.cells import printable
from ladechat.widgets.formatting import counted, name_of
from ladechat.widgets.inputs import Field
from ladechat.widgets.lists import LongList
from ladechat.widgets.too_small import TooSmall

NONE_YET = "No conversations yet. Ask something: what is answered is kept here."
NONE_FOUND = "Nothing has all of these words, neither a title nor a text."
DELETED = "Deleted; Ctrl+Z brings it back: {}"
RENAMING = "A title for it; an empty one is the first question again."
RENAMING_ACTIONS = ("take_title", "leave_title")
SEARCH_ACTIONS = ("leave", "move", "undo")
CHOSEN_ACTIONS = ("open", "rename", "delete")
"""The actions on the highlighted conversation."""


class Chosen(NamedTuple):
    """The conversation that was chosen from the list.

    Attributes:
        conversation: the saved conversation.
        place: the place of the match; None if nothing was searched for, or the title matches.
    """

    conversation: SavedConversation
    place: MatchPlace | None = None


class ConversationsScreen(StyledOnce[Chosen | None]):
    """A searchable list, the latest conversation first. Deletions can be undone until the program ends.

    One field has the keyboard: the search, or the new title. The arrow keys move in the list.

    Args:
        store: the saved conversations.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(CONVERSATIONS_KEYS)

    def __init__(self, store: ConversationStore) -> None:
        super().__init__()
        self._store = store
        self._all: list[SavedConversation] = []
        self._index = ConversationSearch(())
        self._found: list[SavedConversation] = []
        self._shown_for: str | None = None  # the search text whose matches are listed
        self._loaded = asyncio.Event()
        self._renamed: SavedConversation | None = None
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
        yield MessageLine()
        yield KeyFooter()
        yield TooSmall()

    async def on_mount(self) -> None:
        self._list.can_focus = False
        self._title.display = False
        self.set_focus(self._search)
        await self._read()
        self._loaded.set()
        if self._store.deleted:
            self._say(DELETED.format(self._store.deleted[-1].title))

    async def _read(self, chosen: SavedConversation | None = None) -> None:
        """Read all files again, in a thread; then highlight the conversation that was highlighted before."""
        self._all = await asyncio.to_thread(self._folded)
        self._index = ConversationSearch(self._all)
        found = self._index.find(self._search.value)
        path = None if chosen is None else chosen.path
        places = (place for place, conversation in enumerate(found) if conversation.path == path)
        self._show(next(places, 0))

    def _folded(self) -> list[SavedConversation]:
        """Return all conversations, prepared for the search."""
        conversations = self._store.conversations()
        for conversation in conversations:
            conversation.folded  # noqa: B018 - computed in this thread, and not at the first letter
        return conversations

    # --- the list -----------------------------------------------------------------------------------------------------

    @property
    def _chosen(self) -> SavedConversation | None:
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

    def _show(self, place: int = 0) -> None:
        """Show the matches of the search, and highlight one by its index."""
        self._shown_for = self._search.value
        self._found = self._index.find(self._shown_for)
        self._list.show(len(self._found), lambda number: self._row(self._found[number]), place)
        self._head.update(f"Conversations · {len(self._found):,}" if self._found else "Conversations")
        self._say(self._store.unread or ("" if self._found else NONE_FOUND if self._all else NONE_YET))
        self.refresh_bindings()

    def _row(self, conversation: SavedConversation) -> Content:
        facts = [
            f"{conversation.when:%d %b %Y, %H:%M}",
            counted(len(conversation.answers), "question"),
            printable(name_of(conversation.model)),
        ]
        if conversation.path == self._store.path:
            facts.append("open")
        place = self._index.place(conversation, self._search.value)
        facts += [f"… {printable(place.excerpt)} …"] if place else []
        return Content.assemble((printable(conversation.title), "bold"), "\n", " · ".join(facts))

    def _say(self, text: str) -> None:
        self._said.update(printable(text))

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
    def action_open(self) -> None:
        """Close the list and continue the conversation in the chat."""
        conversation = self._chosen
        if conversation is not None:
            self.dismiss(Chosen(conversation, self._index.place(conversation, self._search.value)))

    def action_leave(self) -> None:
        """Return to the chat."""
        self.dismiss(None)

    def action_move(self, how: str) -> None:
        """Highlight another conversation."""
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
        """Save the typed title."""
        conversation = self._renamed
        assert conversation is not None
        try:
            self._store.rename(conversation, self._title.value)
        except OSError as error:
            self.action_leave_title()
            self._say(f"It cannot be renamed: {error.strerror or error}.")
        else:
            self.action_leave_title()
            await self._read(conversation)

    def action_leave_title(self) -> None:
        """Cancel renaming."""
        self._renamed = None
        self._search.display, self._title.display = True, False
        self.set_focus(self._search)
        self._say("")
        self.refresh_bindings()

    def action_delete(self) -> None:
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
            self._all.remove(conversation)
            self._index = ConversationSearch(self._all)
            self._show(place)
            self._say(DELETED.format(conversation.title))

    async def action_undo(self) -> None:
        """Restore the conversation that was deleted last."""
        try:
            conversation = self._store.restore()
        except OSError as error:
            self._say(f"It cannot be brought back: {error.strerror or error}.")
        else:
            await self._read(conversation)
