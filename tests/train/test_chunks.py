"""Chunks: who is trained on, in which order, from which positions."""

import pytest
import torch

from ladechat.train.chunks import Chunks, Text, text_fingerprint
from ladechat.train.options import TrainRefused


def numbered(count: int, length: int = 40) -> list[Text]:
    return [Text([1000 * text + place for place in range(length)]) for text in range(count)]


def test_a_batch_is_a_function_of_seed_and_step() -> None:
    one, other = Chunks(numbered(30), 20, 3, 5), Chunks(numbered(30), 20, 3, 5)
    for step in (0, 7, 40):
        batch, again = one.step(1, step, 4), other.step(1, step, 4)
        assert torch.equal(batch.tokens, again.tokens) and torch.equal(batch.anchors, again.anchors)
    assert not torch.equal(one.step(1, 3, 4).tokens, one.step(2, 3, 4).tokens)


def test_every_chunk_comes_once_in_each_pass_over_them() -> None:
    chunks = Chunks(numbered(31), 20, 3, 5)
    count = len(chunks.training)
    seen = [int(row[0]) for step in range(2 * count) for row in chunks.step(0, step, 3).tokens]
    for epoch in range(6):
        assert len(set(seen[epoch * count : (epoch + 1) * count])) == count


def test_what_is_held_out_is_never_trained_on() -> None:
    chunks = Chunks(numbered(60), 20, 3, 5)
    assert len(chunks.held_out) == 6 and len(chunks.training) == 114
    held = {chunk.tokens[0] for chunk in chunks.held_out}
    assert not held & {chunk.tokens[0] for chunk in chunks.training}
    measured = {int(row[0]) for batch in chunks.evaluation(4) for row in batch.tokens}
    assert measured == held
    assert sum(len(batch.tokens) for batch in chunks.evaluation(4, most=3)) == 3


def test_anchors_are_in_the_answer_and_leave_room_for_their_guesses() -> None:
    texts = [Text(list(range(50)), 17) for _ in range(20)]
    chunks = Chunks(texts, 30, 3, 8)
    for step in range(20):
        batch = chunks.step(0, step, 4)
        for tokens, anchors in zip(batch.tokens, batch.anchors, strict=True):
            own = 30 if int(tokens[0]) == 0 else 20
            assert int(anchors.max()) + 4 < own
            assert int(tokens[0]) > 0 or int(anchors.min()) >= 16
    targets = batch.targets(3)
    assert targets.shape == (3, 32)
    assert int(targets[2, 0]) == int(batch.tokens[0, batch.anchors[0, 0] + 4])


@pytest.mark.parametrize("texts", [[], numbered(1, 10), numbered(1, 20), [Text([1] * 40, 39)]])
def test_too_little_text_is_refused(texts: list[Text]) -> None:
    with pytest.raises(TrainRefused, match="give more with --tokens or --text"):
        Chunks(texts, 20, 3, 8)


def test_other_texts_have_other_fingerprints() -> None:
    assert text_fingerprint(numbered(2)) == text_fingerprint(numbered(2))
    assert len({text_fingerprint(texts) for texts in (numbered(2), numbered(3), [Text([1], 0), Text([2])])}) == 3
