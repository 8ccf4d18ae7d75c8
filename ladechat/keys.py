"""All keys of the app: bindings, the footer, the command palette and docs/keys.md are generated from these tables."""

from dataclasses import replace

from textual.binding import Binding

NAMES = {
    "escape": "Esc", "up": "↑", "down": "↓", "left": "←", "right": "→", "plus": "+", "minus": "-", "slash": "/",
    "pageup": "Page Up", "pagedown": "Page Down", "question_mark": "?",
    "left_square_bracket": "[", "right_square_bracket": "]",
}  # fmt: skip
"""The keys whose names are not their letters."""

EXPLAIN_KEY = "question_mark"
"""Typed like other characters if the prompt is not empty."""

_HELP = Binding("f1", "app.help", "Help", id="help", tooltip="What is on the screen, and all keys.")

SHARED_KEYS = (
    Binding("f2", "app.toggle_panels", "Panels", id="panels", tooltip="Show or hide the panels at the right."),
    Binding(
        "f4",
        "app.switch_look",
        "Look",
        show=False,
        id="look",
        tooltip="A hue for each pass, or blue for parallel ones.",
    ),
    Binding("pageup", "app.page_up", "Page up", show=False, id="page_up", tooltip="Earlier in the conversation."),
    Binding("pagedown", "app.page_down", "Page down", show=False, id="page_down", tooltip="Later in the conversation."),
    Binding("f8", "app.copy_answer", "Copy answer", show=False, id="copy_answer", tooltip="Copy the last answer."),
    _HELP,
    Binding(
        "ctrl+g",
        "app.switch_format",
        "Format",
        show=False,
        id="format",
        tooltip="Answers as formatted Markdown, or in the colours of passes.",
    ),
    Binding("ctrl+n", "app.fold", "Fold", show=False, id="fold", tooltip="Open or fold long questions and thoughts."),
    Binding(
        EXPLAIN_KEY,
        "app.explain",
        "Explain",
        show=False,
        key_display="?",
        id="explain",
        tooltip="Explain each panel, with its numbers.",
    ),
    Binding(
        "f10",
        "app.switch_view",
        "View",
        show=False,
        id="view",
        tooltip="The attention mask first, the history of a token first, or all panels.",
    ),
)

TITLES = {"record": "Record the session", "slow": "Slow motion", "edit": "Edit question", "again": "Regenerate"}
"""The titles in the command palette of keys with shorter labels in the footer, by their ids."""


def key_names(binding: Binding) -> str:
    """Return the keys of a binding as labelled on keyboards: `left,ctrl+b` as ←, Ctrl+B."""
    return ", ".join(map(key_name, binding.key.split(",")))


def key_name(key: str) -> str:
    """Return the label of a key."""
    return key if len(key) == 1 else "+".join(NAMES.get(part, part.capitalize()) for part in key.split("+"))


_CLOSE = Binding("escape", "close", "Close", id="close", tooltip="To the screen below.")

EXPLAIN_KEYS = (
    _CLOSE,
    replace(_CLOSE, key=EXPLAIN_KEY, show=False, id="explain"),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="Leave the program."),
)

HELP_KEYS = (
    _CLOSE,
    replace(_CLOSE, key="f1", show=False, id="help"),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="Leave the program."),
)

_PACE = Binding.Group("Pace", compact=True)

PACE_KEYS = (
    Binding("space", "pause", "Pause", id="pause", tooltip="Pause the answer, or go on."),
    Binding("right", "take_step", "One pass", id="take_step", tooltip="One pass of a paused answer."),
    Binding("left_square_bracket", "slower", "Slower", group=_PACE, id="slower", tooltip="Fewer passes a second."),
    Binding("right_square_bracket", "faster", "Faster", group=_PACE, id="faster", tooltip="More passes a second."),
)
"""The keys that are active while an answer is generated; typed like other characters if the prompt is not empty."""

PACE_IDS = tuple(key.id for key in PACE_KEYS if key.id)
WALK_IDS = ("look_back", "look_on", "first_step", "last_step")
"""While the user looks back, these keys move between the steps instead of the cursor, until something is typed."""

