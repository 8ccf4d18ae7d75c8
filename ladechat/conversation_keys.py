"""The keys of the list of conversations, and of one that is read while another is answered."""

from textual.binding import Binding

CONVERSATIONS_KEYS = (
    Binding("enter", "open", "Open", id="open", tooltip="Go on with this conversation."),
    Binding("enter", "take_title", "Take title", id="take_title", tooltip="Give it this title."),
    Binding("up", "move('cursor_up')", "Up", show=False, id="up", tooltip="The one above."),
    Binding("down", "move('cursor_down')", "Down", show=False, id="down", tooltip="The one below."),
    Binding("pageup", "move('page_up')", "Page up", show=False, id="page_up", tooltip="A page up."),
    Binding("pagedown", "move('page_down')", "Page down", show=False, id="page_down", tooltip="A page down."),
    Binding("f2", "rename", "Rename", id="rename", tooltip="Give it a title."),
    Binding("f4", "pin", "Pin", id="pin", tooltip="Keep it at the top of the list, or no longer."),
    Binding("f8", "delete", "Delete", id="delete", tooltip="Delete it; this can be undone until you quit."),
    Binding("ctrl+z", "undo", "Undo", id="undo", tooltip="Bring back what was deleted."),
    Binding("escape", "leave", "Close", id="leave", tooltip="To the chat."),
    Binding("escape", "leave_title", "Leave title", id="leave_title", tooltip="Leave the title as it was."),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="End the engine and leave."),
)

READING_KEYS = (
    Binding("enter", "open", "Go on with it", id="open", tooltip="Go on with this conversation in the chat."),
    Binding("ctrl+f", "find", "Find", priority=True, id="find", tooltip="Find a text in this conversation."),
    Binding("ctrl+g", "switch_format", "Format", id="format", tooltip="Answers as formatted Markdown, or as written."),
    Binding("ctrl+n", "fold", "Fold", show=False, id="fold", tooltip="Open or fold long questions and thoughts."),
    Binding("escape", "leave", "To the chat", id="leave", tooltip="To the chat."),
    Binding(
        "ctrl+c", "interrupt", "Copy or leave", show=False, priority=True, id="interrupt", tooltip="Copy or leave."
    ),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="End the engine and leave."),
)
