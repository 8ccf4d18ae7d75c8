"""One forward pass that verifies drafts: through the model, along the tree, into the cache."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ladechat.decoder.acceptance import accept, finite, log_probabilities
from ladechat.decoder.candidate_tree import ROOT, CandidateTree
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Draft, Ending, Limits, Origin, PoolSnapshot, Step, WindowSnapshot
from ladechat.decoder.verify_mask import StepLayout

NOTHING_DRAFTED = Draft((), (), (), ())


class Verified(NamedTuple):
    """What a pass yielded.

    Attributes:
        tokens, logprobs, origins: the emitted tokens, see `Step`.
        path: the nodes of the tree that they are, in order; the model's own token is none.
        ended: whether the text ends with the last of them.
        likeliest: (T,) the argmax under every slot.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    origins: tuple[Origin, ...]
    path: tuple[int, ...]
    ended: bool
    likeliest: Sequence[int]
    slots: int
    cache_length: int
    forward_seconds: float

    def step(
        self,
        tree: CandidateTree | None = None,
        window: WindowSnapshot | None = None,
        pool: PoolSnapshot | None = None,
    ) -> Step:
        """The step that this pass was, with what the decoder has to show of it."""
        draft = None if tree is None else drafted(tree, self.path)
        # By place, as in `verify`: by name it takes three times as long, at every step.
        common = (self.tokens, self.logprobs, self.origins, self.slots, self.cache_length, self.forward_seconds)
        return Step(*common, draft, window, pool)


def begin(
    runner: Runner, prompt: Sequence[int], limits: Limits, selector: Selector | None, drafting: str = ""
) -> tuple[Selector, Ending]:
    """What every run begins with: the prompt into the cache, who chooses its tokens, and how many there may be.

    Args:
        runner: whose cache it is.
        prompt: at least one token.
        limits: when the run ends.
        selector: chooses the tokens; None takes the likeliest.
        drafting: the name of a decoder that verifies several tokens in a pass.

    Raises:
        ValueError: this decoder drafts, and the model can only be decoded one token a pass.
    """
    if drafting and runner.plain_only is not None:
        raise ValueError(f"{drafting} cannot run on this model: {runner.plain_only}")
    for _ in runner.prefill(prompt):
        pass
    return selector or Selector(prompt), limits.ending(limits.room(len(prompt), runner.context_length))


def verify(
    runner: Runner, layout: StepLayout, tree: CandidateTree, selector: Selector, ends: Callable[[int], bool]
) -> Verified:
    """Run a pass and keep the slots of what it confirms.

    Args:
        runner: its cache lacks the last token only, which is slot 0 of the layout.
        layout: where the nodes of the tree stand.
        tree: the drafts.
        selector: says what comes next.
        ends: whether the text ends with a token; asked of each one that is emitted, in order.

    Raises:
        FloatingPointError: the model's logits are not numbers.
    """
    cache_length = len(runner.tokens)
    started = time.perf_counter()
    logits = runner.forward(layout)
    likeliest, likelihoods = runner.read(logits)
    forward_seconds = time.perf_counter() - started

    greedy = selector.selection.takes_the_likeliest
    path: tuple[int, ...] = ()
    origins: tuple[Origin, ...] = ("model",)
    slots: Sequence[int] = (0,)
    if tree.tokens:
        slot_of = (*layout.node_slots, 0)  # that of the root, which is node -1, stands last

        def choose(node: int) -> int:
            return selector.take(likeliest[slot_of[node]]) if greedy else selector.select(logits[slot_of[node]])

        path, tokens, ended = accept(tree, choose, ends)
        drafted_by: list[Origin] = [tree.sources[node] for node in path]
        origins = (*drafted_by, *origins)[: len(tokens)]
        # The slots under which the emitted tokens were read are those of the tokens before them: what the cache lacks.
        slots = [slot_of[node] for node in (ROOT, *path)][: len(tokens)]
    else:  # as in most steps: to follow no guess would take as long as all else here
        token = selector.take(likeliest[0]) if greedy else selector.select(logits[0])
        tokens, ended = (token,), ends(token)
    # First: what is no number must not stay in the cache.
    if likelihoods is not None and greedy:
        logprobs = finite([likelihoods[slot] for slot in slots])
    else:
        logprobs = log_probabilities(logits, slots, tokens)
    runner.keep(slots)
    return Verified(tokens, logprobs, origins, path, ended, likeliest, len(layout), cache_length, forward_seconds)


def drafted(tree: CandidateTree, path: tuple[int, ...]) -> Draft:
    """The tree as a step shows it, given the accepted nodes."""
    if not tree.tokens:
        return NOTHING_DRAFTED
    return Draft(tuple(tree.tokens), tuple(tree.parents), tuple(tree.sources), path)
