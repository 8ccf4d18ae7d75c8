"""Lookahead decoding: Fu et al. 2024, "Break the Sequential Dependency of LLM Inference Using Lookahead Decoding"."""

import random
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from ladechat.decoder.candidate_tree import CandidateTree
from ladechat.decoder.jacobi import JacobiWindow
from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess, NGramPool
from ladechat.decoder.picker import NO_REST, Likeliest, Picker, Picks, Rest, RestPlan, Ridden, RidePlan
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Ending, Limits, PoolSnapshot, Step, WindowSnapshot
from ladechat.decoder.verification import Verified, begin, verify
from ladechat.decoder.verify_mask import StepLayout, causal_layout, column_guess, lay_out

NO_TREE = CandidateTree()
"""What a step without drafts verifies."""

SHOWN_UNTRIED = 8
"""How many n-grams beyond the guess limit a step reports, unless guesses are picked: to find them takes time."""


@dataclass(frozen=True, slots=True)
class LookaheadSettings:
    """W, N, G, and what enters the pool besides the window's trajectory. Without a window, W 0, a step only verifies
    guesses; with G 0 besides it is one of plain decoding.

    `longest_guess` is how many tokens a guess may have where that is more than N − 1: n-grams of texts cost no slots
    until they are verified, so that they may be longer than those of a window.

    Raises:
        ValueError: W < 0, N < 2, G < 0, or a longest guess of fewer than no tokens.
    """

    window: int = 5
    ngram: int = 3
    guesses: int = 5
    pool_prompt: bool = True
    pool_accepted: bool = True
    longest_guess: int = 0

    def __post_init__(self) -> None:
        numbers = (("W", self.window, 0), ("N", self.ngram, 2), ("G", self.guesses, 0))
        for name, value, least in (*numbers, ("The longest guess", self.longest_guess, 0)):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}.")

    @property
    def text_ngram(self) -> int:
        """Of how many tokens the n-grams of prompt and emitted text are."""
        return max(self.ngram, self.longest_guess + 1)


