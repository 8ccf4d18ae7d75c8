"""The commands. Each is thin: it declares and checks its options, and calls the code that does the work."""

import errno
import gc
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ladechat import __version__
from ladechat.bench.options import (
    DEFAULT_MAX_NEW_TOKENS,
    DEFAULT_ROUNDS,
    KINDS,
    BenchOptions,
    by_hand,
    listed,
    method_names,
    numbers_by_hand,
)
from ladechat.checks import (
    MORE_WORDS,
    System,
    check_screen,
    check_streams,
    check_working_directory,
    in_terminal,
    is_given,
    refuse_misplaced_options,
    refuse_more_words,
    silence_explained,
    text_of,
)
from ladechat.command_line import RECORD, Commands
from ladechat.engine_options import (
    Device,
    Dtype,
    EngineOptions,
    LayerSearch,
    LookaheadParallel,
    Maps,
    Model,
    Passes,
    Quantize,
    TensorParallel,
    found_anywhere,
)
from ladechat.export.command import export
from ladechat.options import (
    check_computing,
    check_length,
    check_parameters,
    option_of,
    path_of,
    report,
    with_engine_options,
)
from ladechat.preferences import SettingsFile
from ladechat.protocol import MOST_TEXT
from ladechat.refusing import check_count, fail
from ladechat.serve.commands import serve
from ladechat.server_address import is_server
from ladechat.server_options import NO_SERVER, check_runs_here, give_key_to, on_server
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.recordings.recorder import Recorder, default_path
from ladechat.shell.conversations import app as conversation_commands
from ladechat.shell.learn import learn
from ladechat.shell.race import race
from ladechat.shell.reopening import as_answered, latest
from ladechat.shell.replay import replay
from ladechat.shell.where_saved import GoOn, InConversation, Keep, Where, conversation_for
from ladechat.terminal import STANDARD_INPUT, STANDARD_OUTPUT, forget_output, forget_sizes_of_nothing, make_streams_safe
from ladechat.train.commands import app as train_commands

app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(train_commands, name="train")
app.add_typer(conversation_commands, name="conversations")
app.command(context_settings=MORE_WORDS)(race)
app.command()(learn)

PARALLEL = ("tensor_parallel", "lookahead_parallel")
MaxNewTokens = Annotated[int | None, typer.Option(help="The longest answer, in tokens.")]
Record = Annotated[
    str | None,
    typer.Option(
        "--record", metavar="[FILE]", help="Record the session; without FILE, in the data folder under time and model."
    ),
]


def main() -> None:
    """Run the command line."""
    make_streams_safe()
    forget_sizes_of_nothing()
    os.environ["PYTHONSAFEPATH"] = "1"  # programs started by libraries import nothing from the working directory
    try:
        app(prog_name="ladechat")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        forget_output()
        sys.exit(f"ladechat: Standard output cannot be written: {error.strerror}; write it elsewhere.")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"ladechat {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
