"""`ladechat train transfer|medusa|sweep`, from the options to the files and an exit code."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ladechat.bench.command import FAILED, USAGE_ERROR, exit_with, in_words, load_model, stages
from ladechat.files import matching, seen
from ladechat.interrupts import INTERRUPTED
from ladechat.terminal import say
from ladechat.train.options import Recipe, TrainOptions, TrainRefused, beside

if TYPE_CHECKING:
    from ladechat.train.setup import Setup

GO_ON = "the same command goes on from there"


def run(options: TrainOptions) -> int:
    """Train, or estimate the cost. Return the exit code: 1 on failure, 2 if refused, 130 after Ctrl+C."""
    return in_words(lambda: _checked(options), "Give smaller --batch, --anchors or --length.")


def _checked(options: TrainOptions) -> int:
    try:
        options.check()
        return _run(options)
    except KeyboardInterrupt:
        return exit_with(f"Stopped. What is written so far is kept; {GO_ON}.", INTERRUPTED)
    except TrainRefused as error:
        return exit_with(str(error), USAGE_ERROR)
    except FloatingPointError as error:
        return exit_with(f"Training broke off: {error}. Give a smaller --rate.", FAILED)
    except OSError as error:
        name = f" in {error.filename}" if error.filename else ""
        why = error.strerror or str(error)
        return exit_with(f"The files cannot be written{name}: {why}. What was there before is kept; {GO_ON}.", FAILED)


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
            return exit_with(f"Stopped: {progress}; {GO_ON}.", INTERRUPTED)
        except Diverged as error:
            progress = f"An earlier step is kept in {checkpoint}"
            return exit_with(f"Training broke off: {error}. {progress}; begin anew with a smaller --rate.", FAILED)
        found = training.accuracy()
    from ladechat.model.trained import Trained, write_trained

    maps = training.student.maps()
    name, steps = setup.model_name, recipe.steps
    trained = Trained(options.method, maps, found.chances, recipe.base, name, steps, found.top1)
    write_trained(options.out, trained)
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

    from ladechat.model.loading.config import read_config
    from ladechat.model.loading.device import choose_device, choose_dtype
    from ladechat.train.estimate import Shape, memory_lines, needs, work_line

    config = read_config(folder)
    shape = Shape.of(config.get_text_config())
    device = choose_device(options.device)
    dtype: torch.dtype = choose_dtype(options.dtype, device, config)
    recipe = Recipe.of(options.with_layers(shape.depth).largest())
    lines = memory_lines(needs(shape, recipe, dtype.itemsize), recipe, str(device))
    print(*lines, work_line(shape, recipe), sep="\n")
    print("Time is measured with the weights, which are not in this folder.")
    return 0


def _estimate(setup: "Setup") -> int:
    from ladechat.train.estimate import memory_lines

    print(*memory_lines(setup.needs(), setup.largest, str(setup.base.device)), sep="\n")
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
