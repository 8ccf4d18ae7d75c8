"""`ladechat bench`, from the options to the tables and an exit code."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ladechat.bench.options import PLAIN, TRANSFORMERS, BenchOptions, BenchRefused
from ladechat.bench.questions import Question, read_questions
from ladechat.interrupts import INTERRUPTED
from ladechat.model.checkpoint.fetch import fetch, start_libraries
from ladechat.model.checkpoint.files import LoadError
from ladechat.model.kernels.build import Build
from ladechat.model.parallel.workers import SECONDS_FOR_THE_REASON, Workers, how_it_ended
from ladechat.private_folder import keep_torch_caches_private
from ladechat.terminal import say

if TYPE_CHECKING:
    from ladechat.bench.report import BenchReport
    from ladechat.model.loaded import LoadedModel

FAILED = 1
USAGE_ERROR = 2

PIPE_COLUMNS = 120
"""The width of tables where the output is no terminal."""


def run(options: BenchOptions) -> int:
    """Measure, print the tables and write the files. Return 1 on failure, 2 if refused, 130 after Ctrl+C, else 0."""
    return in_words(lambda: _run(options), "Use a smaller model, smaller --settings, or --dtype bfloat16.")


def _run(options: BenchOptions) -> int:
    options.check()
    questions = read_questions(options.questions)
    with stages() as progress:
        report = _measured(options, questions, progress)
    from ladechat.bench.report import show

    show(report, tables_console())
    return _write(report, options)


def in_words(work: Callable[[], int], out_of_memory: str) -> int:
    """Return the exit code of a measurement; if it fails, print the reason in one sentence, with what to do if there is
    not enough memory, and return the code as `run`.
    """
    try:
        return work()
    except KeyboardInterrupt:
        return exit_with("Stopped; nothing was written.", INTERRUPTED)
    except BenchRefused as error:
        return exit_with(str(error), USAGE_ERROR)
    except LoadError as error:
        return exit_with(f"{error} {error.hint}", FAILED)
    except FloatingPointError as error:
        return exit_with(f"The answers were broken off: {error}", FAILED)
    except Exception as error:  # used-up memory is raised as many types; all other errors pass
        from ladechat.model.runners.out_of_memory import memory_is_used_up

        if not memory_is_used_up(error):
            raise
        return exit_with(f"The memory is used up. {out_of_memory}", FAILED)


def _measured(options: BenchOptions, questions: Sequence[Question], progress: "Stages") -> "BenchReport":
    asked = (options.model, options.device, options.dtype, progress)
    workers = workers_for(options.tensor_parallel, options.lookahead_parallel)
    loaded = load_model(*asked, options.quantize, options.maps, passes=options.passes, workers=workers)
    # Not before: importing these takes seconds, and errors in the options or the checkpoint are known by now.
    from ladechat.bench.layer_search import saved_layers, search_layers
    from ladechat.bench.measure import answers_in_all, measure
    from ladechat.bench.methods import make_methods, uses_kernels, why_unusable
    from ladechat.bench.prompts import make_prompts
    from ladechat.bench.report import make_report
    from ladechat.decoder.step import Limits
    from ladechat.model.kernels.swap import round_weights_as

    decoders = [name for name in options.decoders if options.named or why_unusable(name, loaded) is None]
    names = list(dict.fromkeys((PLAIN, *decoders)))
    unmodified = None
    if loaded.model is not None and uses_kernels(loaded.model) and TRANSFORMERS.keys() & set(names):
        unmodified = load_model(*asked, kernels=False).model
        round_weights_as(loaded.model, unmodified)
        loaded.threads.use()
    if options.layer_search:
        progress.begin("searching for layers to skip")
        search_layers(loaded, options.layer_search, progress.reach)
    methods = make_methods(loaded, names, options.settings, unmodified, saved_layers(loaded))
    progress.begin("answering by plain decoding", sum(len(question.turns) for question in questions))
    prompts = make_prompts(loaded, questions, options.max_new_tokens, progress.advance)
    progress.begin("measuring", answers_in_all(methods, prompts, options.rounds))
    limits = Limits(options.max_new_tokens, loaded.eos_ids)
    rounds = measure(methods, prompts, limits, options.rounds, progress.advance)
    threads = {method.name: method.threads for method in methods}
    return make_report(loaded, threads, prompts, rounds, options.max_new_tokens)


def workers_for(tensor_parallel: int, lookahead_parallel: int) -> Workers | None:
    """Return the processes that compute with the model beside this one; None if there are none."""
    processes = max(tensor_parallel, lookahead_parallel)

    def ended(exit_code: int) -> None:
        if exit_code:  # else the measurement is over
            Console(stderr=True).show_cursor()
            os._exit(exit_with(how_it_ended(exit_code), FAILED))

    def failed(error: Exception) -> NoReturn:
        time.sleep(SECONDS_FOR_THE_REASON)
        raise error

    return Workers(processes, lookahead_parallel > 1, ended, failed) if processes > 1 else None


def load_model(
    model: str,
    device: str,
    dtype: str,
    progress: "Stages",
    quantize: str | None = None,
    maps: Sequence[Path] = (),
    kernels: bool = True,
    passes: str = "auto",
    workers: Workers | None = None,
) -> "LoadedModel":
    """Load the model to measure, as the engine does; without our kernels, with the default number of threads."""
    progress.begin(f"looking for {model}")
    folder = fetch(model, lambda done, total: progress.reach(done / total))
    keep_torch_caches_private()
    start_libraries(folder, progress.begin)
    import torch

    from ladechat.model.load import load
    from ladechat.model.loading.device import choose_device, default_threads, leave_a_core_free, slower_on_cpu

    torch.set_num_threads(default_threads())
    if kernels:
        leave_a_core_free(workers.processes if workers else 1)
    build = Build() if kernels else None
    if (why := slower_on_cpu(choose_device(device), dtype)) is not None:
        progress.say(f"Everything takes long here: {why}.")
    given = (folder, model, device, dtype, progress.begin, progress.reach)
    loaded = load(*given, workers, quantize=quantize, kernels=build, maps=maps, passes=passes)
    loaded.runner.use_graphs()
    return loaded


def tables_console() -> Console:
    """Return the console for tables: the terminal, or a pipe, which has room for all of their columns."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    return console


