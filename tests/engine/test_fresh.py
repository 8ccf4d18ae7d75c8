"""Generations with decoders that have learnt nothing, so that decoders can be compared on one question."""

from ladechat.protocol import Generate, PoolView, Step, TurnFinished
from tests.engine.inside import Inside
from tests.engine.messages import user

QUESTION = user("What is the n-gram pool?")


def pools(engine: Inside, turn: int, *, fresh: bool) -> tuple[list[PoolView], TurnFinished]:
    """What the pool held at each step of an answer."""
    engine.send(Generate(turn=turn, messages=[QUESTION], max_new_tokens=12, fresh=fresh))
    finished = engine.until(TurnFinished)
    steps = engine.of_turn(Step, turn)
    return [step.pool for step in steps if step.pool is not None], finished


def test_a_fresh_answer_knows_nothing_from_before_and_leaves_nothing_behind(engine: Inside) -> None:
    first, expected = pools(engine, 9001, fresh=True)
    again, finished = pools(engine, 9002, fresh=True)
    assert [pool.ngrams for pool in again] == [pool.ngrams for pool in first]
    assert (finished.token_ids, finished.steps) == (expected.token_ids, expected.steps)
    before, _ = pools(engine, 9003, fresh=False)
    pools(engine, 9004, fresh=True)
    after, known = pools(engine, 9005, fresh=False)
    assert after[0].ngrams >= before[-1].ngrams
    assert known.token_ids == expected.token_ids and known.steps <= expected.steps
