"""The tree: guesses with a common beginning share nodes, and every guess can be walked."""

from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.acceptance import accept
from ladechat.decoder.candidate_tree import ROOT, CandidateTree

guesses = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=6)


def tree_of(tails: list[list[int]]) -> CandidateTree:
    tree = CandidateTree()
    for tail in tails:
        tree.add(tail, "window")
    return tree


@given(guesses)
def test_there_is_one_node_for_each_different_prefix(tails: list[list[int]]) -> None:
    tree = tree_of(tails)
    prefixes = {tuple(tail[:end]) for tail in tails for end in range(1, len(tail) + 1)}
    assert len(tree) == len(prefixes)
    for node in range(len(tree)):
        path = [node]
        while tree.parents[path[0]] != ROOT:
            path.insert(0, tree.parents[path[0]])
        assert path == sorted(path)  # parents come first
        assert tuple(tree.tokens[place] for place in path) in prefixes
        assert tree.depths[node] == len(path)


def test_shared_nodes_keep_their_first_source() -> None:
    tree = CandidateTree()
    tree.add([1, 2], "window")
    tree.add([1, 3], "prompt")
    assert tree.tokens == [1, 2, 3]
    assert tree.parents == [ROOT, 0, 0]
    assert tree.sources == ["window", "window", "prompt"]


@given(guesses, st.lists(st.integers(0, 3), min_size=6, max_size=6), st.integers(1, 7))
def test_acceptance_is_the_longest_prefix_that_a_guess_shares_with_the_text_and_one_token_more(
    tails: list[list[int]], text: list[int], room: int
) -> None:
    tree = tree_of(tails)
    asked: list[int] = []
    emitted: list[int] = []

    def model(node: int) -> int:
        asked.append(node)
        return text[0 if node == ROOT else tree.depths[node]]

    def ends(token: int) -> bool:
        emitted.append(token)
        return len(emitted) == room

    accepted = accept(tree, model, ends)
    longest = max((end for tail in tails for end in range(1, len(tail) + 1) if tail[:end] == text[:end]), default=0)
    assert list(accepted.tokens) == text[: min(longest + 1, room)]
    assert [tree.tokens[node] for node in accepted.path] == text[: min(longest, room)]
    assert accepted.ended == (longest + 1 >= room)
    # One choice and one question for an end for each emitted token, in order: a draw too many would change the next.
    assert asked == [ROOT, *accepted.path][: len(accepted.tokens)]
    assert emitted == list(accepted.tokens)
