"""The runner of llama.cpp: every slot of any pass has the bits of a token read alone, whatever was committed before."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from hypothesis import given, settings, strategies as st

from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.llama_cpp.context import MOST_SEQUENCES, Context
from ladechat.model.runners import packed
from ladechat.model.runners.logits import fill
from ladechat.model.runners.packed import PackedRunner
from tests.model.runners.trees import random_tree
from tests.packed import opened, packed_runner, tiny_file

KINDS = [Kind.Q8_0, Kind.Q4_0]


def alone(kind: Kind, text: list[int]) -> np.ndarray[Any, Any]:
    """The logits after a text, read one token a call by a context of its own."""
    context = Context(opened(tiny_file(0, kind=kind)), 512, 1, threads=1)
    for place, token in enumerate(text):
        logits = context.decode(np.array([token], np.int32), np.array([place], np.int32))
    return np.array(logits[0])


def path_to(tree: SlotTree, slot: int) -> list[int]:
    return [other for other in range(len(tree)) if tree.mask[slot, other]]


def check_bits(kind: Kind, runner: PackedRunner, tree: SlotTree, logits: torch.Tensor, slots: list[int]) -> None:
    for slot in slots:
        text = [*runner.tokens, *(tree.tokens[other] for other in path_to(tree, slot))]
        assert np.array_equal(logits[slot].numpy(), alone(kind, text)), slot


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), slots=st.sampled_from([1, 3, 16]))
def test_logits_are_those_of_the_tokens_read_one_by_one(kind: Kind, seed: int, slots: int) -> None:
    dice = random.Random(seed)
    runner = packed_runner(tiny_file(0, kind=kind), slots=slots)
    text = [dice.randrange(300) for _ in range(dice.randint(1, 20))]
    fill(runner, text)
    for _ in range(4):
        tree = random_tree(dice, 300)
        tree.tokens[0] = text[-1]
        logits = runner.forward(tree)
        check_bits(kind, runner, tree, logits, [0, *dice.sample(range(len(tree)), min(3, len(tree)))])
        path = path_to(tree, dice.randrange(len(tree)))
        runner.commit(path)
        text = [*text[:-1], *(tree.tokens[slot] for slot in path), dice.randrange(300)]
        assert list(runner.tokens) == text[:-1]


def bush(leaves: int) -> SlotTree:
    """A tree of a root, so many children, and a grandchild below each third one."""
    tree = SlotTree(3)
    children = [tree.add(0, 4 + number) for number in range(leaves)]
    for child in children[::3]:
        tree.add(child, 300)
    return tree


@pytest.mark.parametrize("accepted", [1, MOST_SEQUENCES - 1, MOST_SEQUENCES, 2 * MOST_SEQUENCES])
def test_a_pass_may_have_more_leaves_than_there_are_sequences(accepted: int) -> None:
    tree, runner = bush(2 * MOST_SEQUENCES + 3), packed_runner(tiny_file(0, kind=Kind.Q8_0))
    fill(runner, [1, 2, 3])
    logits = runner.forward(tree)
    last = len(tree) - 1
    check_bits(Kind.Q8_0, runner, tree, logits, [0, accepted, last])
    path = path_to(tree, tree.child(accepted, 300) or accepted)
    runner.commit(path)
    after = SlotTree(9)
    check_bits(Kind.Q8_0, runner, after, runner.forward(after), [0])


def test_the_cache_grows_with_the_text_and_keeps_its_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FIRST_CELLS", 16)
    runner = packed_runner(tiny_file(0, kind=Kind.Q8_0))
    text = [random.Random(3).randrange(300) for _ in range(10)]
    fill(runner, text)
    small = runner.nbytes
    for token in range(40):
        tree = SlotTree.chain([text[-1], token, token + 1])
        tree.add(0, token + 2)
        logits = runner.forward(tree)
        if token % 10 == 9:
            check_bits(Kind.Q8_0, runner, tree, logits, [0, 2, 3])
        runner.commit([0, 3])
        text = [*text, token + 2, 5]
    assert runner.nbytes > small > 0 and list(runner.tokens) == text[:-1]


def test_after_512_tokens_a_token_has_the_same_bits_on_several_threads_alone_and_among_others() -> None:
    path, dice = tiny_file(0, kind=Kind.Q8_0), random.Random(2)
    text = [dice.randrange(300) for _ in range(530)]
    runner = PackedRunner(opened(path), 1024, threads=2, slots=64)
    fill(runner, text)
    single = runner.forward(SlotTree(text[-1]))[0].clone()
    among = runner.forward(SlotTree.chain([text[-1], 5, 6, 7]))[0]
    assert torch.equal(single, among)


def test_a_text_that_was_set_aside_comes_back_bit_for_bit() -> None:
    kind, dice = Kind.Q8_0, random.Random(5)
    runner = packed_runner(tiny_file(0, kind=kind))
    text = [dice.randrange(300) for _ in range(30)]
    fill(runner, text)
    for shared in (20, 8):  # the second prompt overwrites what the first one left
        other = [*text[:shared], *(dice.randrange(300) for _ in range(12))]
        runner.set_aside(other)
        fill(runner, other)
    runner.take_back()
    assert list(runner.tokens) == text[:-1]
    tree = SlotTree(text[-1])
    check_bits(kind, runner, tree, runner.forward(tree), [0])


def test_what_was_set_aside_is_given_up_where_another_prompt_was_read_over_it() -> None:
    runner = packed_runner(tiny_file(0, kind=Kind.Q8_0))
    fill(runner, list(range(20)))
    runner.set_aside([*range(15), 99, 98])
    fill(runner, [7, 7, 7, 7])
    runner.take_back()
    assert list(runner.tokens) == [7, 7, 7]


class SlowBuild(Build):
    """A build that ends, in failure, when it is told to."""

    begun = ended = False

    def start(self) -> None:
        self.begun = True

    @property
    def finished(self) -> bool:
        return self.ended

    def library(self) -> Path:
        assert self.ended, "it was waited for"
        raise BuildError("There is no C++ compiler.")


def test_one_question_builds_no_kernels_and_a_conversation_that_goes_on_does() -> None:
    build = SlowBuild()
    runner = packed_runner(tiny_file(0, kind=Kind.Q8_0), kernels=build)
    for text in (range(50, 70), range(20)):  # the first one as costs are measured
        fill(runner, list(text))
        assert not build.begun
    fill(runner, list(range(30)))
    assert build.begun


def test_kernels_are_not_waited_for_and_do_not_have_to_be_there() -> None:
    build, text = SlowBuild(), list(range(20))
    runner = packed_runner(tiny_file(0, kind=Kind.Q8_0), kernels=build)
    for build.ended in (False, True):
        fill(runner, text)
        logits = runner.forward(SlotTree(text[-1]))
        assert runner.argmax(logits)[0] == [int(logits.argmax())]
        assert runner.largest(logits, 1).tolist() == [[int(logits.argmax())]]


def test_a_failed_pass_leaves_the_text_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = packed_runner(tiny_file(0, kind=Kind.Q8_0))
    fill(runner, [1, 2, 3, 4])
    whole = Context.decode

    def fails_halfway(self: Context, *arguments: Any, **options: Any) -> Any:
        whole(self, *arguments, **options)
        raise MemoryError

    monkeypatch.setattr(Context, "decode", fails_halfway)
    with pytest.raises(MemoryError):
        runner.forward(SlotTree.chain([4, 5, 6]))
    monkeypatch.undo()
    tree = SlotTree(4)
    check_bits(Kind.Q8_0, runner, tree, runner.forward(tree), [0])


def test_a_cache_without_memory_is_a_memory_error_and_a_smaller_one_works_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packed, "FIRST_CELLS", 16)
    runner = packed_runner(tiny_file(0, kind=Kind.Q8_0))
    fill(runner, list(range(10)))
    made = Context.__init__

    def no_memory(self: Context, *arguments: Any, **options: Any) -> None:
        self._pointer = None
        raise MemoryError

    monkeypatch.setattr(Context, "__init__", no_memory)
    with pytest.raises(MemoryError):
        fill(runner, list(range(40)))
    monkeypatch.setattr(Context, "__init__", made)
    runner.save_memory()
    fill(runner, list(range(40)))
    assert list(runner.tokens) == list(range(39))
