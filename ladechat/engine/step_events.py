"""Converts the steps of a decoder to events of the protocol: token ids get their text."""

from collections.abc import Sequence

import numpy as np
import torch

from ladechat import protocol
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Draft, LensSnapshot, PoolOffer, PoolSnapshot, Step, WindowSnapshot
from ladechat.engine.detokenizer import TokenTexts
from ladechat.protocol.values import LEAST_LOGPROB, RIVALS


def step_event(
    step: Step,
    texts: TokenTexts,
    *,
    turn: int,
    index: int,
    pieces: list[str],
    reasoning: int = 0,
    rivals: Sequence[protocol.Rivals] = (),
    step_ms: float,
    plain_ms: float | None,
    decision: protocol.Decision | None = None,
) -> protocol.Step:
    """Return the event of one step. `pieces` are the texts of its tokens; they may differ from the names of tokens."""
    return protocol.Step(
        turn=turn,
        index=index,
        token_ids=list(step.tokens),
        pieces=pieces,
        logprobs=[round(value, 5) for value in step.logprobs],
        origins=list(step.origins),
        timing=protocol.Timing(
            step_ms=round(step_ms, 3),
            forward_ms=round(1000 * step.forward_seconds, 3),
            slots=step.slots,
            cache_length=step.cache_length,
            plain_ms=None if plain_ms is None else round(plain_ms, 3),
        ),
        draft=None if step.draft is None else _draft(step.draft, texts),
        window=None if (window := step.window) is None else _window(window, texts),
        pool=None if (pool := step.pool) is None else _pool(pool, texts),
        lens=None if (lens := step.lens) is None else _lens(lens, texts),
        decision=decision,
        reasoning=reasoning,
        rivals=list(rivals),
    )


def rivals_of(logits: torch.Tensor, runner: Runner, texts: TokenTexts) -> list[protocol.Rivals]:
    """Return what was likely by each row of (T, vocabulary) logits."""
    rows = logits.float()
    tokens = runner.largest(rows, min(RIVALS, rows.shape[1]))
    # In one thread: while the app draws on another core, torch's threads wait for each other for milliseconds.
    shifted = rows.cpu().numpy()
    shifted = shifted - np.take_along_axis(shifted, tokens[:, :1], axis=1)
    np.maximum(shifted, LEAST_LOGPROB, out=shifted)
    weights = np.exp(shifted)
    sums = weights.sum(axis=1)
    logprobs = np.maximum(np.take_along_axis(shifted, tokens, axis=1) - np.log(sums)[:, None], LEAST_LOGPROB)
    entropies = np.maximum(np.log(sums) - np.einsum("tv,tv->t", weights, shifted) / sums, 0.0)
    return [
        protocol.Rivals(pieces=texts.names(ids), logprobs=[round(one, 4) for one in likely], entropy=round(entropy, 4))
        for ids, likely, entropy in zip(tokens.tolist(), logprobs.tolist(), entropies.tolist(), strict=True)
    ]


def _draft(draft: Draft, texts: TokenTexts) -> protocol.DraftTree:
    return protocol.DraftTree(
        token_ids=list(draft.tokens),
        pieces=texts.names(draft.tokens),
        parents=list(draft.parents),
        sources=list(draft.sources),
        verdicts=list(draft.verdicts),
    )


def _window(window: WindowSnapshot, texts: TokenTexts) -> protocol.WindowView:
    return protocol.WindowView(
        rows=[texts.names(row) for row in window.rows],
        row_ids=[list(row) for row in window.rows],
        fresh=texts.names(window.fresh),
        fresh_ids=list(window.fresh),
    )


def _lens(lens: LensSnapshot, texts: TokenTexts) -> protocol.LensView:
    return protocol.LensView(
        after=texts.name(lens.after),
        layers=list(lens.layers),
        rows=[texts.names(row) for row in lens.rows],
        row_ids=[list(row) for row in lens.rows],
    )


def _pool(pool: PoolSnapshot, texts: TokenTexts) -> protocol.PoolView:
    return protocol.PoolView(
        ngrams=pool.ngrams,
        lookups=pool.lookups,
        hits=pool.hits,
        added=pool.added,
        after=texts.name(pool.key),
        candidates=[_candidate(one, texts) for one in pool.candidates],
    )


def _candidate(candidate: PoolOffer, texts: TokenTexts) -> protocol.Candidate:
    return protocol.Candidate(
        token_ids=list(candidate.tail),
        pieces=texts.names(candidate.tail),
        source=candidate.source,
        tried=candidate.tried,
        matched=candidate.matched,
    )
