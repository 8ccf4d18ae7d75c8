"""`ladechat race`: decoders side by side on one question, animated on a terminal, as a table in a pipe."""

import asyncio
import gc
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ladechat.catalog import FIRST_QUESTION
from ladechat.checks import System, check_screen, check_streams, is_given, refuse_more_words, text_of
from ladechat.engine_options import EngineOptions
from ladechat.export.command import check_painting, check_target, refusals_printed, run_race, size_of
from ladechat.formats import OF_A_RACE, ending
from ladechat.interrupts import INTERRUPTED
from ladechat.options import PARAMETERS, check_belong, check_length, option_of, report, with_engine_options
from ladechat.preferences import SettingsFile
from ladechat.protocol import MOST_TEXT, Message
from ladechat.refusing import USAGE_ERROR, fail
from ladechat.server_options import on_server
from ladechat.session.command_engine import engine_of
from ladechat.session.measuring import DEFAULT_DECODERS, FEWEST, MOST, Measuring, problem
from ladechat.session.race import PLAIN, Lane, speedup
from ladechat.session.server_race import MeasuringServers
from ladechat.terminal import STANDARD_OUTPUT, say, shown
from ladechat.widgets.formatting import describe_way

FAILED = 1
OF_ONE_ANSWER = ("decoder", "auto", "pool")
"""Options of all commands with an engine that have no meaning for a race."""
HEADINGS = ("decoder", "tokens", "passes", "tokens a pass", "seconds", "speed")


@partial(with_engine_options, of_any_decoder=True)
def race(
    context: typer.Context,
    engine: EngineOptions,
    settings_file: SettingsFile,
    question: Annotated[str, typer.Argument(help="What all of them answer.")] = FIRST_QUESTION,
    decoders: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            show_default=",".join(DEFAULT_DECODERS) + "; without those that the model cannot be used with",
            help="Two to four decoders.",
        ),
    ] = None,
    servers: Annotated[
        list[str] | None,
        typer.Option(
            "--server", metavar="URL", help="Two to four servers, each given so, in the place of decoders; one: twice."
        ),
    ] = None,
    max_new_tokens: Annotated[int | None, typer.Option(help="The longest answer, in tokens.")] = None,
    system: System = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Make a page that plays the race, .html; a film, .cast or .gif; or a picture, .svg."
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(help="Of the screen in a film or picture.", show_default="120x36", metavar="COLUMNSxROWS"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
) -> None:
    """Have several decoders answer one question, and watch them side by side (docs/race.md)."""
    check_length(max_new_tokens)
    report(settings_file)
    for name in OF_ONE_ANSWER:
        if is_given(name, context):
            fail(f"{option_of(name)} is for answers of one decoder; name those of a race with --decoders.")
    refuse_more_words(context)
    check_streams(STANDARD_OUTPUT)
    question = text_of(question, "The question")
    if not question.strip():
        fail('The question is empty; give one, as in: ladechat race "What is the n-gram pool?".')
    if len(question) > MOST_TEXT:
        fail(f"The question has more than {MOST_TEXT:,} characters; ask a shorter one.")
    names = None if decoders is None else tuple(dict.fromkeys(filter(None, map(str.strip, decoders.split(",")))))
    if names is not None and (wrong := problem(names)) is not None:
        fail(wrong)
    check_belong(names or DEFAULT_DECODERS, (name for name in PARAMETERS if is_given(name, context)))
    messages = [Message(role="system", content=system)] if system else []
    messages.append(Message(role="user", content=question))
    cells = size_of(size)
    _check_export(export, sized=size is not None, force=force)
    named = servers or ([engine.named] if engine.server is not None else [])
    if named:
        if names is not None:
            fail("--decoders names decoders of this program, and a server has its own; leave out one of them.")
        measuring: Measuring = _of_servers(named, engine, messages, max_new_tokens, context)
    else:
        measuring = Measuring(engine_of(engine), messages, names, max_new_tokens)
    if export is None and _in_terminal():
        check_screen()
        raise typer.Exit(_on_screen(measuring))
    code = _in_pipe(measuring)
    if export is not None and not code:
        with refusals_printed():
            run_race(measuring, export, cells, force=force)
    raise typer.Exit(code)