LOOK_KEYS = (
    Binding("escape", "leave_steps", "Newest", id="leave_steps", tooltip="From looking back to the newest state."),
    Binding(
        "left,ctrl+b", "look_back", "Back", id="look_back", tooltip="Look back, pass by pass; Ctrl+B while typing too."
    ),
    Binding("right", "look_on", "On", id="look_on", tooltip="One pass on, while looking back."),
    Binding("home", "first_step", "First pass", show=False, id="first_step", tooltip="To the answer's first pass."),
    Binding("end", "last_step", "Last pass", show=False, id="last_step", tooltip="To the answer's last pass."),
)
"""The keys that are active while the user looks back. Each precedes another binding of the same key."""

_ASKED, _VARIANT = Binding.Group("Question", compact=True), Binding.Group("Variant", compact=True)

EARLIER_KEYS = (
    Binding("escape", "leave_editing", "Leave it", id="leave_editing", tooltip="Edit the question no more; it stays."),
    Binding("escape", "leave_question", "End", id="leave_question", tooltip="From the chosen question to the end."),
    Binding("ctrl+t", "edit_question", "Edit", id="edit", tooltip="Edit the last or the chosen question."),
    Binding("ctrl+r", "ask_again", "Again", id="again", tooltip="Answer the last or the chosen question again."),
    Binding("delete", "delete", "Delete", id="delete_question", tooltip="Delete the chosen one, with all after it."),
    Binding("alt+left", "variant(-1)", "Variant before", id="variant", group=_VARIANT, tooltip="The variant before."),
    Binding("alt+right", "variant(1)", "Next variant", id="next_variant", group=_VARIANT, tooltip="The next variant."),
    Binding("alt+up", "choose(-1)", "Earlier question", id="earlier", group=_ASKED, tooltip="Choose the one before."),
    Binding("alt+down", "choose(1)", "Later question", id="later", group=_ASKED, tooltip="Choose the next one."),
)
"""The keys for questions that were answered. The footer shows them while one is chosen."""

APP_KEYS = (
    LOOK_KEYS[0],
    Binding("escape", "stop", "Stop", id="stop", tooltip="Stop the answer, a download, or a search."),
    *(replace(key, show=False) for key in EARLIER_KEYS),
    Binding(
        "escape",
        "clear_prompt",
        "Clear",
        show=False,
        id="clear",
        tooltip="Empty the prompt, if there is nothing to stop or to leave; Ctrl+Z brings the text back.",
    ),
    PACE_KEYS[0],
    *LOOK_KEYS[1:],
    *PACE_KEYS[1:],
    SHARED_KEYS[0],
    Binding("f3", "switch_decoder", "Decoder", id="decoder", tooltip="Plain decoding, or the decoder before."),
    SHARED_KEYS[1],
    Binding("f6", "slow_motion", "Slow", id="slow", tooltip="Four passes a second, or as many as it can."),
    Binding("f7", "record", "Rec", id="record", tooltip="Begin or end a recording of the session."),
    Binding("f9", "race", "Race", show=False, id="race", tooltip="Compare decoders side by side, on one question."),
    Binding("f5", "restart_engine", "Restart engine", show=False, id="restart", tooltip="Start the engine again."),
    *(replace(key, show=key.show or key.id == "explain") for key in SHARED_KEYS[2:]),
    Binding(
        "up",
        "take_back",
        "Take back",
        show=False,
        id="take_back",
        tooltip="Bring back an earlier question; while questions wait, the last of them.",
    ),
    Binding(
        "f12",
        "editor",
        "Editor",
        show=False,
        id="editor",
        tooltip="Write the question in your editor ($VISUAL or $EDITOR); so do Ctrl+X, Ctrl+E.",
    ),
    Binding(
        "ctrl+f",
        "find",
        "Find",
        show=False,
        priority=True,
        id="find",
        tooltip="Find a text in this conversation.",
    ),
    Binding("end", "follow", "To the end", show=False, id="follow", tooltip="To the end of the conversation."),
    Binding(
        "ctrl+l",
        "new_conversation",
        "New conversation",
        show=False,
        id="new",
        tooltip="Begin a new conversation on a clear screen; keep this one.",
    ),
    Binding(
        "ctrl+o",
        "conversations",
        "Conversations",
        show=False,
        id="conversations",
        tooltip="Search the history: open, rename or delete a conversation.",
    ),
    Binding(
        "ctrl+c",
        "interrupt",
        "Copy or stop",
        show=False,
        priority=True,
        id="interrupt",
        tooltip="Copy the selection; without one stop the answer; twice: quit.",
    ),
    Binding("ctrl+q", "app.quit", "Quit", priority=True, id="quit", tooltip="End the engine and leave."),
)

