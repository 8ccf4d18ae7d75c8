"""The verification branch of lookahead decoding as a drafter: pool n-grams that begin with the text's last tokens."""

from collections.abc import Mapping, Sequence
from itertools import islice

from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, PassResult, Proposal, Room
from ladechat.decoder.drafters.ngram_pool import ACCEPTED, LONGEST_CONTEXT, Guess, NGramPool
from ladechat.decoder.step import PoolSnapshot

SHOWN_UNTRIED = 8
"""How many guesses beyond the guess limit are looked up, for display only."""

CHANCES = (0.25, 0.5, 0.65, 0.7)
"""The assumed acceptance rate of the first token of the first guess, by the number of context tokens it matched."""
LATER_CHANCE = 0.8
"""The assumed acceptance rate of each further token, if the one before was right."""
BY_RANK = 0.4
"""The first token of each further guess is assumed right 0.4 times as often as that of the guess before."""


class PoolDrafter(Drafter):
    """Proposes up to G tails of up to N − 1 tokens, and fills the pool with the n-grams of prompt and text.

    Args:
        pool: may already hold n-grams, such as those of a window.
        ngram: N.
        guesses: G.
        pool_prompt: whether n-grams of the prompt enter the pool.
        pool_accepted: whether those of the emitted text do.
    """

    def __init__(
        self,
        pool: NGramPool,
        ngram: int = 3,
        guesses: int = 5,
        pool_prompt: bool = True,
        pool_accepted: bool = True,
    ) -> None:
        self.pool = pool
        self.ngram, self.most_guesses = ngram, guesses
        self.pool_prompt, self.pool_accepted = pool_prompt, pool_accepted
        self._text: Sequence[int] = ()
        self._prompt_length = 0
        self._learnt = self._lookups = self._hits = self._size_before = 0
        self._offered: list[Guess] = []

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Set N and G from `ngram` and `guesses`, and what enters the pool from `pool_prompt` and `pool_accepted`."""
        self.ngram = parameters.get("ngram", self.ngram)
        self.most_guesses = parameters.get("guesses", self.most_guesses)
        self.pool_prompt = bool(parameters.get("pool_prompt", self.pool_prompt))
        self.pool_accepted = bool(parameters.get("pool_accepted", self.pool_accepted))

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text, self._prompt_length = text, prompt_length
        self._lookups = self._hits = 0
        self._learnt = prompt_length
        if prompt_length == len(text):
            self.pool.begin_run()
        self._size_before = len(self.pool)
        self._learn()

    def propose(self, room: Room) -> Proposal:
        self._learn()
        length = min(self.ngram - 1, room.depth)
        self._offered = self.pool.guesses(self._text[-LONGEST_CONTEXT:], length, self.most_guesses + SHOWN_UNTRIED)
        self._lookups += 1
        self._hits += bool(self._offered[: self.most_guesses])
        nodes: list[Node] = []
        for rank, guess in enumerate(self._offered[: self.most_guesses]):
            parent, chance = ROOT, CHANCES[guess.context - 1] * BY_RANK**rank
            for depth, token in enumerate(guess.tail):
                kind = ("pool", guess.context, min(rank, 3), min(depth, 1))
                nodes.append(Node(parent, token, guess.source, kind, chance))
                parent, chance = len(nodes) - 1, LATER_CHANCE
        return Proposal(nodes)

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        key = self._text[-len(result.tokens) - 1]
        offered, self._offered = self._offered, []
        self._learn()
        added, self._size_before = len(self.pool) - self._size_before, len(self.pool)
        taken = iter(slots)
        tried = tuple(
            sum(slot > 0 for slot in islice(taken, len(guess.tail))) for guess in offered[: self.most_guesses]
        )
        numbers = (len(self.pool), self._lookups, self._hits, max(0, added))
        self.snapshot = PoolSnapshot(*numbers, key, offered, tried, result.tokens)

    def _learn(self) -> None:
        """Add the n-grams of the prompt and of the text that are new, or all of them after a change of N."""
        end = len(self._text)
        if self.pool_prompt:
            self.pool.read(self._text, self._prompt_length, self.ngram, "prompt")
        if self.pool_accepted and self.pool_prompt:
            self.pool.read(self._text, end, self.ngram, ACCEPTED)
        elif self.pool_accepted and end > self._learnt:
            self.pool.add_all(self._text[max(0, self._learnt - self.ngram + 1) :], self.ngram, ACCEPTED)
        self._learnt = end
