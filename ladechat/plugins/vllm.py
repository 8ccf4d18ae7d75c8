"""ladechat's token drafters inside vLLM: suffix matching, n-gram pool and prompt lookup in one.

    vllm serve MODEL --speculative-config \\
      '{"method": "custom_class", "model": "ladechat.plugins.vllm.Proposer", "num_speculative_tokens": 8}'

vLLM verifies one chain of drafts for each row of its batch, so the text is its own. See docs/serving.md.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import Drafter
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.drafters.pool import PoolDrafter
from ladechat.decoder.drafters.prompt_lookup import PromptLookupDrafter
from ladechat.decoder.drafters.suffix import SuffixDrafter
from ladechat.plugins.chain import Chain, best_chain
from ladechat.plugins.served import ServedRequest, ServedRequests, Tokens
from ladechat.plugins.step_costs import StepCosts
from ladechat.tuning.learning import AcceptanceRates

REMEMBERED = 1 << 20
"""The most tokens of all requests together of which drafters are made; each has its share."""
LEAST_REMEMBERED = 1024
"""The share of a request, however many there are."""
POOL_BYTES = 1 << 26
"""The memory of a pool that all requests share; each one's own has its share of it."""
GUESSES = 1
"""n-grams of the pool that are considered for a chain: the second best hardly ever wins."""


class Proposer:
    """Proposes a chain for each row of a vLLM batch: the best by learnt acceptance rates, as long as it pays.

    Requests share how often guesses of each kind were right, and no text. A draft is worth its slot if it raises the
    tokens of the batch by more than the time of its step; that is learnt from the time between two calls.
    """

    def __init__(self, vllm_config: Any, clock: Callable[[], float] = time.perf_counter) -> None:
        self._drafts: int = vllm_config.speculative_config.num_speculative_tokens
        self._longest: int = vllm_config.model_config.max_model_len
        rows: int = vllm_config.scheduler_config.max_num_seqs
        self._pool_bytes, most = POOL_BYTES // rows, max(LEAST_REMEMBERED, REMEMBERED // rows)
        self._requests = ServedRequests(rows, lambda text: ServedRequest(text, most, self._drafters))
        self._rates, self._costs, self._clock = AcceptanceRates(), StepCosts(), clock
        self._slots, self._since = 0, 0.0
        """The slots of the step that runs, and when it began."""

    def load_model(self, *_: object, **__: object) -> None:
        """Do nothing: there is no draft model."""

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: Sequence[int] | NDArray[np.integer[Any]],
        token_ids_cpu: NDArray[np.integer[Any]],
        slot_mappings: object = None,
    ) -> list[list[int]]:
        """Return the drafts for each row of the batch.

        Args:
            sampled_token_ids: each row's new tokens; empty where its prompt is still read.
            num_tokens_no_spec: (rows,) the length of each row's text, with the new tokens.
            token_ids_cpu: (rows, longest) the texts.
            slot_mappings: not used.
        """
        seconds = self._clock() - self._since
        texts: dict[int, Tokens] = {
            row: np.asarray(token_ids_cpu[row][: int(num_tokens_no_spec[row])], np.int32)
            for row, sampled in enumerate(sampled_token_ids)
            if len(sampled)
        }
        requests, same = self._requests.find(texts)
        if same and self._slots and 0 < len(texts) == len(sampled_token_ids):
            self._costs.observe(self._slots, seconds)
        chains: dict[int, Chain] = {}
        for row, request in requests.items():
            request.read(texts[row], self._rates)
            room = min(self._drafts, self._longest - len(texts[row]) - 1)
            chains[row] = best_chain(request.propose(room), self._rates) if room > 0 else Chain([], [])
        least = self._least_chance(list(chains.values()))
        drafts: list[list[int]] = [[] for _ in sampled_token_ids]
        for row, chain in chains.items():
            drafts[row] = [token for token, chance in zip(*chain, strict=True) if chance >= least]
        self._slots = len(texts) + sum(map(len, drafts))
        self._since = self._clock()
        return drafts

    def _drafters(self) -> Sequence[Drafter]:
        """Return the drafters of a request."""
        return (
            SuffixDrafter(self._drafts),
            PoolDrafter(self._pool(), self._drafts + 1, GUESSES, pool_prompt=False),
            PromptLookupDrafter(self._drafts, match=1),
        )

    def _pool(self) -> NGramPool:
        """Return the pool of a request, for the n-grams of its answer."""
        return NGramPool(self._pool_bytes)

    def _least_chance(self, chains: Sequence[Chain]) -> float:
        """Return the least chance of a draft with which the batch gets the most tokens a second; above 1 for none."""
        chances = np.sort([chance for chain in chains for chance in chain.chances])[::-1]
        if not len(chances):
            return 2.0
        tokens = len(chains) + np.cumsum([0.0, *chances])
        seconds = self._costs.of(len(chains) + np.arange(len(tokens)))
        best = int(np.argmax(tokens / seconds))
        return float(chances[best - 1]) if best else 2.0


class SharingProposer(Proposer):
    """Also guesses what other requests were answered: they share one pool, with the n-grams of all answers.

    For requests of one user, or where an answer that resembles another's may come faster: its speed then shows that
    somebody got the same.
    """

    def __init__(self, vllm_config: Any, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__(vllm_config, clock)
        self._shared = NGramPool(POOL_BYTES)

    def _pool(self) -> NGramPool:
        return self._shared