APP_KEY_GROUPS = (
    (
        "Keys: questions and answers",
        (
            "stop",
            "copy_answer",
            "take_back",
            "clear",
            "editor",
            "race",
            "new",
            "conversations",
            "record",
        ),
    ),
    ("Keys: a question once more, and its variants", [key.id for key in EARLIER_KEYS if key.id]),
    ("Keys: while an answer is under way", ("pause", "take_step", "slower", "faster", "slow")),
    ("Keys: look back at an answer's passes", ("look_back", "look_on", "first_step", "last_step", "leave_steps")),
    (
        "Keys: what is shown",
        ("explain", "panels", "view", "look", "format", "fold", "find", "page_up", "page_down", "follow"),
    ),
    ("Keys: the program", ("decoder", "help", "interrupt", "restart", "quit")),
)
"""The keys of the chat by subject, each by its id, in order of importance: the sections of the help."""

LEFT_OUT_WHERE_NARROW = ("record",)
"""The ids of keys that only the footer of a wide screen shows."""
LEFT_OUT_OF_THE_FOOTER = ("prompt.send", "panels", "record", "help")
"""The ids of keys that give way to the pace keys in the footer while an answer is generated."""
LEFT_OUT_WHILE_LOOKING = (*LEFT_OUT_OF_THE_FOOTER, "decoder", "slow")
"""The ids of keys that are hidden in the footer while the user looks back."""

_LIST_KEYS = (
    Binding("up", "move('cursor_up')", "Up", show=False, id="up", tooltip="The one above."),
    Binding("down", "move('cursor_down')", "Down", show=False, id="down", tooltip="The one below."),
    Binding("pageup", "move('page_up')", "Page up", show=False, id="page_up", tooltip="A page up."),
    Binding("pagedown", "move('page_down')", "Page down", show=False, id="page_down", tooltip="A page down."),
    Binding("escape", "leave", "Close", id="leave", tooltip="To the chat."),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="End the engine and leave."),
)

MODELS_KEYS = (
    Binding("enter", "take", "Use it", id="take", tooltip="Load this model."),
    *_LIST_KEYS,
)

SETTINGS_KEYS = (
    Binding("enter", "take", "Set", id="take", tooltip="Set it to what was typed; switch on or off."),
    Binding("ctrl+s", "save", "Save", id="save", tooltip="Begin with these settings the next time."),
    *_LIST_KEYS,
)

SYSTEM_KEYS = (
    Binding("ctrl+s", "take", "Take it", id="take", tooltip="Tell the model this from the next question on."),
    Binding("escape", "leave", "Leave", id="leave", tooltip="Leave it as it was."),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="End the engine and leave."),
)

_PASS = Binding.Group("Pass", compact=True)
_SPEED = Binding.Group("Speed", compact=True)
_QUESTION = Binding.Group("Question", compact=True)

REPLAY_KEYS = (
    Binding("space", "pause", "Pause", id="pause", tooltip="Pause, or go on."),
    Binding("right", "step_forward", "One pass", group=_PASS, id="step_forward", tooltip="One pass on."),
    Binding("left", "step_back", "Back", group=_PASS, id="step_back", tooltip="One pass back."),
    Binding("n", "next_turn", "Next question", group=_QUESTION, id="next_turn", tooltip="To the next question."),
    Binding(
        "p",
        "previous_turn",
        "Previous question",
        group=_QUESTION,
        id="previous_turn",
        tooltip="To the question before.",
    ),
    Binding("plus,up", "faster", "Faster", group=_SPEED, key_display="+", id="speed_up", tooltip="Faster."),
    Binding("minus,down", "slower", "Slower", group=_SPEED, key_display="-", id="slow_down", tooltip="Slower."),
    Binding("home", "to_start", "To the beginning", show=False, id="to_start", tooltip="To the beginning."),
    Binding("end", "to_end", "To the end", show=False, id="to_end", tooltip="To the end of the recording."),
    Binding(
        "slash",
        "search",
        "Search",
        key_display="/",
        id="search",
        tooltip="Search questions and answers: Enter goes to the next place, Esc closes.",
    ),
    SHARED_KEYS[0],
    SHARED_KEYS[1],
    *(replace(key, show=False) for key in SHARED_KEYS[2:]),
    Binding("ctrl+c", "interrupt", "Copy or quit", show=False, priority=True, id="interrupt", tooltip="Copy or quit."),
    Binding("q", "leave", "Leave", id="leave", tooltip="Leave; to the chat, if there is one behind it."),
    Binding("escape", "back", "To the chat", show=False, id="back", tooltip="To the chat."),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="Leave the program."),
)

