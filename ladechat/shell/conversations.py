"""The commands `ladechat conversations …`: list, show, export, rename and delete what was saved."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ladechat import __version__
from ladechat.checks import check_streams, text_of
from ladechat.command_line import command_group
from ladechat.export.command import WRITERS_OF_TALKS, refusals_printed, write
from ladechat.export.conversation import talk_of_saved
from ladechat.formats import ending
from ladechat.refusing import fail, joined_with
from ladechat.session.conversations.folder import ConversationFolder, ConversationInUse
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.search import Listed, place_of
from ladechat.shell.reopening import named, short_name
from ladechat.terminal import STANDARD_OUTPUT, say, shown
from ladechat.widgets.dates import dated
from ladechat.widgets.formatting import counted, name_of

app = command_group("List, show, export, rename and delete saved conversations (docs/conversations.md).")

Name = Annotated[str, typer.Argument(help="Its name in the list, its title, or the start of it.", show_default=False)]
WholeName = Annotated[str, typer.Argument(help="Its name in the list, or its whole title.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_all(
    phrase: Annotated[
        str | None, typer.Argument(help="Only those with this phrase, or else with its words.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the conversations: pinned ones first, then the latest."""
    check_streams(STANDARD_OUTPUT)
    folder = ConversationFolder()
    typed = text_of(phrase or "", "The phrase")
    found = folder.listing().find(typed)
    if folder.problem:
        say(folder.problem)
    if as_json:
        _print_json([_facts(one) for one in found])
        return
    for one in found:
        _print(f"{short_name(one.path):8}  {dated(one.when):19}  {counted(one.questions, 'question'):>13}  {one.title}")
        saved = folder.read(one.path) if typed.strip() else None
        if saved is not None and (place := place_of(saved, typed)) is not None:
            _print(f"{'':8}  … {place.excerpt} …")


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Print a conversation; on a terminal with formatted answers."""
    check_streams(STANDARD_OUTPUT)
    saved = named(ConversationFolder(), text_of(name, "The name"))
    if as_json:
        said = [
            {"when": saved.tree.times[number]}
            | {name: getattr(one, name) for name in ("model", "decoder", "system", "question", "answer")}
            for number, one in zip(saved.tree.path, saved.exchanges, strict=True)
        ]
        _print_json({**_facts(saved), "exchanges": said})
        return
    from ladechat.shell.answer_writer import AnswerWriter, console

    writer = AnswerWriter(console())
    for one in saved.exchanges:
        writer.write(f"## You\n\n{one.question.strip()}\n\n## {name_of(one.model)}\n\n{one.answer.strip()}\n\n")
    writer.end()


@app.command()
def export(
    name: Name,
    out: Annotated[Path, typer.Argument(help="The file, which ends .html, .md or .json.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
) -> None:
    """Make a page, Markdown or JSON of a conversation. How it was decoded is in recordings only: ladechat export."""
    if (writer := WRITERS_OF_TALKS.get(ending(out))) is None:
        endings = joined_with("or", [f".{each}" for each in WRITERS_OF_TALKS])
        fail(f"A saved conversation has texts, and no passes for a film or a picture; end {out} {endings}.")
    saved = named(ConversationFolder(), text_of(name, "The name"))
    with refusals_printed():
        write(out, lambda: writer(talk_of_saved(saved, f"ladechat {__version__}")), force=force)


@app.command()
def rename(
    name: Name,
    title: Annotated[str, typer.Argument(help="The title; an empty one is the first question.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Give a conversation another title."""
    folder = ConversationFolder()
    saved = named(folder, text_of(name, "The name"))
    try:
        folder.rename(saved, text_of(title, "The title"))
    except OSError as error:
        fail(f"‘{saved.title}’ cannot be renamed: {error.strerror or error}; {saved.path} has to be writable.")
    _report(folder.read(saved.path) or saved, "Renamed", as_json)


@app.command()
def delete(name: WholeName, as_json: AsJson = False) -> None:
    """Delete a conversation for good."""
    folder = ConversationFolder()
    saved = named(folder, text_of(name, "The name"), whole=True)
    try:
        folder.delete(saved)
    except ConversationInUse:
        fail(f"‘{saved.title}’ is open in a ladechat; begin a new conversation there first (Ctrl+L).")
    except OSError as error:
        fail(f"‘{saved.title}’ cannot be deleted: {error.strerror or error}; {saved.path.parent} has to be writable.")
    folder.close()
    folder.listing()  # the index forgets its words too
    _report(saved, "Deleted", as_json)


def _report(conversation: SavedConversation, done: str, as_json: bool) -> None:
    if as_json:
        _print_json(_facts(conversation))
    else:
        _print(f"{done}: {conversation.title}")


def _facts(conversation: Listed) -> dict[str, Any]:
    return {
        "name": short_name(conversation.path),
        "file": str(conversation.path),
        "title": conversation.title,
        "when": conversation.when.isoformat(),
        "model": conversation.model,
        "questions": conversation.questions,
        "pinned": conversation.pinned,
    }


def _print(line: str) -> None:
    print(shown(line))


def _print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=1)
    print()
