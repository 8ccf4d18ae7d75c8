"""The one decode loop: drafters propose, a policy chooses, one pass verifies, the model decides.

It knows nothing of models, screens or text: token ids in, steps out.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor

from ladechat.decoder.acceptance import accept, log_probabilities
from ladechat.decoder.drafters.drafter import NOTHING, Drafter, PassResult, Room
from ladechat.decoder.hidden import Hidden, merged
from ladechat.decoder.policy import FixedPolicy, PassPlan, Policy
from ladechat.decoder.runner import Runner
from ladechat.decoder.sampler import Sampler
from ladechat.decoder.step import MODEL, Draft, Limits, Step
from ladechat.decoder.verify_mask import SlotTree


class Decoder:
    """One model, some drafters, a policy: a decoding method. Without drafters it is plain autoregressive decoding.

    Args:
        runner: the model and its KV cache.
        drafters: asked in this order; a token that two propose counts as the first one's.
        policy: by default everything that is proposed is verified.
        name: the decoder's name in messages.
    """

    def __init__(
        self, runner: Runner, drafters: Sequence[Drafter] = (), policy: Policy | None = None, name: str = "A drafter"
    ) -> None:
        self.runner = runner
        self.drafters = drafters
        self.policy = policy or FixedPolicy()
        self.name = name
        self._logits = False

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Set the drafters' parameters, between any two steps. The KV cache and what drafters have learnt stay."""
        for drafter in self.drafters:
            drafter.configure(parameters)

    def watch(self, lens: bool, logits: bool = False) -> None:
        """Turn the lens, see `Drafter.lens`, and `Step.logits` on or off from the next step on. The text stays."""
        self._logits = logits
        for drafter in self.drafters:
            drafter.lens = lens

    def run(
        self, prompt: Sequence[int], limits: Limits, sampler: Sampler | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """Generate until the limits or the end of the model's context; the tokens are those of plain decoding.

        1. **Prefill**: the prompt except its last token goes into the KV cache. Then, step by step:
        2. **Draft**: each drafter proposes a tree of tokens that may come next.
        3. **Choose**: the policy merges the drafts that are worth a slot into one tree below the last token.
        4. **Pass**: one forward pass gives the logits of every slot.
        5. **Accept**: take the model's own next token (argmax or draw) after slot 0; where it is a child of that slot,
           move to the child and take the next, until it is no child: that last token came for free.
        6. **Commit**: the slots whose logits gave tokens stay in the cache, all others are dropped.
        7. **Observe**: drafters and policy see every slot's logits and what was emitted.

        Example: the text ends in ``the``; a drafter proposes ``the → cat → sat`` and ``the → dog``. The pass has 4
        slots. After ``the`` the model chooses ``cat``: accepted. After ``cat`` it chooses ``ran``: no child, the step
        ends. It emitted ``cat ran``, two tokens for one pass; the slots of ``the`` and ``cat`` are committed, and
        ``ran`` is slot 0 of the next pass.

        Closing the iterator between two steps leaves the runner's cache consistent.

        Args:
            prompt: at least one token.
            limits: when to end.
            sampler: chooses the tokens, and has seen the prompt; None takes the argmax. Its sampling may be assigned
                between two steps.
            generated: how many of the last tokens of `prompt` already belong to this answer, where another decoder
                began it.

        Raises:
            ValueError: there are drafters, and the model takes one token per pass.
            FloatingPointError: the model's logits are NaN or infinite.
        """
        runner, text = self.runner, list(prompt)
        if self.drafters and not runner.capabilities.tree_attention:
            raise ValueError(f"{self.name} cannot run on this model: {runner.capabilities.single_token}")
        # 1. Prefill
        for _ in runner.prefill(prompt):
            pass
        sampler = sampler or Sampler(prompt)
        ending = limits.ending(len(prompt), runner.context_length)
        for drafter in self.drafters:
            drafter.begin(text, len(prompt) - generated)
        while not ending.reached:
            # 2. Draft, 3. Choose
            began = time.perf_counter()
            room, drafting = Room(ending.room, runner.max_positions), self.policy.drafting()
            proposals = [one.propose(room) if drafting or one.free else NOTHING for one in self.drafters]
            plan = self.policy.choose(text[-1], proposals)
            tree = plan.tree

            # 4. Pass
            cache_length, started = len(runner.tokens), time.perf_counter()
            logits, hidden = self._forward(plan)
            argmax, argmax_logprobs = runner.argmax(logits)
            seconds = time.perf_counter() - started

            # 5. Accept, 6. Commit
            greedy = sampler.sampling.is_argmax
            accepted = accept(tree, logits, argmax, sampler, ending)
            path, tokens = accepted
            # Before the commit: NaN must not stay in the cache.
            logprobs = log_probabilities(logits, accepted.read_slots, tokens, argmax_logprobs if greedy else None)
            watched = logits[list(accepted.read_slots)] if self._logits else None
            runner.commit(accepted.read_slots)

            # 7. Observe
            text.extend(tokens)
            result = PassResult(tree, logits, argmax, path, tokens, seconds, hidden, runner.largest)
            for drafter, own in zip(self.drafters, plan.slots, strict=True):
                drafter.observe(result, own)
            self.policy.observe(result, proposals, time.perf_counter() - began - seconds)
            origins = (*(tree.sources[slot] for slot in path), MODEL)[: len(tokens)]
            draft = drafted(tree, path) if self.drafters else None
            shown = tuple(one.snapshot for one in self.drafters if one.snapshot is not None)
            plain = len(tree) == 1 and hidden is None
            yield Step(tokens, logprobs, origins, len(tree), cache_length, seconds, draft, shown, plain, watched)

    def _forward(self, plan: PassPlan) -> tuple[Tensor, Hidden | None]:
        """Run one pass; return its logits and the hidden states that drafters requested."""
        tree = plan.tree
        want = merged([one.want(tree) for one in self.drafters], plan.carriers)
        return (self.runner.forward(tree), None) if want is None else self.runner.forward_hidden(tree, want)


def drafted(tree: SlotTree, path: Sequence[int]) -> Draft:
    """Return the drafts of a pass in the form of `Step.draft`: without slot 0, nodes numbered from 0."""
    parents = tuple(parent - 1 for parent in tree.parents[1:])
    return Draft(tuple(tree.tokens[1:]), parents, tuple(tree.sources[1:]), tuple(slot - 1 for slot in path))
