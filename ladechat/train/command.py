"""`ladechat train transfer|medusa|sweep`, from the options to the files and an exit code."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ladechat.bench.command import load_model, stages
from ladechat.files import matching, seen
from ladechat.model.checkpoint.files import LoadError
from ladechat.terminal import say
from ladechat.train.options import Recipe, TrainOptions, TrainRefused, beside

if TYPE_CHECKING:
    from ladechat.train.setup import Setup

FAILED = 1
USAGE_ERROR = 2
INTERRUPTED = 130

GO_ON = "the same command goes on from there"


def run(options: TrainOptions) -> int:
    """Train, or estimate the cost. Return the exit code: 1 on failure, 2 if refused, 130 after Ctrl+C."""
    try:
        options.check()
        return _run(options)
    except KeyboardInterrupt:
        return _say(f"Stopped. What is written so far is kept; {GO_ON}.", INTERRUPTED)
    except TrainRefused as error:
        return _say(str(error), USAGE_ERROR)
    except LoadError as error:
        return _say(f"{error} {error.hint}", FAILED)
    except FloatingPointError as error:
        return _say(f"Training broke off: {error}. Give a smaller --rate.", FAILED)
    except OSError as error:
        name = f" in {error.filename}" if error.filename else ""
        why = error.strerror or str(error)
        return _say(f"The files cannot be written{name}: {why}. What was there before is kept; {GO_ON}.", FAILED)
    except Exception as error:  # used-up memory is raised as many types; all other errors pass
        from ladechat.model.runners.out_of_memory import memory_is_used_up

        if not memory_is_used_up(error):
            raise
        return _say("The memory is used up. Give smaller --batch, --anchors or --length.", FAILED)


def _run(options: TrainOptions) -> int:
    if options.estimate and (config := _config_without_weights(options.model)) is not None:
        return _estimate_from_shapes(options, config)
    with stages() as progress:
        loaded = load_model(options.model, options.device, options.dtype, progress, kernels=False)
    from ladechat.train.setup import prepare

    setup = prepare(loaded, options)
    if options.estimate:
        return _estimate(setup)
    if options.method == "sweep":
        from ladechat.train.sweep import sweep

        return sweep(setup)
    return _train(setup)


def _train(setup: "Setup") -> int:
    from ladechat.train.progress import in_figures, report
    from ladechat.train.trainer import Diverged, Training, TrainingInterrupted, train

    options = setup.options
    checkpoint = beside(options.out, ".checkpoint")
    if options.out.exists() and not checkpoint.exists():
        raise TrainRefused(f"{options.out} exists already, and nothing is overwritten; give --out another name.")
    setup.check_room()
    if not checkpoint.exists():
        say(setup.time_line())
    with report() as shown:
        texts = setup.texts(shown)
        recipe = setup.recipe(texts)
        training = Training(setup.base, recipe, setup.chunks(texts))
        if checkpoint.exists():
            training.resume(checkpoint)
        else:
            training.save(checkpoint)
        shown.begin("training", recipe.steps, training.step)
        try:
            with asked_to_stop() as stop:
                train(training, checkpoint, 60 * options.minutes, shown.step, shown.accuracy, stop)
        except TrainingInterrupted:
            progress = f"step {training.step:,} of {recipe.steps:,} is kept in {checkpoint}"
            return _say(f"Stopped: {progress}; {GO_ON}.", INTERRUPTED)
        except Diverged as error:
            progress = f"An earlier step is kept in {checkpoint}"
            return _say(f"Training broke off: {error}. {progress}; begin anew with a smaller --rate.", FAILED)
        found = training.accuracy()
    from ladechat.model.trained import Trained, write_trained

    maps = training.student.maps()
    write_trained(
        options.out, Trained(options.method, maps, found.chances, recipe.base, setup.model_name, recipe.steps)
    )
    checkpoint.unlink()
    print(f"{options.out}: {options.method}, {recipe.steps:,} steps")
    print(f"held out, {found.anchors:,} anchors, top-1/top-5: {in_figures(found)}; loss {found.loss:.3f}")
    return 0


def _config_without_weights(model: str) -> Path | None:
    """Return the folder of a model that has only its config.json: enough to estimate memory."""
    folder = Path(model).expanduser()
    if seen(folder / "config.json", Path.is_file) and not matching(folder, "*.safetensors"):
        return folder
    return None


def _estimate_from_shapes(options: TrainOptions, folder: Path) -> int:
    import torch

    from ladechat.model.load import choose_device, choose_dtype
    from ladechat.model.loading.config import read_config
    from ladechat.train.estimate import Shape, memory_lines, needs, recipe_of, work_line

    config = read_config(folder)
    shape = Shape.of(config.get_text_config())
    device = choose_device(options.device)
    dtype: torch.dtype = choose_dtype(options.dtype, device, config)
    for each in _methods(options, shape.depth):
        recipe = recipe_of(each)
        lines = memory_lines(needs(shape, recipe, dtype.itemsize), recipe, str(device))
        print(*lines, work_line(shape, recipe), sep="\n")
    print("Time is measured with the weights, which are not in this folder.")
    return 0


def _methods(options: TrainOptions, depth: int) -> list[TrainOptions]:
    """Return what to estimate: for a sweep, the training at its lowest layer, which needs the most memory."""
    filled = options.with_layers(depth)
    if options.method != "sweep":
        return [filled]
    lowest = (min(filled.layers or (0,)),) * options.ahead
    return [replace(filled, method="transfer", layers=lowest)]


def _estimate(setup: "Setup") -> int:
    from ladechat.train.estimate import memory_lines

    recipe: Recipe = setup.hungriest()
    print(*memory_lines(setup.needs(), recipe, str(setup.base.device)), sep="\n")
    setup.check_room()
    print(setup.time_line())
    return 0


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl+C was pressed; a second press interrupts at once."""
    pressed: list[int] = []

    def note(*_: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(signal.SIGINT)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _say(sentence: str, code: int) -> int:
    say(sentence)
    return code
