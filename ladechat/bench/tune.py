"""`ladechat tune`: what passes cost on this machine, and which W, N and G that makes the fastest."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ladechat.bench.command import compile_passes, in_words, load_model, stages, tables_console
from ladechat.bench.questions import read_questions

if TYPE_CHECKING:
    from ladechat.decoder.estimate import Estimate
    from ladechat.decoder.tuner import Tuner

QUESTIONS = ("chat", "code", "multi_turn")
MAX_NEW_TOKENS = 64


def run(model: str, device: str, dtype: str, passes: str, quantize: str | None = None) -> int:
    """Time passes, let the tuner learn from questions, and print what it knows. The exit code, as for `bench`.

    What passes cost is kept, so that no session has to time them again.
    """
    return in_words(lambda: _tune(model, device, dtype, passes, quantize), "Use a smaller model, or --dtype bfloat16.")


def _tune(model: str, device: str, dtype: str, passes: str, quantize: str | None) -> int:
    with stages() as progress:
        loaded = load_model(model, device, dtype, progress, quantize)
        from ladechat.bench.options import Refused
        from ladechat.bench.prompts import make_prompts
        from ladechat.decoder.lookahead import LookaheadDecoder
        from ladechat.decoder.step import Limits
        from ladechat.decoder.tuned import TunedDecoder
        from ladechat.model.cost import PassCosts
        from ladechat.model.cost_file import costs_file

        if loaded.plain_only is not None:
            raise Refused(f"There is nothing to tune: {loaded.plain_only}")
        compile_passes(loaded, passes, progress)
        questions = read_questions(QUESTIONS)
        turns = sum(len(question.turns) for question in questions)
        progress.begin("answering by plain decoding", turns)
        prompts = make_prompts(loaded, questions, MAX_NEW_TOKENS, progress.advance)
        progress.begin("timing passes")
        costs = PassCosts(loaded.runner, costs_file(loaded.runner.model, loaded.device, passes))
        costs.refresh()
        costs.measure()
        measured = costs.known()
        decoder = TunedDecoder(LookaheadDecoder(loaded.runner), costs)
        progress.begin("trying W, N and G", turns)
        for prompt in prompts:
            for _ in decoder.run(prompt.token_ids, Limits(MAX_NEW_TOKENS, loaded.eos_ids)):
                pass
            progress.advance()
    console = tables_console()
    quantised = f", {loaded.quantization}" if loaded.quantization else ""
    console.print(f"{loaded.name} on {loaded.device}, {loaded.dtype}{quantised}")
    _show_costs(measured, console)
    _show_estimates(decoder.tuner, console, demo=model == "demo")
    return 0


def _show_costs(measured: dict[int, float], console: Console) -> None:
    table = Table("slots", "ms", "× plain", title="What a pass costs", title_justify="left")
    for column in table.columns:
        column.justify = "right"
    for slots, seconds in measured.items():
        table.add_row(str(slots), f"{1000 * seconds:.2f}", f"{seconds / measured[1]:.2f}")
    console.print(table)


def _show_estimates(tuner: "Tuner", console: Console, demo: bool) -> None:
    plain, *others = tuner.estimates()
    tried = sorted((one for one in others if one.known), key=lambda one: one.rate, reverse=True)
    table = Table("settings", "slots", "tok/step", "tok/s", "× plain", title="What they yield", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for one in (*tried, plain):
        worth = one.rate / plain.rate
        numbers = (f"{one.slots:.1f}", f"{one.tokens_per_step:.2f}", f"{one.rate:.1f}", f"{worth:.2f}")
        table.add_row(_name(one, plain), *numbers)
    console.print(table)
    left = [_name(one, plain) for one in others if not one.known]
    if left:
        console.print(f"Not tried, for little hope of a gain: {', '.join(left)}.")
    best = max((*tried, plain), key=lambda one: one.rate)
    asked = " with --auto" if demo else ""
    console.print(f"Fastest here: {_name(best, plain)}. ladechat finds that by itself{asked}.")


def _name(one: "Estimate", plain: "Estimate") -> str:
    settings = one.settings
    if one is plain:
        return "plain decoding"
    if not settings.window:
        return "no window, guesses where they pay"
    return f"W {settings.window} N {settings.ngram} G {settings.guesses}"