class LookaheadDecoder:
    """Lookahead decoding, one to N tokens a step, or as many as the longest guess has and one.

    `settings` may be assigned between any two steps: window, pool and cache carry over. The pool also carries over from
    run to run; `pool.clear()` starts afresh.
    """

    def __init__(self, runner: Runner, settings: LookaheadSettings | None = None) -> None:
        self.runner = runner
        self.settings = settings or LookaheadSettings()
        self.pool = NGramPool()

    def run(
        self,
        prompt: Sequence[int],
        limits: Limits,
        selector: Selector | None = None,
        generated: int = 0,
        picker: Picker | None = None,
    ) -> Generator[Step, None, None]:
        """See `ladechat.decoder.step.Decoder.run`. A picker says which of the pool's guesses a step verifies, not G."""
        selector, ending = begin(self.runner, prompt, limits, selector, drafting="Lookahead decoding")
        generation = _Generation(prompt, generated, self.pool, self.settings)
        try:
            while not ending.reached:
                plan = picker.rests(generation) if picker is not None else NO_REST
                generation.follow(self.settings)
                if picker is not None and not self.settings.window:
                    if plan.steps:
                        yield from self._rest(plan, generation, selector, ending, picker)
                        continue
                    ride = picker.rides()
                    if ride.steps:
                        yield from self._ride(ride, generation, selector, ending, picker)
                        continue
                draft = generation.draft(ending.room, self.runner.reach, picker)
                verified = verify(self.runner, draft.layout, draft.tree, selector, ending)
                fresh = tuple(verified.likeliest[slot] for slot in draft.layout.fresh_slots)
                window = generation.learn(draft, fresh, verified.tokens)
                yield verified.step(draft.tree, window, generation.pool_snapshot(draft, verified))
        finally:  # also where the text is stopped
            generation.learn_text()

    def _rest(
        self, plan: RestPlan, generation: "_Generation", selector: Selector, ending: Ending, picker: Picker
    ) -> Iterator[Step]:
        """Steps of plain decoding: fewer if settings change, the text ends, or what was foreseen has come.

        They take what plain decoding takes: the text is looked at when all of them are over, for after each pass
        nothing that this needs is in the processor's cache.
        """
        settings, last, foreseen = self.settings, generation.last, list(plan.foreseen)
        tokens, passes, besides = list[int](), list[float](), 0.0
        pool = PoolSnapshot(*generation.pool_counts(), last, asked=False)
        later = pool._replace(added=0)
        try:
            for _ in range(plan.steps):
                began = perf_counter()
                verified = verify(self.runner, causal_layout([last]), NO_TREE, selector, ending)
                step = verified.step(NO_TREE, pool=pool)
                last, pool, own = verified.tokens[0], later, verified.forward_seconds
                tokens.append(last)
                passes.append(own)
                besides += min(perf_counter() - began - own, own)
                yield step
                if verified.ended or self.settings is not settings or tokens == foreseen:
                    break
        finally:  # also where the text is stopped
            if tokens:
                generation.extend(tokens)
                picker.rested(Rest(tuple(tokens), passes, besides), generation)
                generation.learn_text()

    def _ride(
        self, plan: RidePlan, generation: "_Generation", selector: Selector, ending: Ending, picker: Picker
    ) -> Iterator[Step]:
        """Steps that verify the likeliest guess, while all of it is right: then what is next to it matters little.

        The picker hears of them when all are over, and so does the pool: where guesses are right again and again, it
        has that text already. Done at each step, both take several times as long.
        """
        settings, ridden, likeliest = self.settings, list[Ridden](), Likeliest(plan.length)
        try:
            for _ in range(plan.steps):
                began = perf_counter()
                draft = generation.draft(ending.room, self.runner.reach, likeliest)
                verified = verify(self.runner, draft.layout, draft.tree, selector, ending)
                generation.extend(verified.tokens)
                step = verified.step(draft.tree, pool=generation.pool_snapshot(draft, verified))
                ridden.append(Ridden(draft.guesses, step, perf_counter() - began))
                yield step
                all_right = 0 < len(draft.tree.tokens) < len(verified.tokens)
                if verified.ended or self.settings is not settings or not all_right:
                    break
        finally:  # also where the text is stopped
            if ridden:
                picker.rode(ridden)
                generation.learn_text()


class _StepDraft(NamedTuple):
    """What one step is about to verify: `guesses` are all that the pool offered, the first `tried` of them drafted."""

    key: int
    window: JacobiWindow | None
    guesses: list[Guess]
    tried: int
    tree: CandidateTree
    layout: StepLayout