@with_engine_options
def chat(
    context: typer.Context,
    engine: EngineOptions,
    settings_file: SettingsFile,
    max_new_tokens: MaxNewTokens = None,
    system: System = None,
    record: Record = None,
    go_on: Annotated[bool, typer.Option("--continue", help="Go on with the latest conversation.")] = False,
    no_save: Annotated[bool, typer.Option("--no-save", help="Keep no conversation and no question.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Chat through lookahead decoding, and watch it work."""
    check_working_directory()
    if context.invoked_subcommand is not None:
        refuse_misplaced_options(context)
        return
    check_length(max_new_tokens)
    give_key_to(NO_SERVER)
    store = None if no_save else ConversationStore()
    opened = latest(store) if go_on else None
    warm = not no_save and engine.warm_start is not False
    model = found_anywhere(engine.model) if engine.server is None else engine.model
    asked = engine = replace(engine, model=model, warm_start=warm)
    if opened is not None and engine.engine_command is None:
        engine = as_answered(opened, asked, context, settings_file.preferences)
    if not in_terminal():
        fail('The app needs a terminal; in a pipe or a script use: ladechat ask "your question".')
    check_screen()
    gc.disable()  # until the first frame is shown: what is imported and built for it is not garbage
    from ladechat.app import run_chat

    recorder = _recorder(record, engine.named if engine.engine_command is None else "engine")
    settings_file.writable = not no_save
    code = run_chat(
        engine,
        system,
        max_new_tokens,
        recorder=recorder,
        store=store,
        opened=opened,
        instructed=system if is_given("system", context) else None,
        instead=asked if asked is not engine else None,
        settings_file=settings_file,
    )
    raise typer.Exit(code)


app.command()(replay)
app.command(context_settings=MORE_WORDS)(export)
app.command()(serve)


@app.command(context_settings=MORE_WORDS)
@with_engine_options
def ask(
    context: typer.Context,
    engine: EngineOptions,
    settings_file: SettingsFile,
    question: Annotated[
        str | None,
        typer.Argument(
            help="What to ask; what comes through a pipe follows it (nothing does with </dev/null). "
            "- or nothing: it is all in the pipe."
        ),
    ] = None,
    max_new_tokens: MaxNewTokens = None,
    system: System = None,
    go_on: GoOn = False,
    conversation: InConversation = None,
    keep: Keep = False,
    json: Annotated[bool, typer.Option("--json", help="Print the engine's events, one JSON line each.")] = False,
) -> None:
    """Answer one question on standard output, coloured by pass on a terminal; a summary goes to standard error."""
    refuse_more_words(context)
    check_length(max_new_tokens)
    check_streams(STANDARD_OUTPUT)
    report(settings_file)
    text = _with_pipe(question)
    if text is not None and len(text) > MOST_TEXT:
        fail(f"The question has more than {MOST_TEXT:,} characters; ask a shorter one.")
    if text is None or not text.strip():
        fail('The question is empty; give one, as in: ladechat ask "What is the n-gram pool?".')
    where = Where(go_on, conversation, keep)
    from ladechat.shell.ask import run

    with conversation_for(where, engine, system, context, settings_file.preferences) as (talk, engine):
        talk.max_new_tokens = max_new_tokens
        code = run(engine, talk, text, as_json=json)
    raise typer.Exit(code)


def _with_pipe(question: str | None) -> str | None:
    """Return the question, followed by piped text, as in: cat notes.txt | ladechat ask "What is it about?"."""
    given = None if question in (None, "-") else text_of(question, "The question")
    if sys.stdin.isatty() and question != "-":
        return given
    try:
        with silence_explained():
            piped = text_of(sys.stdin.read(MOST_TEXT + 1), "What comes through the pipe")
    except UnicodeDecodeError:
        fail(f"What comes through the pipe is no text in {sys.stdin.encoding.upper()}; a question has to be text.")
    if given is None:
        return piped
    return f"{given}\n\n{piped}" if piped.strip() else given


@app.command(name="engine")
@partial(with_engine_options, of_any_decoder=True)
def serve_engine(engine: EngineOptions) -> None:
    """Serve a model: commands in on standard input, events out on standard output (docs/protocol.md)."""
    check_streams(STANDARD_INPUT, STANDARD_OUTPUT)
    if engine.server is not None:
        from ladechat.remote.server import serve as serve_by_asking

        raise typer.Exit(serve_by_asking(engine))
    from ladechat.engine.server import serve

    pool = str(path_of(engine.pool)) if engine.pool else None
    raise typer.Exit(serve(replace(engine, pool=pool, maps=[str(path_of(file)) for file in engine.maps or ()])))


@app.command()
def bench(
    context: typer.Context,
    model: Model = "demo",
    servers: Annotated[
        list[str] | None,
        typer.Option(
            "--server", metavar="URL", help="Measure servers instead: each given so, with the same questions."
        ),
    ] = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    quantize: Quantize = None,
    passes: Passes = "auto",
    maps: Maps = None,
    layer_search: LayerSearch = 0.0,
    tensor_parallel: TensorParallel = 1,
    lookahead_parallel: LookaheadParallel = 1,
    decoders: Annotated[
        str | None,
        typer.Option(
            show_default=",".join(method_names()) + "; without those that the model cannot be used with",
            help="What to compare with plain decoding, which always takes part.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            metavar=",".join(one.label for one in numbers_by_hand()),
            show_default=",".join(str(one.default) for one in numbers_by_hand()),
            help=f"Of {by_hand().name}; give it again for others.",
        ),
    ] = None,
    questions: Annotated[str, typer.Option(help="Kinds of questions, or a file: FILE.toml.")] = ",".join(KINDS),
    max_new_tokens: Annotated[int, typer.Option(help="The longest answer, in tokens.")] = DEFAULT_MAX_NEW_TOKENS,
    rounds: Annotated[int, typer.Option(help="How often to measure, after a warm-up.")] = DEFAULT_ROUNDS,
    json: Annotated[Path | None, typer.Option(help="Write the figures into this file.", metavar="FILE")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the speedups, as PNG or SVG.", metavar="FILE.png|.svg")
    ] = None,
) -> None:
    """Measure decoders side by side on the same prompts, in one run (docs/bench.md)."""
    check_length(max_new_tokens)
    check_streams(STANDARD_OUTPUT)
    servers = servers or ([model] if is_server(model) else [])
    if servers:
        engines_own = ("device", "dtype", "quantize", "passes", "maps", "layer_search", *PARALLEL)
        for name in (*engines_own, "decoders", "settings", "plot"):
            if is_given(name, context):
                fail(f"{option_of(name)} is for decoders of this program, and a server has its own; leave it out.")
        check_count("--rounds", rounds, 1)
        named = model if is_given("model", context) and not is_server(model) else ""
        engines = [on_server(url, named, EngineOptions()) for url in servers]
        from ladechat.shell.bench_servers import run as run_servers

        raise typer.Exit(run_servers(engines, listed(questions), max_new_tokens, rounds, json))
    check_computing(quantize, passes, tensor_parallel, lookahead_parallel, layer_search)
    options = BenchOptions(
        model=model,
        device=device,
        dtype=dtype,
        quantize=quantize,
        passes=passes,
        maps=tuple(path_of(file) for file in maps or []),
        decoders=method_names() if decoders is None else listed(decoders),
        named=decoders is not None,
        settings=tuple(dict.fromkeys(map(_numbers, settings or []))),
        questions=listed(questions),
        max_new_tokens=max_new_tokens,
        rounds=rounds,
        json=json,
        plot=plot,
        layer_search=layer_search,
        tensor_parallel=tensor_parallel,
        lookahead_parallel=lookahead_parallel,
    )
    from ladechat.bench.command import run

    raise typer.Exit(run(options))


@app.command()
def tune(
    model: Model = "demo",
    device: Device = "auto",
    dtype: Dtype = "auto",
    quantize: Quantize = None,
    passes: Passes = "auto",
    tensor_parallel: TensorParallel = 1,
    lookahead_parallel: LookaheadParallel = 1,
) -> None:
    """Time passes of several sizes here, and see how many tokens a pass auto drafts because of that."""
    check_streams(STANDARD_OUTPUT)
    check_computing(quantize, passes, tensor_parallel, lookahead_parallel)
    check_runs_here(model, "tune")
    from ladechat.bench.command import workers_for
    from ladechat.bench.tune import run

    workers = workers_for(tensor_parallel, lookahead_parallel)
    raise typer.Exit(run(model, device, dtype, quantize, passes, workers))


def _numbers(text: str) -> tuple[int, ...]:
    """Return the parameters in one argument of --settings, as in 5,3,5."""
    wanted = numbers_by_hand()
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != len(wanted):
        labels, usual = (",".join(str(getattr(one, field)) for one in wanted) for field in ("label", "default"))
        fail(f"{text!r} is no {labels}: whole numbers with commas between, as in --settings {usual}.")
    given = {one.name: value for one, value in zip(wanted, values, strict=True)}
    check_parameters(by_hand().name, given, "--settings")
    return values


def _recorder(record: str | None, model: str) -> Recorder:
    """Return the recorder of the session, started already if a recording was requested."""
    recorder = Recorder()
    if record is not None:
        path = path_of(record) if record else default_path(model)
        try:
            recorder.start(path)
        except FileExistsError:
            fail(f"{path} exists already, and a recording overwrites nothing; give {RECORD} another name.")
        except OSError as error:
            fail(f"{path} cannot be written: {error.strerror or error}; give {RECORD} another name.")
    return recorder
