"""Which conversation `ladechat ask` asks in, and saves the answer in."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NamedTuple

import typer

from ladechat.checks import is_given
from ladechat.engine_options import EngineOptions
from ladechat.preferences import Preferences
from ladechat.refusing import fail
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.shell.reopening import as_answered, latest, named, short_name
from ladechat.terminal import say

GoOn = Annotated[bool, typer.Option("--continue", help="Ask in the latest conversation, and save the answer there.")]
InConversation = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Ask in this one, and save the answer there; ladechat conversations list."),
]
Keep = Annotated[bool, typer.Option("--keep", help="Save question and answer as a new conversation.")]


class Where(NamedTuple):
    """The options that say where an answer is saved: at most one of them."""

    go_on: bool
    name: str | None
    keep: bool


@contextmanager
def conversation_for(
    where: Where, engine: EngineOptions, system: str | None, context: typer.Context, preferences: Preferences
) -> Iterator[tuple[Conversation, EngineOptions]]:
    """Open the conversation to ask in, and save it at the end. What is impossible ends the program with a message.

    The conversation's model answers unless another is named. `system` is the system prompt of a new conversation; of an
    opened one only if it was typed.
    """
    given = where.go_on, where.name is not None, where.keep
    if sum(given) > 1:
        fail("--continue, --conversation and --keep say where the answer is saved; give one of them.")
    store = ConversationStore() if any(given) else None
    opened = None
    if store is not None and not where.keep:
        opened = latest(store) if where.name is None else named(store, where.name)
    if opened is not None and engine.engine_command is None:
        engine = as_answered(opened, engine, context, preferences)
    talk = Conversation(system, model=engine.named if engine.engine_command is None else "", store=store)
    if store is None:
        yield talk, engine
        return
    store.failed = lambda error: say(f"The answer cannot be saved in {store.folder}: {error.strerror or error}.")
    if opened is not None:
        talk.open(opened)
        if system is not None and is_given("system", context):
            talk.instruct(system)
        if store.why_copied:
            say(f"‘{opened.title}’ {store.why_copied}: the answer is saved in a copy of it.")
    yield talk, engine
    path = store.path
    store.begin_new()
    store.close()
    if where.keep and path is not None:
        say(f"Saved: ladechat ask --conversation {short_name(path)} goes on with it.")
