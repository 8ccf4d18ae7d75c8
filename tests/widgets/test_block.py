"""One message as lines: however it came, and without a look at what can no longer change."""

from collections.abc import Sequence

from hypothesis import given, strategies as st

from ladechat.widgets.flow import Ink
from ladechat.widgets.transcript.block import Block, Kind

KINDS: Sequence[Kind] = ("user", "model", "notice", "thought")
PIECES = st.lists(st.lists(st.text(alphabet="ab \n\u4e2d", max_size=8), max_size=4), max_size=12)


@given(kind=st.sampled_from(KINDS), name=st.sampled_from(["", "You"]), bursts=PIECES, width=st.integers(1, 12))
def test_lines_of_a_message_that_grew_are_those_of_one_that_came_at_once(
    kind: Kind, name: str, bursts: Sequence[Sequence[str]], width: int
) -> None:
    grown, whole = Block(kind, name, width), Block(kind, name, width)
    for number, burst in enumerate(bursts):
        before = list(grown.lines)
        changed = grown.append([(piece, Ink("step", 1, number)) for piece in burst])
        assert grown.lines[:changed] == before[:changed]
    whole.append([(piece, Ink("step", 1, number)) for number, burst in enumerate(bursts) for piece in burst])
    assert grown.lines == whole.lines
    assert grown.written == whole.written


def test_of_a_long_answer_only_the_last_lines_are_laid_out_anew() -> None:
    block = Block("model", "m", 40)
    block.append([("a word and another\n" * 5000, Ink("answer"))])
    lines = len(block.lines)
    assert block.append([("more", Ink("answer"))]) >= lines - 2
