"""`ladechat tune`: measures the costs of passes on this machine, and how many drafts a pass are worth them."""

import time
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from statistics import fmean
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ladechat.bench.command import in_words, load_model, stages, tables_console
from ladechat.bench.questions import Question, read_questions
from ladechat.catalog import DECODERS
from ladechat.model.parallel.workers import Workers

if TYPE_CHECKING:
    from ladechat.bench.command import Stages
    from ladechat.bench.figures import Figures
    from ladechat.model.loaded import LoadedModel
    from ladechat.tuning.adaptive import Forecast
    from ladechat.tuning.costs import PassCosts

QUESTIONS = ("chat", "code", "multi_turn")
MAX_NEW_TOKENS, LEAST_NEW_TOKENS = 64, 8
SECONDS_AN_ANSWER = 4.0
"""If passes take long, answers are shorter, so that plain decoding takes about this long for one."""
LATEST = 30
"""The number of passes over which forecasts are averaged."""
FEW_QUESTIONS = 2
LOOKAHEAD = ((3, 3, 3), (5, 3, 5), (7, 5, 7), (10, 5, 10), (15, 5, 15))
"""The settings of lookahead decoding that are compared: W, N and G."""
SECONDS = 80.0
"""No question is started after this time: the acceptance rates of earlier ones are good enough."""


def run(
    model: str,
    device: str,
    dtype: str,
    quantize: str | None = None,
    passes: str = "auto",
    workers: Workers | None = None,
) -> int:
    """Time passes, let the adaptive policy learn from questions, and print what it knows.

    The costs are saved, so the next session need not time passes. Returns the exit code, as that of `bench`.
    """
    work = partial(_tune, model, device, dtype, quantize, passes, workers)
    return in_words(work, "Use a smaller model, or --dtype bfloat16.")


def _tune(model: str, device: str, dtype: str, quantize: str | None, passes: str, workers: Workers | None) -> int:
    with stages() as progress:
        loaded = load_model(model, device, dtype, progress, quantize, passes=passes, workers=workers)
        from ladechat.bench.modelled import show_model
        from ladechat.bench.options import BenchRefused
        from ladechat.model.loaded import pass_facts
        from ladechat.tuning.costs import PassCosts
        from ladechat.tuning.saved import saved_file

        if not loaded.runner.capabilities.tree_attention:
            raise BenchRefused(f"There is nothing to tune: {loaded.runner.capabilities.single_token}")
        questions = mixed(read_questions(QUESTIONS))
        progress.begin("timing passes")
        for _ in loaded.runner.prefill([0, 0]):
            pass
        costs = PassCosts(loaded.runner, saved_file("costs", **pass_facts(loaded)))
        costs.measure()
        measured = costs.known()
        tokens = max(LEAST_NEW_TOKENS, min(MAX_NEW_TOKENS, int(SECONDS_AN_ANSWER / measured[1])))
        forecasts, answered = _answer(loaded, costs, questions, tokens, progress)
        settings = _try_settings(loaded, questions[:FEW_QUESTIONS], tokens, progress)
    console = tables_console()
    quantised = f", {loaded.quantization}" if loaded.quantization else ""
    console.print(f"{loaded.name} on {loaded.device}, {loaded.dtype}{quantised}")
    show(measured, [one for one in forecasts if one.drafting][-LATEST:], console)
    show_settings(settings, console)
    if workers is None and loaded.runner.device.type == "cuda":
        show_model(settings, costs, console)
    if answered < len(questions) or tokens < MAX_NEW_TOKENS:
        asked = f"{answered} of {len(questions)} questions, in answers of up to {tokens} tokens"
        console.print(f"Passes take long here, so acceptance was learnt from {asked}.")
    return 0


def _answer(
    loaded: "LoadedModel", costs: "PassCosts", questions: Sequence[Question], tokens: int, progress: "Stages"
) -> tuple[list["Forecast"], int]:
    """Have `auto` answer questions, in up to `SECONDS`. Return its forecasts, and how many questions it answered."""
    from ladechat import registry
    from ladechat.bench.prompts import make_prompts
    from ladechat.decoder.step import Limits
    from ladechat.tuning.adaptive import AdaptivePolicy

    name = next(info.name for info in DECODERS.values() if info.by_hand is not None)
    decoder = registry.make(name, loaded.runner, registry.Shared(costs))
    assert isinstance(decoder.policy, AdaptivePolicy)
    forecasts: list[Forecast] = []
    answered, until = 0, time.perf_counter() + SECONDS
    progress.begin("answering, plainly and with drafts", len(questions))
    for question in questions:
        if answered and time.perf_counter() > until:
            break
        for prompt in make_prompts(loaded, [question], tokens, lambda: None):
            forecasts += [
                decoder.policy.forecast for _ in decoder.run(prompt.token_ids, Limits(tokens, loaded.eos_ids))
            ]
        answered += 1
        progress.advance()
    return forecasts, answered


