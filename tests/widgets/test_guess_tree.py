"""Guesses in lines: each guess is there once, and what is not repeated stands in the lines above."""

from hypothesis import given, strategies as st

from ladechat.protocol import Candidate
from ladechat.widgets.steps.guesses import branches, first_lines, in_lines, verdict_of
from tests.widgets.sample_steps import candidate, draft_tree

TOKENS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)
GUESSES = st.lists(st.builds(candidate, TOKENS, st.just("suffix"), tried=st.booleans()), max_size=8)


def test_alike_beginnings_are_one_below_the_other_and_not_repeated() -> None:
    known = [candidate(list(text), "suffix") for text in ("abc", "x", "abd", "aef")]
    known.insert(1, candidate(["a", "b"], "prompt", tried=False))
    lines = in_lines(known)
    assert [("".join(line.guess.pieces), line.shared) for line in lines] == [
        ("abc", 0), ("abd", 2), ("aef", 1), ("x", 0), ("ab", 0),
    ]  # fmt: skip
    assert lines[1].forks == (True, True, False), "aef still forks off after a, nothing more after ab"


@given(GUESSES)
def test_no_guess_is_lost_and_none_is_made_up(guesses: list[Candidate]) -> None:
    lines = in_lines(guesses)
    assert sorted(map(repr, (line.guess for line in lines))) == sorted(map(repr, guesses))
    above: list[int] = []
    for line in lines:
        ids = line.guess.token_ids
        assert line.guess.tried or not line.shared
        assert ids[: line.shared] == above[: line.shared] and line.shared < len(ids)
        assert len(line.forks) == line.shared + 1
        above = ids if line.guess.tried else []


@given(GUESSES)
def test_the_branches_of_a_draft_tree_are_its_paths_but_for_those_known_already(guesses: list[Candidate]) -> None:
    tree = draft_tree(guesses)
    if tree is None:
        return
    tried = [tuple(guess.token_ids) for guess in guesses if guess.tried]
    found = [tuple(branch.token_ids) for branch in branches(tree, [])]
    assert set(found) == {ids for ids in tried if not any(other[: len(ids)] == ids and other != ids for other in tried)}
    assert branches(tree, guesses) == []
    for ids in tried:
        assert verdict_of(tree, ids) in ("rejected", "untested")


@given(GUESSES, st.integers(0, 9))
def test_a_guess_keeps_its_number_wherever_it_stands(guesses: list[Candidate], most: int) -> None:
    numbers = {tuple(line.guess.token_ids): line.number for line in in_lines(guesses)}
    unique = len(numbers) == len(guesses)
    for line in first_lines(guesses, most) if unique else []:
        assert line.number == numbers[tuple(line.guess.token_ids)]
    assert sorted(line.number for line in in_lines(guesses) if line.guess.tried) == list(
        range(1, 1 + sum(guess.tried for guess in guesses))
    )


def test_where_not_all_fit_the_guess_with_most_accepted_drafts_is_among_them() -> None:
    known = [candidate([word, "x"], "suffix", matched=1) for word in "abc"]
    known.append(candidate(["d", "e"], "suffix", matched=2))
    shown = first_lines(known, 3)
    assert [("".join(line.guess.pieces), line.number) for line in shown] == [("ax", 1), ("bx", 2), ("de", 4)]
