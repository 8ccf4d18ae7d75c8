"""Every key of the app, once: what binds it, the footer, the command palette and docs/keys.md all read this table."""

from textual.binding import Binding

APP_KEYS = (
    Binding("escape", "stop", "Stop", id="stop", tooltip="Stop the answer that is being written."),
    Binding("f2", "toggle_panels", "Panels", id="panels", tooltip="Show or hide the panels at the right."),
    Binding("f3", "switch_decoder", "Decoder", id="decoder", tooltip="Lookahead or plain decoding."),
    Binding("f4", "switch_look", "Colours", id="look", tooltip="A hue for each step, or blue for parallel ones."),
    Binding("f6", "slow_motion", "Slow", id="slow", tooltip="Show about four steps a second, or as they come."),
    Binding("f5", "restart_engine", "Restart engine", show=False, id="restart", tooltip="Start the engine again."),
    Binding("pageup", "page_up", "Page up", show=False, id="page_up", tooltip="Earlier in the conversation."),
    Binding("pagedown", "page_down", "Page down", show=False, id="page_down", tooltip="Later in the conversation."),
    Binding("end", "follow", "To the end", show=False, id="follow", tooltip="To the end of the conversation."),
    Binding("ctrl+l", "new_conversation", "New", show=False, id="new", tooltip="Begin a new conversation."),
    Binding(
        "ctrl+c",
        "interrupt",
        "Copy or stop",
        show=False,
        priority=True,
        id="interrupt",
        tooltip="Copy the selection; without one stop the answer; twice: quit.",
    ),
    Binding("ctrl+q", "quit", "Quit", priority=True, id="quit", tooltip="End the engine and leave."),
)
