"""All keys of the app: bindings, the footer, the command palette and docs/keys.md are generated from these tables."""

from dataclasses import replace
from typing import Any

from textual.binding import Binding

NAMES = {
    "escape": "Esc", "up": "↑", "down": "↓", "left": "←", "right": "→", "plus": "+", "minus": "-", "slash": "/",
    "pageup": "Page Up", "pagedown": "Page Down", "question_mark": "?",
    "left_square_bracket": "[", "right_square_bracket": "]",
}  # fmt: skip
"""The keys whose names are not their letters."""

EXPLAIN_KEY = "question_mark"
"""Typed like other characters if the prompt is not empty."""


def _key(key: str, action: str, label: str, id: str, tooltip: str, **more: Any) -> Binding:
    """Return a binding whose label the footer shows; the tooltip says in a sentence what it does."""
    return Binding(key, action, label, id=id, tooltip=tooltip, **more)


def _hidden(key: str, action: str, label: str, id: str, tooltip: str, **more: Any) -> Binding:
    """Return a binding that the footer leaves out."""
    return _key(key, action, label, id, tooltip, show=False, **more)


_HELP = _key("f1", "app.help", "Help", "help", "What is on the screen, and all keys.")
_CLOSE = _key("escape", "leave", "Close", "close", "To the screen below.")
_INTERRUPT = _hidden("ctrl+c", "interrupt", "Copy or leave", "interrupt", "Copy or leave.", priority=True)
_END = _hidden("ctrl+q", "app.quit", "Quit", "quit", "End the engine and leave.", priority=True)
_QUIT = replace(_END, tooltip="Leave the program.")

