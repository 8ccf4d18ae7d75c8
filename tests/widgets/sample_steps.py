"""Steps as an engine would send them, made from a written answer instead of by a model.

`answer` plays lookahead decoding over a known text: the window's rows hold the true tokens, with more mistakes the
older the row and the further the column, and each step accepts as many tokens as it is told to.
"""

import random
from collections.abc import Sequence
from zlib import crc32

from ladechat import protocol

_WRITTEN = (
    "The| n|-gram| pool| keeps| the| n|-grams| that| the| window| has| produced|,| sorted| by| their| first| token|.|\n"
    "|When| the| model| says| that| token| again|,| the| tails| behind| it| are| tried| as| guesses|,| all| in| one|"
    " pass|.|\n|\n|```|py|thon|\n|def| guesses|(|pool|,| token|):|\n|    |return| pool|[|token|]|\n|```|\n"
)
TEXT = _WRITTEN.split("|")
OTHERS = [" a", " is", ",", " of", ".", " and", " it", "\n", " token", " model", "(", " in"]
LENGTHS = (1, 1, 3, 1, 2, 4, 1, 1, 2, 5, 1, 2, 1, 3, 1, 1, 4, 2, 1, 1, 3, 5, 2)


def token_id(piece: str) -> int:
    """A stable, made-up id for a piece."""
    return crc32(piece.encode()) % 32_000


def window_view(rows: Sequence[Sequence[str]], fresh: Sequence[str]) -> protocol.WindowView:
    return protocol.WindowView(
        rows=[list(row) for row in rows],
        row_ids=[[token_id(piece) for piece in row] for row in rows],
        fresh=list(fresh),
        fresh_ids=[token_id(piece) for piece in fresh],
    )


def lens_view(after: str, rows: Sequence[Sequence[str]], first: int = 2) -> protocol.LensView:
    """What rows read at each layer, from the `first` up to the last."""
    return protocol.LensView(
        after=after,
        layers=list(range(first, first + len(rows))),
        rows=[list(row) for row in rows],
        row_ids=[[token_id(piece) for piece in row] for row in rows],
    )


def sharpening(after: str, coming: Sequence[str], seed: int, layers: int = 5) -> protocol.LensView:
    """Guesses at the tokens that come, the worse the lower the layer and the farther the position."""
    chance = random.Random(seed)
    rows = [
        [
            _token(coming, ahead, chance, 0.9 * (layers - 1 - layer) / layers + 0.15 * ahead)
            for ahead in range(min(3, 1 + layer))
        ]
        for layer in range(layers)
    ]
    return lens_view(after, rows)


def candidate(pieces: Sequence[str], source: str, matched: int = 0, tried: bool = True) -> protocol.Candidate:
    ids = [token_id(piece) for piece in pieces]
    return protocol.Candidate(token_ids=ids, pieces=list(pieces), source=source, tried=tried, matched=matched)


def draft_tree(candidates: Sequence[protocol.Candidate]) -> protocol.DraftTree | None:
    """The tried candidates, merged by shared prefix, judged by how far each matched."""
    nodes: dict[tuple[int, ...], int] = {}
    token_ids: list[int] = []
    pieces: list[str] = []
    parents: list[int] = []
    sources: list[str] = []
    verdicts: list[protocol.Verdict] = []
    for each in candidates:
        for depth in range(len(each.token_ids) if each.tried else 0):
            path = tuple(each.token_ids[: depth + 1])
            if path in nodes:
                continue
            nodes[path] = len(token_ids)
            token_ids.append(path[-1])
            pieces.append(each.pieces[depth])
            parents.append(nodes.get(path[:-1], -1))
            sources.append(each.source)
            verdicts.append("accepted" if depth < each.matched else "rejected" if depth == each.matched else "untested")
    if not nodes:
        return None
    return protocol.DraftTree(token_ids=token_ids, pieces=pieces, parents=parents, sources=sources, verdicts=verdicts)


def pool_view(
    after: str, candidates: Sequence[protocol.Candidate], *, ngrams: int = 412, lookups: int = 18, hits: int = 11
) -> protocol.PoolView:
    return protocol.PoolView(
        ngrams=ngrams, lookups=lookups, hits=hits, added=5, after=after, candidates=list(candidates)
    )


def timing(slots: int = 15, *, step_ms: float = 14.0, plain_ms: float | None = 9.5) -> protocol.Timing:
    return protocol.Timing(step_ms=step_ms, forward_ms=step_ms - 1.5, slots=slots, cache_length=120, plain_ms=plain_ms)


