"""Steps of a decoder as events of the protocol: token ids get their text."""

from ladechat import protocol
from ladechat.decoder.step import Draft, PoolSnapshot, Step, WindowSnapshot
from ladechat.engine.detokenizer import TokenNames


def step_event(
    step: Step, names: TokenNames, *, turn: int, index: int, pieces: list[str], step_ms: float, plain_ms: float | None
) -> protocol.Step:
    """The event of one step. `pieces` are its tokens as text, which the names of single tokens may differ from."""
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
        draft=None if step.draft is None else _draft(step.draft, names),
        window=None if step.window is None else _window(step.window, names),
        pool=None if step.pool is None else _pool(step.pool, names),
    )


def _draft(draft: Draft, names: TokenNames) -> protocol.DraftTree:
    return protocol.DraftTree(
        token_ids=list(draft.tokens),
        pieces=names.names(draft.tokens),
        parents=list(draft.parents),
        sources=list(draft.sources),
        verdicts=list(draft.verdicts),
    )


def _window(window: WindowSnapshot, names: TokenNames) -> protocol.WindowView:
    return protocol.WindowView(
        rows=[names.names(row) for row in window.rows],
        row_ids=[list(row) for row in window.rows],
        fresh=names.names(window.fresh),
        fresh_ids=list(window.fresh),
    )


def _pool(pool: PoolSnapshot, names: TokenNames) -> protocol.PoolView:
    return protocol.PoolView(
        ngrams=pool.ngrams,
        lookups=pool.lookups,
        hits=pool.hits,
        added=pool.added,
        after=names.name(pool.key),
        asked=pool.asked,
        candidates=[
            protocol.Candidate(
                token_ids=list(candidate.tail),
                pieces=names.names(candidate.tail),
                source=candidate.source,
                tried=candidate.tried,
                matched=candidate.matched,
            )
            for candidate in pool.candidates
        ],
    )