SHARED_KEYS = (
    _key("f2", "app.toggle_panels", "Panels", "panels", "Show or hide the panels at the right."),
    _hidden("f4", "app.switch_look", "Look", "look", "A hue for each pass, or blue for parallel ones."),
    _hidden("pageup", "app.page_up", "Page up", "page_up", "Earlier in the conversation."),
    _hidden("pagedown", "app.page_down", "Page down", "page_down", "Later in the conversation."),
    _hidden("f8", "app.copy_answer", "Copy answer", "copy_answer", "Copy the last or chosen answer."),
    _HELP,
    _hidden(
        "ctrl+g", "app.switch_format", "Format", "format", "Answers as formatted Markdown, or in the colours of passes."
    ),
    _hidden("ctrl+n", "app.fold", "Fold", "fold", "Open or fold long questions and thoughts."),
    _hidden(EXPLAIN_KEY, "app.explain", "Explain", "explain", "Explain each panel, with its numbers.", key_display="?"),
    _hidden(
        "f10",
        "app.switch_view",
        "View",
        "view",
        "The attention mask first, the history of a token first, or all panels.",
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


EXPLAIN_KEYS = (_CLOSE, replace(_CLOSE, key=EXPLAIN_KEY, show=False, id="explain"), _QUIT)
HELP_KEYS = (_CLOSE, replace(_CLOSE, key="f1", show=False, id="help"), _QUIT)

_PACE = Binding.Group("Pace", compact=True)

PACE_KEYS = (
    _key("space", "pause", "Pause", "pause", "Pause the answer, or go on."),
    _key("right", "take_step", "One pass", "take_step", "One pass of a paused answer."),
    _key("left_square_bracket", "slower", "Slower", "slower", "Fewer passes a second.", group=_PACE),
    _key("right_square_bracket", "faster", "Faster", "faster", "More passes a second.", group=_PACE),
)
"""The keys that are active while an answer is generated; typed like other characters if the prompt is not empty."""

PACE_IDS = tuple(key.id for key in PACE_KEYS if key.id)
WALK_IDS = ("look_back", "look_on", "first_step", "last_step")
"""While the user looks back, these keys move between the steps instead of the cursor, until something is typed."""

LOOK_KEYS = (
    _key("escape", "leave_steps", "Newest", "leave_steps", "From looking back to the newest state."),
    _key("left,ctrl+b", "look_back", "Back", "look_back", "Look back, pass by pass; Ctrl+B while typing too."),
    _key("right", "look_on", "On", "look_on", "One pass on, while looking back."),
    _hidden("home", "first_step", "First pass", "first_step", "To the answer's first pass."),
    _hidden("end", "last_step", "Last pass", "last_step", "To the answer's last pass."),
)
"""The keys that are active while the user looks back. Each precedes another binding of the same key."""

_ASKED, _VARIANT = Binding.Group("Question", compact=True), Binding.Group("Variant", compact=True)

EARLIER_KEYS = (
    _key("escape", "leave_editing", "Leave it", "leave_editing", "Edit the question no more; it stays."),
    _key("escape", "leave_question", "End", "leave_question", "From the chosen question to the end."),
    _key("ctrl+t", "edit_question", "Edit", "edit", "Edit the last or the chosen question."),
    _key("ctrl+r", "ask_again", "Again", "again", "Answer the last or the chosen question again."),
    _key("delete", "delete", "Delete", "delete_question", "Delete the chosen one, with all after it."),
    _key("alt+left", "variant(-1)", "Variant before", "variant", "The variant before.", group=_VARIANT),
    _key("alt+right", "variant(1)", "Next variant", "next_variant", "The next variant.", group=_VARIANT),
    _key("alt+up", "choose(-1)", "Earlier question", "earlier", "Choose the one before.", group=_ASKED),
    _key("alt+down", "choose(1)", "Later question", "later", "Choose the next one.", group=_ASKED),
)
"""The keys for questions that were answered. The footer shows them while one is chosen."""

APP_KEYS = (
    LOOK_KEYS[0],
    _key("escape", "stop", "Stop", "stop", "Stop the answer, a download, or a search."),
    *(replace(key, show=False) for key in EARLIER_KEYS),
    _hidden(
        "escape",
        "clear_prompt",
        "Clear",
        "clear",
        "Empty the prompt, if there is nothing to stop or to leave; Ctrl+Z brings the text back.",
    ),
    PACE_KEYS[0],
    *LOOK_KEYS[1:],
    *PACE_KEYS[1:],
    SHARED_KEYS[0],
    _key("f3", "switch_decoder", "Decoder", "decoder", "Plain decoding, or the decoder before."),
    SHARED_KEYS[1],
    _key("f6", "slow_motion", "Slow", "slow", "Four passes a second, or as many as it can."),
    _key("f7", "record", "Rec", "record", "Begin or end a recording of the session."),
    _hidden("f9", "race", "Race", "race", "Compare decoders side by side, on one question."),
    _hidden("f5", "restart_engine", "Restart engine", "restart", "Start the engine again."),
    *(replace(key, show=key.show or key.id == "explain") for key in SHARED_KEYS[2:]),
    _hidden(
        "up",
        "take_back",
        "Take back",
        "take_back",
        "Bring back an earlier question; while questions wait, the last of them.",
    ),
    _hidden(
        "f12",
        "editor",
        "Editor",
        "editor",
        "Write the question in your editor ($VISUAL or $EDITOR); so do Ctrl+X, Ctrl+E.",
    ),
    _hidden("ctrl+f", "find", "Find", "find", "Find a text in this conversation.", priority=True),
    _hidden("end", "follow", "To the end", "follow", "To the end of the conversation."),
    _hidden(
        "ctrl+l",
        "new_conversation",
        "New conversation",
        "new",
        "Begin a new conversation on a clear screen; keep this one.",
    ),
    _hidden(
        "ctrl+o",
        "conversations",
        "Conversations",
        "conversations",
        "Search the history: open, rename or delete a conversation.",
    ),
    _hidden(
        "ctrl+c",
        "interrupt",
        "Copy or stop",
        "interrupt",
        "Copy the selection; without one stop the answer; twice: quit.",
        priority=True,
    ),
    _key("ctrl+q", "app.quit", "Quit", "quit", "End the engine and leave.", priority=True),
)

APP_KEY_GROUPS = (
    (
        "Keys: questions and answers",
        ("stop", "copy_answer", "take_back", "clear", "editor", "race", "new", "conversations", "record"),
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
    _hidden("up", "move('cursor_up')", "Up", "up", "The one above."),
    _hidden("down", "move('cursor_down')", "Down", "down", "The one below."),
    _hidden("pageup", "move('page_up')", "Page up", "page_up", "A page up."),
    _hidden("pagedown", "move('page_down')", "Page down", "page_down", "A page down."),
    _key("escape", "leave", "Close", "leave", "To the chat."),
    _END,
)

MODELS_KEYS = (
    _key("enter", "take", "Use it", "take", "Load this model."),
    *_LIST_KEYS,
)

SETTINGS_KEYS = (
    _key("enter", "take", "Set", "take", "Set it to what was typed; switch on or off."),
    _key("ctrl+s", "save", "Save", "save", "Begin with these settings the next time."),
    *_LIST_KEYS,
)

SYSTEM_KEYS = (
    _key("ctrl+s", "take", "Take it", "take", "Tell the model this from the next question on."),
    _key("escape", "leave", "Leave", "leave", "Leave it as it was."),
    _END,
)

_PASS = Binding.Group("Pass", compact=True)
_SPEED = Binding.Group("Speed", compact=True)
_QUESTION = Binding.Group("Question", compact=True)

REPLAY_KEYS = (
    _key("space", "pause", "Pause", "pause", "Pause, or go on."),
    _key("right", "step_forward", "One pass", "step_forward", "One pass on.", group=_PASS),
    _key("left", "step_back", "Back", "step_back", "One pass back.", group=_PASS),
    _key("n", "next_turn", "Next question", "next_turn", "To the next question.", group=_QUESTION),
    _key("p", "previous_turn", "Previous question", "previous_turn", "To the question before.", group=_QUESTION),
    _key("plus,up", "faster", "Faster", "speed_up", "Faster.", group=_SPEED, key_display="+"),
    _key("minus,down", "slower", "Slower", "slow_down", "Slower.", group=_SPEED, key_display="-"),
    _hidden("home", "to_start", "To the beginning", "to_start", "To the beginning."),
    _hidden("end", "to_end", "To the end", "to_end", "To the end of the recording."),
    _key(
        "slash",
        "search",
        "Search",
        "search",
        "Search questions and answers: Enter goes to the next place, Esc closes.",
        key_display="/",
    ),
    SHARED_KEYS[0],
    SHARED_KEYS[1],
    *(replace(key, show=False) for key in SHARED_KEYS[2:]),
    _hidden("ctrl+c", "interrupt", "Copy or quit", "interrupt", "Copy or quit.", priority=True),
    _key("q", "leave", "Leave", "leave", "Leave; to the chat, if there is one behind it."),
    _hidden("escape", "back", "To the chat", "back", "To the chat."),
    _QUIT,
)

RACE_KEYS = (
    _key("escape", "stop", "Leave", "leave", "Stop measuring and show what there is; then leave."),
    _key("space", "pause", "Pause", "pause", "Pause, or go on."),
    _key("right", "step_forward", "Pass", "step_forward", "One pass on."),
    _key("left", "step_back", "Back", "step_back", "One pass back."),
    _key("c", "clock", "Clock", "clock", "Pass by pass, or at the times of this machine."),
    _key("r", "restart", "Again", "from_start", "From the start again."),
    _key("plus,up", "faster", "Fast", "speed_up", "Faster.", key_display="+"),
    _key("minus,down", "slower", "Slow", "slow_down", "Slower.", key_display="-"),
    replace(_HELP, show=False),
    _hidden("home", "to_start", "To the start", "to_start", "To the start."),
    _hidden("end", "to_end", "To the end", "to_end", "To the end, with the comparison."),
    SHARED_KEYS[1],
    _INTERRUPT,
    _QUIT,
)

_PREDICT = Binding.Group("Predict", compact=True)

LEARN_KEYS = (
    _key("enter,space", "go_on", "Go on", "go_on", "To the next card, or hurry.", key_display="Enter"),
    _hidden("enter,space", "remind", "Missing", "remind", "Say what the card waits for."),
    _key("left", "move_slider", "Move", "move_slider", "Move the slider of a task.", key_display="← →", priority=True),
    _key("left", "back", "Earlier", "back", "To the card before."),
    _key("right", "next_slot", "Next slot", "next_slot", "What the next slot of the pass sees."),
    _key("backspace", "back", "Earlier", "back_from_slider", "To the card before."),
    _key("1", "answer(0)", "Predict", "answer_1", "Predict the first.", group=_PREDICT),
    _key("2", "answer(1)", "Predict", "answer_2", "Predict the second.", group=_PREDICT),
    _key("3", "answer(2)", "Predict", "answer_3", "Predict the third.", group=_PREDICT),
    _key("4", "answer(3)", "Predict", "answer_4", "Predict the fourth.", group=_PREDICT),
    _key("n", "next_scene", "Skip", "next_scene", "To the next scene, result or question."),
    _key("p", "previous_scene", "Previous", "previous_scene", "To the scene before, or its beginning."),
    _key("escape,q", "leave", "Leave", "leave", "Leave; it goes on here next time.", key_display="Esc"),
    _HELP,
    *(replace(key, show=key.id == "explain") for key in SHARED_KEYS if key.id in ("explain", "view")),
    _hidden("down,ctrl+down", "read(1)", "On", "read_on", "On in a card without room for all."),
    _hidden("up,ctrl+up", "read(-1)", "Back", "read_back", "Back in the text of the card."),
    _hidden("pageup", "page_up", "Page up", "page_up", "Earlier in the answer."),
    _hidden("pagedown", "page_down", "Page down", "page_down", "Later in the answer."),
    SHARED_KEYS[1],
    _hidden("f5", "restart_engine", "Restart engine", "restart", "Start the engine again."),
    _INTERRUPT,
    _QUIT,
)

CONVERSATIONS_KEYS = (
    _key("enter", "open", "Open", "open", "Go on with this conversation."),
    _key("enter", "take_title", "Take title", "take_title", "Give it this title."),
    *_LIST_KEYS[:4],
    _key("f2", "rename", "Rename", "rename", "Give it a title."),
    _key("f4", "pin", "Pin", "pin", "Keep it at the top of the list, or no longer."),
    _key("f8", "delete", "Delete", "delete", "Delete it; this can be undone until you quit."),
    _key("ctrl+z", "undo", "Undo", "undo", "Bring back what was deleted."),
    _key("escape", "leave", "Close", "leave", "To the chat."),
    _key("escape", "leave_title", "Leave title", "leave_title", "Leave the title as it was."),
    _END,
)

READING_KEYS = (
    _key("enter", "open", "Go on with it", "open", "Go on with this conversation in the chat."),
    _key("ctrl+f", "find", "Find", "find", "Find a text in this conversation.", priority=True),
    _key("ctrl+g", "switch_format", "Format", "format", "Answers as formatted Markdown, or as written."),
    _hidden("ctrl+n", "fold", "Fold", "fold", "Open or fold long questions and thoughts."),
    _key("escape", "leave", "To the chat", "leave", "To the chat."),
    _INTERRUPT,
    _END,
)
