"""Rules between the fields of an event, which its types cannot express. Screens rely on them.

An event that breaks a rule is refused where it is decoded, like any other bad line, live and in a recording. Ranges of
single numbers and lengths of texts are part of the types, in `ladechat.protocol.values`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ladechat.protocol.contract import ProtocolError
from ladechat.protocol.events import Event, PassCosts, PolicyChoice, Ready, Step, TurnFinished, TurnStarted
from ladechat.protocol.values import DraftTree, ExpectedTokens, LensView, PassCost, PoolView, WindowView


def check(event: Event) -> None:
    """Check an event that has just been decoded.

    Raises:
        ProtocolError: a field does not fit the others; the message names it.
    """
    rules = _RULES.get(type(event))
    if rules is not None:
        rules(event)


def _step(step: Step) -> None:
    tokens = len(step.token_ids)
    if not tokens:
        raise ProtocolError("`token_ids` is empty")
    if not tokens == len(step.pieces) == len(step.logprobs) == len(step.origins):
        raise ProtocolError("`token_ids`, `pieces`, `logprobs` and `origins` are not of one length")
    if step.reasoning > tokens:
        raise ProtocolError("`reasoning` is above the number of tokens")
    if len(step.rivals) not in (0, tokens):
        raise ProtocolError("`rivals` is neither empty nor of the length of `token_ids`")
    if any(len(one.pieces) != len(one.logprobs) for one in step.rivals):
        raise ProtocolError("`rivals` has an entry whose `pieces` and `logprobs` are not of one length")
    if step.draft is not None:
        _draft(step.draft)
    if step.window is not None:
        _window(step.window)
    if step.pool is not None:
        _pool(step.pool)
    if step.lens is not None:
        _lens(step.lens)


def _draft(draft: DraftTree) -> None:
    nodes = len(draft.token_ids)
    if not nodes == len(draft.pieces) == len(draft.parents) == len(draft.sources) == len(draft.verdicts):
        raise ProtocolError(
            "`token_ids`, `pieces`, `parents`, `sources` and `verdicts` of `draft` are not of one length"
        )
    for node, parent in enumerate(draft.parents):
        if not -1 <= parent < node:
            raise ProtocolError(f"`draft.parents` has {parent} for node {node}, which is not before it")


def _window(window: WindowView) -> None:
    if list(map(len, window.rows)) != list(map(len, window.row_ids)):
        raise ProtocolError("`window.rows` and `window.row_ids` are not of one shape")
    if len(window.fresh) != len(window.fresh_ids):
        raise ProtocolError("`window.fresh` and `window.fresh_ids` are not of one length")


def _pool(pool: PoolView) -> None:
    if pool.hits > pool.lookups:
        raise ProtocolError("`pool.hits` is above `pool.lookups`")
    for one in pool.candidates:
        if not one.matched <= len(one.token_ids) == len(one.pieces):
            raise ProtocolError("`pool.candidates` has one whose tokens, pieces and `matched` do not fit each other")


def _lens(lens: LensView) -> None:
    sizes = [len(row) for row in lens.rows]
    if not sizes or not len(sizes) == len(lens.layers):
        raise ProtocolError("`lens.layers` and `lens.rows` are not of one length, or empty")
    if sizes != [len(row) for row in lens.row_ids]:
        raise ProtocolError("`lens.rows` and `lens.row_ids` are not of one shape")
    if any(below >= above for below, above in pairwise(lens.layers)):
        raise ProtocolError("`lens.layers` does not rise")
    if any(below > above for below, above in pairwise(sizes)):
        raise ProtocolError("`lens.rows` has a row that lacks positions of the one below it")


def _policy_choice(choice: PolicyChoice) -> None:
    _rising("costs", choice.costs)
    _rising("expected", choice.expected)


def _pass_costs(measured: PassCosts) -> None:
    _rising("costs", measured.costs)


def _rising(name: str, by_slots: Sequence[PassCost | ExpectedTokens]) -> None:
    if any(before.slots >= after.slots for before, after in pairwise(by_slots)):
        raise ProtocolError(f"`{name}` does not rise by its slots")


def _turn_started(turn: TurnStarted) -> None:
    if not turn.messages:
        raise ProtocolError("`messages` is empty")
    if turn.cached_tokens > len(turn.prompt_ids):
        raise ProtocolError("`cached_tokens` is above the length of `prompt_ids`")
    if turn.continued_tokens > len(turn.prompt_ids):
        raise ProtocolError("`continued_tokens` is above the length of `prompt_ids`")


def _turn_finished(turn: TurnFinished) -> None:
    if turn.pass_tokens and sum(turn.pass_tokens) != len(turn.token_ids):
        raise ProtocolError("`pass_tokens` does not add up to the number of tokens")
    if turn.untimed_tokens > len(turn.token_ids):
        raise ProtocolError("`untimed_tokens` is above the number of tokens")


def _ready(ready: Ready) -> None:
    for info in ready.decoders:
        if len({one.name for one in info.parameters}) < len(info.parameters):
            raise ProtocolError(f"`decoders` has two parameters of one name in {info.name!r}")
        for one in info.parameters:
            if not isinstance(one.default, bool) and not one.least <= one.default <= one.most:
                raise ProtocolError(f"`decoders` has a default out of its range: {one.name!r}")


_RULES: Mapping[type[Event], Callable[[Any], None]] = {
    PassCosts: _pass_costs,
    PolicyChoice: _policy_choice,
    Ready: _ready,
    Step: _step,
    TurnFinished: _turn_finished,
    TurnStarted: _turn_started,
}