def step(
    pieces: Sequence[str],
    *,
    index: int = 0,
    window: protocol.WindowView | None = None,
    pool: protocol.PoolView | None = None,
    lens: protocol.LensView | None = None,
    time: protocol.Timing | None = None,
) -> protocol.Step:
    """A step that emits `pieces`; all but the last came from a draft."""
    drafted: list[str] = ["window"] * (len(pieces) - 1)
    return protocol.Step(
        turn=1,
        index=index,
        token_ids=[token_id(piece) for piece in pieces],
        pieces=list(pieces),
        logprobs=[-0.1] * len(pieces),
        origins=[*drafted, "model"],
        timing=time or timing(),
        draft=draft_tree(pool.candidates) if pool else None,
        window=window,
        pool=pool,
        lens=lens,
    )


def rivals(piece: str) -> protocol.Rivals:
    """A token that was nearly certain, and four others."""
    return protocol.Rivals(pieces=[piece, *OTHERS[:4]], logprobs=[-0.1, -3.0, -4.0, -5.0, -6.0], entropy=0.6)


def plain_step(piece: str = " pool", index: int = 0) -> protocol.Step:
    """A step of plain decoding: one token, and nothing else to show."""
    return step([piece], index=index, time=timing(1, step_ms=9.8))


def answer(
    window: int = 7, ngram: int = 5, guesses: int = 5, seed: int = 7, text: Sequence[str] = TEXT
) -> list[protocol.Step]:
    """A whole answer in steps, with as many columns, rows and candidates as asked for.

    Args:
        text: the tokens; the first belongs to the question, and the last ends the answer.
    """
    chance = random.Random(seed)
    steps: list[protocol.Step] = []
    done = 1
    while done < len(text) - 1:
        count = min(LENGTHS[len(steps) % len(LENGTHS)], ngram, len(text) - done)
        emitted = text[done : done + count]
        rows = [
            [_token(text, done - 1 + row + column, chance, (ngram - row) * column / 40) for column in range(window)]
            for row in range(ngram - 1)
        ]
        fresh = [_token(text, done + ngram - 2 + column, chance, column / 20) for column in range(window)]
        steps.append(
            step(
                emitted,
                index=len(steps),
                window=window_view(rows, fresh),
                pool=pool_view(
                    text[done - 1],
                    _candidates(text, done, count - 1, ngram - 1, guesses, chance),
                    ngrams=60 + 5 * len(steps),
                    lookups=len(steps) + 1,
                    hits=(len(steps) + 2) * 2 // 3,
                ),
                time=timing((ngram - 1) * window + 8, step_ms=13.0 + chance.random() * 3),
            )
        )
        done += count
    return steps


def finished(steps: Sequence[protocol.Step], estimated_speedup: float | None = None) -> protocol.TurnFinished:
    pieces = [piece for each in steps for piece in each.pieces]
    return protocol.TurnFinished(
        turn=1,
        reason="eos",
        text="".join(pieces),
        token_ids=[token_id(piece) for piece in pieces],
        steps=len(steps),
        prefill_seconds=0.31,
        decode_seconds=sum(each.timing.step_ms for each in steps) / 1000,
        estimated_speedup=estimated_speedup,
    )


def _token(text: Sequence[str], position: int, chance: random.Random, mistake: float) -> str:
    return chance.choice(OTHERS) if chance.random() < mistake or position >= len(text) else text[position]


def _candidates(
    text: Sequence[str], done: int, matched: int, length: int, guesses: int, chance: random.Random
) -> list[protocol.Candidate]:
    """The best guess first matches `matched` tokens; one refused at once, one not tried for want of guesses."""
    if matched == 0 and chance.random() < 0.4:
        return []
    true = text[done : done + length]
    best = [*true[:matched], *(_other(true[matched:], chance) for _ in range(length - matched))]
    sources: tuple[str, ...] = ("window", "prompt", "accepted")
    found = [candidate(best, chance.choice(sources), matched)]
    for index in range(1, chance.randint(2, guesses + 2)):
        wrong = [_other(true, chance), *chance.choices(TEXT[1:20], k=length - 1)]
        found.append(candidate(wrong, chance.choice(sources), 0, tried=index < guesses))
    return found


def _other(than: Sequence[str], chance: random.Random) -> str:
    return chance.choice([piece for piece in OTHERS if piece not in than])