def _write(report: "BenchReport", options: BenchOptions) -> int:
    from ladechat.bench.report import write_json

    try:
        if options.json is not None:
            write_json(report, options.json)
        if options.plot is not None:
            from ladechat.bench.plot import write_plot  # only if a plot is requested: matplotlib may not be installed

            write_plot(report, options.plot)
    except OSError as error:  # it was writable when the run began
        return exit_with(f"{error.filename or 'A file'} could not be written: {error.strerror or error}.", FAILED)
    return 0


def exit_with(sentence: str, code: int) -> int:
    """Say why a command ends, on standard error, and return its exit code."""
    say(sentence)
    return code


class Stages:
    """The current stage and its progress, on one line of standard error. Drawn between two answers, never during
    one.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def begin(self, doing: str, steps: float = 1) -> None:
        """Start a stage of `steps` steps."""
        self._progress.reset(self._task, description=doing, total=steps)
        self._progress.refresh()

    def say(self, sentence: str) -> None:
        """Print a sentence above the progress line, where it stays."""
        self._progress.console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def advance(self) -> None:
        """Count one more step of the stage as done."""
        self._progress.advance(self._task)
        self._progress.refresh()

    def reach(self, fraction: float) -> None:
        """Set the progress of the stage, 0 to 1."""
        self._progress.update(self._task, completed=fraction)
        self._progress.refresh()


@contextmanager
def stages() -> Iterator[Stages]:
    """Yield stages that are shown on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, auto_refresh=False, transient=True, disable=hidden) as progress:
        yield Stages(progress)
