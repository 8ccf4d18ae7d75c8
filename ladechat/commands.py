"""All slash commands: the table for the list above the prompt, the command palette and docs/commands.md."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from ladechat.keys import APP_KEYS
from ladechat.preferences import SAMPLING_NAMES, SETTINGS


@dataclass(frozen=True)
class SlashCommand:
    """A command that is typed into the prompt.

    Attributes:
        name: the text after the slash.
        help: the description of what it does.
        action: the action of the chat's screen, called with the argument, as a string, if the command takes one.
        argument: the name of its argument; in square brackets if it is optional.
        sets: the setting that it changes: the action receives the setting's name before the argument.
        short: a description for narrow lists; "" if `help` is short enough.
        title: its name in the command palette; "" if a key's action is listed there, or it needs an argument.
        words: other words that find it.
    """

    name: str
    help: str
    action: str
    argument: str = ""
    sets: str = ""
    short: str = ""
    title: str = ""
    words: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """The syntax of the command, as in `/name argument`."""
        return f"/{self.name} {self.argument}".rstrip()

    @property
    def needs_argument(self) -> bool:
        """Whether it does nothing without an argument."""
        return bool(self.argument) and not self.argument.startswith("[")


OF_KEYS = (
    *("new", "conversations", "again", "edit", "editor", "copy_answer", "stop", "record"),
    *("pause", "slow", "panels", "look", "find", "restart", "help", "quit"),
)
"""The commands that also have a key, by its id; `copy_answer` is /copy."""


SHORT = {
    "new": "Begin a new conversation; keep this one.",
    "conversations": "Find, open, rename or delete a conversation.",
    "editor": "Write the question in your editor.",
}
"""Short descriptions of commands that otherwise share those of keys, by the names of both."""


NUMBERS = ("window", "n-gram", "guesses")
"""The words that users search for to set W, N or G."""


def _of_keys() -> Iterator[SlashCommand]:
    keys = {key.id: key for key in APP_KEYS}
    for one in OF_KEYS:
        name = one.removesuffix("_answer")
        yield SlashCommand(name, keys[one].tooltip, keys[one].action, short=SHORT.get(name, ""))


def _of_sampling() -> Iterator[SlashCommand]:
    for name in SAMPLING_NAMES:
        setting = SETTINGS[name]
        argument = "/".join(get_args(setting.plain)).upper() or "NUMBER"
        yield SlashCommand(name.replace("_", "-"), setting.help, "set", argument, name, setting.short)


COMMANDS = (
    *_of_keys(),
    SlashCommand(
        "continue",
        "Go on with the last answer, where it was stopped or its length limit ended it.",
        "continue",
        short="Go on with the last answer where it stopped.",
        title="Continue the answer",
    ),
    SlashCommand("undelete", "Bring back the question that was deleted last.", "undelete", title="Undelete question"),
    SlashCommand(
        "rename",
        "Give this conversation a title; without TITLE it is the first question again.",
        "rename",
        "[TITLE]",
        short="Give this conversation a title.",
    ),
    SlashCommand(
        "code",
        "Copy the last block of code, or the first of that answer by /code 1.",
        "copy_code",
        "[NUMBER]",
        short="Copy the last block of code, or by number.",
        title="Copy code",
    ),
    SlashCommand("model", "Use another model from the next question on.", "model", "[NAME]", title="Model …"),
    SlashCommand(
        "system",
        "How the model should behave, from the next question on.",
        "system",
        "[TEXT]",
        short="How the model should behave.",
        title="System prompt …",
    ),
    SlashCommand(
        "race",
        "Compare decoders side by side, on QUESTION, or else on the last one.",
        "race",
        "[QUESTION]",
        short="Decoders side by side, on one question.",
    ),
    SlashCommand("decoder", "Decode with this decoder from the next pass on.", "decoder", "NAME"),
    SlashCommand(
        "set",
        "Set a number of the decoder, as in /set W 15; /W 15 does the same.",
        "set",
        "NAME NUMBER",
        short="Set a number of the decoder, as in /set W 15.",
        words=NUMBERS,
    ),
    *_of_sampling(),
    SlashCommand(
        "limit",
        SETTINGS["max_new_tokens"].help,
        "set",
        "NUMBER",
        "max_new_tokens",
        words=("max-new-tokens", "tokens"),
    ),
    SlashCommand(
        "settings",
        "All that can be set, with explanations.",
        "settings",
        title="Settings: window, n-grams, temperature …",
        words=NUMBERS,
    ),
    SlashCommand("theme", "Another colour theme; without NAME, a list.", "theme", "[NAME]"),
    SlashCommand(
        "replay",
        "See a recording pass by pass: the latest, or that in FILE.",
        "replay",
        "[FILE]",
        short="See a recording pass by pass.",
        title="Replay the latest recording",
    ),
    SlashCommand(
        "export",
        "Make a page, film (.gif), picture or text of the conversation, as FILE ends; options as of ladechat export.",
        "export",
        "[FILE]",
        short="Make a file: .html .gif .cast .svg .md .json",
        title="Export conversation",
    ),
    SlashCommand("learn", "How it works: seven scenes, ten minutes.", "learn"),
    SlashCommand(
        "forget",
        "Delete what drafting has learnt from earlier answers, of all models. The conversations stay.",
        "forget",
        short="Delete what drafting has learnt.",
        title="Forget what drafts have learnt",
    ),
    SlashCommand("messages", "The last messages of the program.", "app.messages", title="Messages"),
    SlashCommand("save", "Begin like this next time, or by /preset NAME.", "save", "[NAME]", title="Save settings"),
    SlashCommand("preset", "Take the settings that were saved as NAME.", "preset", "[NAME]", title="Preset …"),
    SlashCommand("as-before", "Take model and settings of the last answer.", "as_before", title="As the last answer"),
    SlashCommand("remove-preset", "Remove a preset.", "remove_preset", "NAME"),
)


def find(name: str) -> SlashCommand | None:
    """Return the command of this name, ignoring case; None if there is none."""
    return next((one for one in COMMANDS if one.name == _plain(name)), None)


def matching(typed: str) -> list[SlashCommand]:
    """Return the commands whose names start with the text after the slash, then those with such a word in `words`."""
    begun = _plain(typed)
    named = [one for one in COMMANDS if one.name.startswith(begun)]
    meant = [one for one in COMMANDS if any(word.startswith(begun) for word in one.words)]
    return list(dict.fromkeys((*named, *meant)))


def nearest(name: str) -> SlashCommand | None:
    """Return the command with the most similar name; None if none is similar."""
    names = difflib.get_close_matches(_plain(name), [one.name for one in COMMANDS], n=1)
    return find(names[0]) if names else None


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")
