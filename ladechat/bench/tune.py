"""`ladechat tune`: what passes cost on this machine, and how many drafts a pass are worth that."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ladechat.bench.command import in_words, load_model, stages, tables_console
from ladechat.bench.questions import read_questions
from ladechat.catalog import DECODERS

if TYPE_CHECKING:
    from ladechat.tuning.adaptive import Expectation

QUESTIONS = ("chat", "code", "multi_turn")
MAX_NEW_TOKENS = 64


def run(model: str, device: str, dtype: str, quantize: str | None = None) -> int:
    """Time passes, let the adaptive policy learn from questions, and print what it knows.

    The costs are kept, so the next session need not time passes. The exit code is that of `bench`.
    """
    return in_words(lambda: _tune(model, device, dtype, quantize), "Use a smaller model, or --dtype bfloat16.")


def _tune(model: str, device: str, dtype: str, quantize: str | None) -> int:
    with stages() as progress:
        loaded = load_model(model, device, dtype, progress, quantize)
        from ladechat import registry
        from ladechat.bench.options import Refused
        from ladechat.bench.prompts import make_prompts
        from ladechat.decoder.step import Limits
        from ladechat.model.loading.pass_facts import pass_facts
        from ladechat.tuning.adaptive import AdaptivePolicy
        from ladechat.tuning.cost_file import costs_file
        from ladechat.tuning.costs import PassCosts

        if not loaded.runner.capabilities.tree_attention:
            raise Refused(f"There is nothing to tune: {loaded.runner.capabilities.single_token}")
        questions = read_questions(QUESTIONS)
        turns = sum(len(question.turns) for question in questions)
        progress.begin("answering by plain decoding", turns)
        prompts = make_prompts(loaded, questions, MAX_NEW_TOKENS, progress.advance)
        progress.begin("timing passes")
        costs = PassCosts(loaded.runner, costs_file(**pass_facts(loaded.model, loaded.device)))
        costs.measure()
        measured = costs.known()
        name = next(info.name for info in DECODERS.values() if info.by_hand is not None)
        decoder = registry.make(name, loaded.runner, registry.Shared(costs))
        assert isinstance(decoder.policy, AdaptivePolicy)
        progress.begin("drafting", turns)
        for prompt in prompts:
            for _ in decoder.run(prompt.token_ids, Limits(MAX_NEW_TOKENS, loaded.eos_ids)):
                pass
            progress.advance()
    console = tables_console()
    quantised = f", {loaded.quantization}" if loaded.quantization else ""
    console.print(f"{loaded.name} on {loaded.device}, {loaded.dtype}{quantised}")
    show(measured, decoder.policy.expectation, console)
    return 0


def show(seconds: dict[int, float], expectation: "Expectation", console: Console) -> None:
    """Print what passes cost, and what the policy expects of the best drafts for so many slots.

    Args:
        seconds: of passes, by their slots.
        expectation: of the policy, after some text.
        console: where it goes.
    """
    columns = ("slots", "ms", "× plain", "tokens", "tok/s", "× plain")
    table = Table(*columns, title="What a pass costs, and the tokens expected of it", title_justify="left")
    for column in table.columns:
        column.justify = "right"
    for slots, taken in seconds.items():
        tokens, cost = expectation.by_slots[slots - 1], taken / seconds[1]
        costs = (f"{1000 * taken:.2f}", f"{cost:.2f}")
        table.add_row(str(slots), *costs, f"{tokens:.2f}", f"{tokens / taken:.1f}", f"{tokens / cost:.2f}")
    console.print(table)
    console.print(
        f"Chosen lately: passes of {expectation.slots:.1f} slots, expected to bring {expectation.tokens:.2f} tokens, "
        "on average. The number of drafts is chosen anew for every pass."
    )