def _try_settings(
    loaded: "LoadedModel", questions: Sequence[Question], tokens: int, progress: "Stages"
) -> dict[str, "Figures"]:
    """Return the figures of lookahead decoding at each of `LOOKAHEAD`, beside those of plain decoding, by name."""
    from ladechat.bench.figures import figures
    from ladechat.bench.measure import answers_in_all, measure
    from ladechat.bench.methods import make_methods
    from ladechat.bench.options import PLAIN, by_hand
    from ladechat.bench.prompts import make_prompts
    from ladechat.decoder.step import Limits

    prompts = make_prompts(loaded, questions, tokens, lambda: None)
    methods = make_methods(loaded, (PLAIN, by_hand().name), LOOKAHEAD)
    progress.begin("trying W, N and G", answers_in_all(methods, prompts, 1))
    rounds = measure(methods, prompts, Limits(tokens, loaded.eos_ids), 1, progress.advance)
    return {method.name: figures(method.name, rounds, prompts) for method in methods}


def mixed(questions: Sequence[Question]) -> list[Question]:
    """Return questions of all kinds in turn: a run that stops early has used some of each kind."""
    kinds: dict[str, list[Question]] = {}
    for question in questions:
        kinds.setdefault(question.kind, []).append(question)
    return [one for same in zip_longest(*kinds.values()) for one in same if one is not None]


def show(seconds: dict[int, float], forecasts: Sequence["Forecast"], console: Console) -> None:
    """Print what passes cost, and the tokens that the policy expects of the best drafts in that many slots.

    Args:
        seconds: the seconds of a pass, by its slots.
        forecasts: the policy's forecasts at some places of a text, at least one; their mean is shown.
        console: the console to print to.
    """
    columns = ("slots", "ms", "cost, × plain", "tokens", "tok/s", "speed, × plain")
    table = Table(*columns, title="What a pass costs, and the tokens expected of it", title_justify="left")
    for column in table.columns:
        column.justify = "right"
    by_slots = [fmean(tokens) for tokens in zip(*(one.by_slots() for one in forecasts), strict=True)]
    for slots, taken in seconds.items():
        tokens, cost = by_slots[slots - 1], taken / seconds[1]
        costs = (f"{1000 * taken:.2f}", f"{cost:.2f}")
        table.add_row(str(slots), *costs, f"{tokens:.2f}", f"{tokens / taken:.1f}", f"{tokens / cost:.2f}")
    console.print(table)
    console.print(
        f"The last passes that auto chose had {fmean(one.slots for one in forecasts):.1f} slots on average, and it "
        f"expected {fmean(one.tokens for one in forecasts):.2f} tokens of each. It chooses the number of drafts anew "
        "for every pass."
    )


def show_settings(methods: dict[str, "Figures"], console: Console) -> None:
    """Print the measured speed of plain decoding, the first, and of lookahead decoding at each setting, by its name, as
    in "lookahead 5,3,5"; and name the best one.
    """
    table = Table("W, N, G", "slots", "tokens a pass", "tok/s", "speed, × plain", title_justify="left")
    table.title = "Lookahead decoding, measured"
    for column in table.columns[1:]:
        column.justify = "right"
    speeds: dict[str, float] = {}
    for name, one in methods.items():
        numbers = name.partition(" ")[2].replace(",", ", ") or "plain"
        if one.tokens_per_second is None or one.speedup is None:
            continue
        speeds[numbers] = one.speedup
        counts = f"{one.slots / one.passes:.1f}", f"{one.tokens_per_step:.2f}"
        table.add_row(numbers, *counts, f"{one.tokens_per_second:.1f}", f"{one.speedup:.2f}")
    console.print(table)
    best = max(speeds, key=lambda each: speeds[each], default="plain")
    if best == "plain":
        console.print("No window pays here: passes of many slots take too long.")
    else:
        options = " ".join(f"-{name} {number}" for name, number in zip("WNG", best.split(", "), strict=True))
        console.print(f"The best of these here: --decoder lookahead {options}.")
