"""The conversation that `--continue` continues: the latest one, with the model that answered it."""

from dataclasses import replace

import msgspec
import typer

from ladechat import catalog
from ladechat.engine_options import EngineOptions
from ladechat.options import CHOICE, PARAMETERS
from ladechat.preferences import Preferences
from ladechat.refusing import fail
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore


def latest(store: ConversationStore | None) -> SavedConversation:
    """Return the conversation that was answered last. If there is none, or one that may be the latest cannot be read,
    end the program with a message.
    """
    if store is None:
        fail("--continue goes on with a conversation, and --no-save keeps none; give one of them.")
    saved = store.conversations()
    if store.unread:
        fail(f"It is not known which conversation is the latest: {store.unread}")
    if not saved:
        fail("There is no conversation to go on with; start without --continue.")
    return saved[0]


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


def is_given(name: str, context: typer.Context) -> bool:
    """Return whether this option was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