RACE_KEYS = (
    Binding("escape", "stop", "Leave", id="leave", tooltip="Stop measuring and show what there is; then leave."),
    Binding("space", "pause", "Pause", id="pause", tooltip="Pause, or go on."),
    Binding("right", "step_forward", "Pass", id="step_forward", tooltip="One pass on."),
    Binding("left", "step_back", "Back", id="step_back", tooltip="One pass back."),
    Binding("c", "clock", "Clock", id="clock", tooltip="Pass by pass, or at the times of this machine."),
    Binding("r", "restart", "Again", id="from_start", tooltip="From the start again."),
    Binding("plus,up", "faster", "Fast", key_display="+", id="speed_up", tooltip="Faster."),
    Binding("minus,down", "slower", "Slow", key_display="-", id="slow_down", tooltip="Slower."),
    replace(_HELP, show=False),
    Binding("home", "to_start", "To the start", show=False, id="to_start", tooltip="To the start."),
    Binding("end", "to_end", "To the end", show=False, id="to_end", tooltip="To the end, with the comparison."),
    SHARED_KEYS[1],
    Binding(
        "ctrl+c", "interrupt", "Copy or leave", show=False, priority=True, id="interrupt", tooltip="Copy or leave."
    ),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="Leave the program."),
)

_PREDICT = Binding.Group("Predict", compact=True)

LEARN_KEYS = (
    Binding("enter,space", "go_on", "Go on", key_display="Enter", id="go_on", tooltip="To the next card, or hurry."),
    Binding("enter,space", "remind", "Missing", show=False, id="remind", tooltip="Say what the card waits for."),
    Binding(
        "left",
        "move_slider",
        "Move",
        key_display="← →",
        priority=True,
        id="move_slider",
        tooltip="Move the slider of a task.",
    ),
    Binding("left", "back", "Earlier", id="back", tooltip="To the card before."),
    Binding("right", "next_slot", "Next slot", id="next_slot", tooltip="What the next slot of the pass sees."),
    Binding("backspace", "back", "Earlier", id="back_from_slider", tooltip="To the card before."),
    Binding("1", "answer(0)", "Predict", group=_PREDICT, id="answer_1", tooltip="Predict the first."),
    Binding("2", "answer(1)", "Predict", group=_PREDICT, id="answer_2", tooltip="Predict the second."),
    Binding("3", "answer(2)", "Predict", group=_PREDICT, id="answer_3", tooltip="Predict the third."),
    Binding("4", "answer(3)", "Predict", group=_PREDICT, id="answer_4", tooltip="Predict the fourth."),
    Binding("n", "next_scene", "Skip", id="next_scene", tooltip="To the next scene, result or question."),
    Binding("p", "previous_scene", "Previous", id="previous_scene", tooltip="To the scene before, or its beginning."),
    Binding("escape,q", "leave", "Leave", key_display="Esc", id="leave", tooltip="Leave; it goes on here next time."),
    _HELP,
    *(replace(key, show=key.id == "explain") for key in SHARED_KEYS if key.id in ("explain", "view")),
    Binding("down,ctrl+down", "read(1)", "On", show=False, id="read_on", tooltip="On in a card without room for all."),
    Binding("up,ctrl+up", "read(-1)", "Back", show=False, id="read_back", tooltip="Back in the text of the card."),
    Binding("pageup", "page_up", "Page up", show=False, id="page_up", tooltip="Earlier in the answer."),
    Binding("pagedown", "page_down", "Page down", show=False, id="page_down", tooltip="Later in the answer."),
    SHARED_KEYS[1],
    Binding("f5", "restart_engine", "Restart engine", show=False, id="restart", tooltip="Start the engine again."),
    Binding(
        "ctrl+c", "interrupt", "Copy or leave", show=False, priority=True, id="interrupt", tooltip="Copy or leave."
    ),
    Binding("ctrl+q", "app.quit", "Quit", show=False, priority=True, id="quit", tooltip="Leave the program."),
)