def _of_servers(
    named: list[str],
    engine: EngineOptions,
    messages: list[Message],
    max_new_tokens: int | None,
    context: typer.Context,
) -> MeasuringServers:
    """Return the race of these servers; one alone races with itself."""
    named = named * 2 if len(named) == 1 else named
    if len(named) > MOST:
        fail(f"A race has {FEWEST} to {MOST} servers, not {len(named)}.")
    model = engine.model if is_given("model", context) else ""
    served = [on_server(text, model, engine) for text in named]
    engines = [(one.named, engine_of(one)) for one in served]
    return MeasuringServers(engines, messages, max_new_tokens)


def _check_export(out: Path | None, *, sized: bool, force: bool) -> None:
    """Refuse an export that cannot be written, before anything is measured."""
    if out is None:
        if sized:
            fail("--size is for the file that --export names; give both, or leave it out.")
        if force:
            fail("--force overwrites what --export names; give both, or leave it out.")
        return
    if ending(out) not in OF_A_RACE:
        fail(f"{out} is no name for a race; end it in .cast, .gif, .html or .svg.")
    if sized and ending(out) == "html":
        fail("--size is for films and pictures, and changes nothing in a page; leave it out.")
    with refusals_printed():
        check_target(out, force=force)
        if ending(out) == "gif":
            check_painting()


def _in_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()


def _on_screen(measuring: Measuring) -> int:
    gc.disable()  # until the first frame is shown, as in a chat
    from ladechat.app import run_race

    code = run_race(measuring)
    return _exit_code(measuring) or code


def _in_pipe(measuring: Measuring) -> int:
    interrupted = asyncio.run(_measured(measuring))
    lanes = [lane for lane in measuring.lanes if lane.steps]
    said = [*measuring.conclusions(), *describe_way(measuring.round_trip_ms)]
    try:
        if lanes:
            print("\n".join([*table(lanes), "", *conclusion(measuring.lanes, said)]), flush=True)
    except OSError as error:
        fail(f"The result could not be written: {error.strerror or error}.")
    return INTERRUPTED if interrupted else _exit_code(measuring)


async def _measured(measuring: Measuring) -> bool:
    """Measure all decoders; return whether Ctrl+C has ended it."""
    stopping: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: stopping.append(asyncio.create_task(measuring.stop())))
    await measuring.run()
    return bool(stopping)


def _exit_code(measuring: Measuring) -> int:
    """Return the exit code: 0, or that of a failure, which is printed."""
    if measuring.failure is None:
        return 0
    say(measuring.failure)
    return USAGE_ERROR if measuring.refused else FAILED


def table(lanes: list[Lane]) -> list[str]:
    """Return a line of figures for each lane, in columns."""
    headings = ("server", *HEADINGS[1:]) if any(lane.server is not None for lane in lanes) else HEADINGS
    return in_columns([headings, *(_figures(lane, lanes) for lane in lanes)])


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of texts as lines: the first column at the left of its room, the others at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:]))) for row in rows]


def _figures(lane: Lane, lanes: list[Lane]) -> tuple[str, ...]:
    tokens, passes, times = lane.tokens, lane.passes, speedup(lane, lanes)
    measured = "–" if times is None else f"{times:.2f}×"
    counts = ("–" if number is None else f"{number:,}" for number in (tokens, passes))
    per_pass = "–" if tokens is None or not passes else f"{tokens / passes:.2f}"
    return lane.label, *counts, per_pass, f"{lane.seconds:.2f}", measured


def conclusion(lanes: list[Lane], conclusions: list[str]) -> list[str]:
    """Return the lines below the table: the conclusions, and why there is no speed if plain decoding took no part."""
    raced = any(lane.name == PLAIN or lane.server is not None for lane in lanes)
    unknown = () if raced else (f"No speed: that is against plain decoding; add {PLAIN} to --decoders.",)
    return [shown(sentence) for sentence in (*conclusions, *unknown)]
