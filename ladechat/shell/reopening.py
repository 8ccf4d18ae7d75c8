"""Saved conversations by name, and the one that `--continue` continues: the latest, with the model that answered it."""

from dataclasses import replace
from pathlib import Path

import msgspec
import typer

from ladechat import catalog
from ladechat.checks import is_given
from ladechat.engine_options import EngineOptions
from ladechat.options import CHOICE, PARAMETERS
from ladechat.preferences import Preferences
from ladechat.refusing import fail, joined_with
from ladechat.session.conversations.folder import ConversationFolder
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.search import Listed
from ladechat.session.conversations.store import ConversationStore

MOST_NAMES = 5
"""The most names that are listed in a sentence."""


def latest(store: ConversationStore | None) -> SavedConversation:
    """Return the conversation that was answered last. If there is none, or one that may be the latest cannot be read,
    end the program with a message.
    """
    if store is None:
        fail("--continue goes on with a conversation, and --no-save keeps none; give one of them.")
    listed = store.listing().all
    saved = store.read(max(listed, key=lambda one: (one.when, one.path.name)).path) if listed else None
    if store.problem:
        fail(f"It is not known which conversation is the latest: {store.problem}")
    if saved is None:
        fail("There is no conversation to go on with; start without --continue.")
    return saved


def named(folder: ConversationFolder, name: str, *, whole: bool = False) -> SavedConversation:
    """Return the conversation of this name; if there is none, or several, end the program with a message.

    The name is that of its file, or the end of that, as `short_name` returns it; or its title; or, unless the `whole`
    is wanted, the start of one of them.
    """
    wanted = " ".join(name.split()).casefold()
    listed = folder.listing().all
    by_file = [one for one in listed if wanted in _names(one)[1:]]
    by_title = [one for one in listed if one.title.casefold() == wanted]
    begun = [one for one in listed if wanted and not whole and any(name.startswith(wanted) for name in _names(one))]
    found = by_file or by_title or begun
    if len(found) > 1:
        names = joined_with("or", [short_name(one.path) for one in found[:MOST_NAMES]])
        fail(f"{len(found)} conversations are called {name!r}; name one by its file: {names}.")
    saved = folder.read(found[0].path) if found else None
    if saved is None:
        why = f" ({folder.problem})" if folder.problem else ""
        fail(f"There is no conversation {name!r}{why}; ladechat conversations list WORDS finds it by what it says.")
    return saved


def _names(listed: Listed) -> tuple[str, str, str]:
    return listed.title.casefold(), listed.path.stem.casefold(), short_name(listed.path).casefold()


def short_name(path: Path) -> str:
    """Return the name of a conversation for the shell: the end of its file's name, after the time."""
    return path.stem.rpartition("-")[2]


def as_answered(
    saved: SavedConversation, options: EngineOptions, context: typer.Context, preferences: Preferences
) -> EngineOptions:
    """Return the options with the model of the conversation's last answer, unless the command line names another.

    If no decoder was chosen either, the model's default decoder is used.
    """
    given = is_given("model", context) or is_given("server", context)
    if given or saved.model in ("", options.named):
        return options
    chosen = preferences.decoder is not None or any(is_given(name, context) for name in (*CHOICE, *PARAMETERS))
    decoder = options.settings.decoder if chosen else catalog.first_decoder(saved.model).name
    settings = msgspec.structs.replace(options.settings, decoder=decoder)
    return replace(options.with_model(saved.model), settings=settings)