class _Generation:
    """What one run carries from step to step: the text so far, the window, and how the pool has served."""

    def __init__(self, text: Sequence[int], generated: int, pool: NGramPool, settings: LookaheadSettings) -> None:
        self._text = list(text)
        self._prompt_length = len(text) - generated
        self._pool = pool
        self._settings = settings
        self._random = random.Random(0)
        self._lookups = self._hits = self._unlearnt = self._added = 0
        self._prompt_learnt: set[int] = set()
        if not generated:  # else another decoder has begun this answer, or this one before a change
            pool.begin_run()
        if settings.pool_prompt:
            self._learn_prompt()
        if generated and settings.pool_accepted:
            ngram = settings.text_ngram
            pool.add_all(self._text[max(0, self._prompt_length - ngram + 1) :], ngram, "accepted")
        self._window = self._new_window()

    def follow(self, settings: LookaheadSettings) -> None:
        """Take on changed settings, keeping whatever still fits."""
        if settings == self._settings:
            return
        self.learn_text()
        self._settings = settings
        if settings.pool_prompt:
            self._learn_prompt()
        if self._window is None or not settings.window:
            self._window = self._new_window()
        else:
            self._window.resize(settings.window, settings.ngram, self._successor)

    @property
    def last(self) -> int:
        """The last token of the text, which the cache lacks."""
        return self._text[-1]

    def knows(self, context: int) -> bool:
        """See `ladechat.decoder.picker.Pool`."""
        return context <= len(self._text) and self._pool.goes_on(self._text[-context:])

    def known(self, context: int, places: Sequence[int]) -> Sequence[int]:
        """See `ladechat.decoder.picker.Pool`."""
        start = self._place(0)
        return self._pool.known_places(self._text, context, start, places)

    def guesses(self, most: int, place: int | None = None) -> list[Guess]:
        """See `ladechat.decoder.picker.Pool`."""
        return self._guesses(self._settings.text_ngram - 1, most, self._place(place))

    def extend(self, tokens: Sequence[int]) -> None:
        """Take in tokens that were emitted. Their n-grams enter the pool later, several together: that takes less."""
        self._text.extend(tokens)
        self._unlearnt += len(tokens)

    def learn_text(self) -> None:
        """What was emitted has its n-grams in the pool now."""
        fresh, self._unlearnt = self._unlearnt, 0
        if fresh and self._settings.pool_accepted:
            ngram = self._settings.text_ngram
            self._added += self._pool.add_all(self._text[-(fresh + ngram - 1) :], ngram, "accepted")

    def draft(self, room: int, reach: int, picker: Picks | None) -> _StepDraft:
        """Look guesses up for the last token and lay out a pass over at most `reach` positions."""
        settings, key = self._settings, self._text[-1]
        window = self._window if settings.window + settings.ngram - 2 <= reach else None
        tree = CandidateTree()
        if window is not None:
            tree.add(column_guess(window), "window")
        length = min(settings.text_ngram, room, reach) - 1
        limit = settings.guesses + SHOWN_UNTRIED if picker is None else min(settings.guesses, picker.most())
        guesses = self._guesses(length, limit, len(self._text))
        self._lookups += 1
        self._hits += bool(guesses)
        count, cut = (settings.guesses, length) if picker is None else picker.pick(guesses)
        for guess in guesses[:count]:
            tree.add(guess.tail[:cut], guess.source)
        return _StepDraft(key, window, guesses, count, tree, lay_out(key, window, tree))

    def learn(self, draft: _StepDraft, fresh: tuple[int, ...], tokens: Sequence[int]) -> WindowSnapshot | None:
        """Move window and text on past the emitted `tokens`. The window as it was."""
        snapshot = None
        if draft.window is not None:
            snapshot = WindowSnapshot(tuple(tuple(row) for row in draft.window.rows), fresh)
            self._added += self._pool.add_each(draft.window.ngrams(fresh), "window")
        self.extend(tokens)
        self.learn_text()
        if draft.window is not None:
            draft.window.advance(fresh, tokens[-1])
        elif self._settings.window:  # too large for the reach, which may grow, or W or N may be lowered
            self._window = self._new_window()
        return snapshot

    def pool_snapshot(self, draft: _StepDraft, verified: Verified) -> PoolSnapshot:
        """The pool as a panel shows it, with how far each candidate got."""
        accepted = verified.tokens[: len(verified.path)]
        return PoolSnapshot(*self.pool_counts(), draft.key, draft.guesses, draft.tried, accepted)

    def pool_counts(self) -> tuple[int, int, int, int]:
        """The first numbers of a `PoolSnapshot`; n-grams are new once."""
        added, self._added = self._added, 0
        return len(self._pool), self._lookups, self._hits, added

    def _place(self, place: int | None) -> int:
        return len(self._text) if place is None else len(self._text) - self._unlearnt + place

    def _guesses(self, length: int, limit: int, end: int) -> list[Guess]:
        """What the pool has of tails of so many tokens for the place behind the first `end` tokens of the text."""
        before = self._text[max(0, end - LONGEST_CONTEXT) : end - 1]
        return self._pool.guesses(self._text[end - 1], length, limit, before)

    def _learn_prompt(self) -> None:
        """Once for each length of n-grams: the pool keeps all of them."""
        ngram = self._settings.text_ngram
        if ngram not in self._prompt_learnt:
            self._prompt_learnt.add(ngram)
            self._pool.add_all(self._text[: self._prompt_length], ngram, "prompt")

    def _new_window(self) -> JacobiWindow | None:
        width, ngram = self._settings.window, self._settings.ngram
        return JacobiWindow(self._text[-1], width, ngram, self._successor) if width else None

    def _successor(self, token: int) -> int:
        known = self._pool.successor(token)
        return self._random.choice(self._text) if known is None else known
