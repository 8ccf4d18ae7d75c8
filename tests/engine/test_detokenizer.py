"""An answer is shown token by token and never taken back, whatever the tokenizer does with its bytes."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer, decoders
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

import ladechat.engine.detokenizer as detokenizer_module
from ladechat.engine.detokenizer import UNDECODABLE, Detokenizer, TokenTexts, joins_texts
from tests.engine import tokenizers
from tests.engine.tokenizers import ALL, RESERVED, decoded, encoded, token_id

families = pytest.mark.parametrize("family", sorted(ALL))
WIDE = ["你", "😀", "ß", "👩‍👩‍👧", "한", "\N{COMBINING ACUTE ACCENT}"]


def pushed(tokenizer: PreTrainedTokenizerBase, token_ids: list[int]) -> list[str]:
    """The pieces of an answer whose tokens come one by one; the last one is what `finish` brought."""
    detokenizer = Detokenizer(TokenTexts(tokenizer))
    return [*(detokenizer.push([token_id])[0] for token_id in token_ids), detokenizer.finish()]


def shown(pieces: list[str]) -> list[str]:
    """What the reader has before her after each piece."""
    return ["".join(pieces[: count + 1]) for count in range(len(pieces))]


@st.composite
def answers(draw: st.DrawFn, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Tokens that a model may write: texts, single bytes, specials and any others, in any order."""
    vocabulary = len(tokenizer)
    text = st.text(max_size=12).map(lambda text: encoded(tokenizer, text))
    wide = st.sampled_from(WIDE).map(lambda text: encoded(tokenizer, text))
    cut = wide.flatmap(lambda ids: st.integers(1, len(ids)).map(lambda end: ids[:end]))
    any_ids = st.lists(st.integers(0, vocabulary - 1), max_size=6)
    special = st.sampled_from(sorted(tokenizer.added_tokens_decoder)).map(lambda special_id: [special_id])
    low_ids = st.lists(st.integers(0, min(vocabulary, 262) - 1), max_size=6)  # here both families have their bytes
    parts = draw(st.lists(st.one_of(text, wide, cut, any_ids, special, low_ids), max_size=8))
    return [token for part in parts for token in part]


@families
@given(data=st.data())
def test_pieces_joined_are_what_the_tokenizer_decodes(family: str, data: st.DataObject) -> None:
    tokenizer = ALL[family]()
    token_ids = data.draw(answers(tokenizer))
    assert "".join(pushed(tokenizer, token_ids)) == decoded(tokenizer, token_ids)


@families
@given(data=st.data())
def test_pieces_are_one_a_token_and_the_same_however_the_tokens_are_bundled(family: str, data: st.DataObject) -> None:
    tokenizer = ALL[family]()
    token_ids = data.draw(answers(tokenizer))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(token_ids)), max_size=5)))
    detokenizer = Detokenizer(TokenTexts(tokenizer))
    bundled: list[str] = []
    for start, end in zip([0, *cuts], [*cuts, len(token_ids)], strict=True):
        pieces = detokenizer.push(token_ids[start:end])
        assert len(pieces) == end - start
        bundled += pieces
    assert [*bundled, detokenizer.finish()] == pushed(tokenizer, token_ids)


@families
def test_texts_that_had_to_make_room_are_said_again(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = ALL[family]()
    expected = TokenTexts(tokenizer).names(range(40))
    monkeypatch.setattr(detokenizer_module, "CACHED_TEXTS", 7)
    texts = TokenTexts(tokenizer)
    assert [texts.names(range(40)) for _ in range(2)] == [expected] * 2


@families
@given(data=st.data())
def test_texts_that_are_known_already_change_no_piece(family: str, data: st.DataObject) -> None:
    """Answer after answer, against a detokenizer that asks the tokenizer for every token behind those before it."""
    tokenizer = ALL[family]()
    texts, asking = TokenTexts(tokenizer), TokenTexts(tokenizer)
    asking.after_any = lambda _: None
    for _ in range(data.draw(st.integers(1, 3))):
        token_ids = data.draw(answers(tokenizer))
        known, asked = Detokenizer(texts), Detokenizer(asking)
        assert known.push(token_ids) == asked.push(token_ids)
        assert known.finish() == asked.finish()


@families
def test_what_was_learnt_needs_no_tokenizer(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = ALL[family]()
    texts = TokenTexts(tokenizer)
    for _ in texts.learn(len(tokenizer)):
        pass
    first, *rest = token_ids = encoded(tokenizer, "the cat sat on the log")
    names, whole = texts.names(token_ids), decoded(tokenizer, token_ids)
    detokenizer = Detokenizer(texts)
    begun = detokenizer.push([first])
    monkeypatch.setattr(TokenTexts, "decode", None)
    monkeypatch.setattr(TokenTexts, "token", None)
    assert texts.names(token_ids) == names
    assert "".join([*begun, *detokenizer.push(rest)]) == whole


class Spaced(PreTrainedTokenizerFast):
    """Decodes in a way of its own."""

    def decode(self, token_ids: Any, *args: Any, **kwargs: Any) -> str:
        """The ids themselves."""
        return " ".join(map(str, token_ids))


@pytest.mark.parametrize(
    ("decoder", "joins"),
    [
        (decoders.ByteLevel(), True),
        (decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]), True),
        (decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("▁", " ")]), False),
        (
            decoders.Sequence(
                [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 1)]
            ),
            False,
        ),
        (decoders.Metaspace(), False),
        (decoders.WordPiece(), False),
        (None, False),
    ],
    ids=["byte level", "sentencepiece", "replaced when joined", "stripped behind", "metaspace", "word pieces", "none"],
)
def test_a_tokenizer_joins_texts_where_its_decoder_is_known_to(decoder: decoders.Decoder | None, joins: bool) -> None:
    backend = Tokenizer.from_str(tokenizers.byte_level().backend_tokenizer.to_str())
    backend.decoder = decoder
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    assert joins_texts(tokenizer) is joins
    token_ids = encoded(tokenizer, "the cat sat")
    assert "".join(pushed(tokenizer, token_ids)) == decoded(tokenizer, token_ids)


def test_a_tokenizer_that_decodes_in_its_own_way_is_asked() -> None:
    backend = Tokenizer.from_str(tokenizers.byte_level().backend_tokenizer.to_str())
    tokenizer = Spaced(tokenizer_object=backend)  # type: ignore[no-untyped-call]
    assert pushed(tokenizer, [5, 6, 7]) == ["5", " 6", " 7", ""]


@families
@given(data=st.data())
def test_what_is_shown_is_never_taken_back(family: str, data: st.DataObject) -> None:
    """Whatever follows: the text shown so far begins the text of any longer answer too."""
    tokenizer = ALL[family]()
    token_ids = data.draw(answers(tokenizer))
    detokenizer = Detokenizer(TokenTexts(tokenizer))
    so_far = "".join(detokenizer.push(token_ids))
    continuation = data.draw(answers(tokenizer))
    assert decoded(tokenizer, token_ids).startswith(so_far)
    assert decoded(tokenizer, [*token_ids, *continuation]).startswith(so_far)


@families
@given(data=st.data())
def test_nothing_undecodable_is_shown_that_the_whole_answer_does_not_have(family: str, data: st.DataObject) -> None:
    tokenizer = ALL[family]()
    token_ids = data.draw(answers(tokenizer))
    whole = decoded(tokenizer, token_ids)
    for text in shown(pushed(tokenizer, token_ids)):
        assert text == whole[: len(text)]
        assert text.count(UNDECODABLE) == whole[: len(text)].count(UNDECODABLE)


@families
@pytest.mark.parametrize("character", ["你", "😀"])
def test_a_character_of_several_tokens_is_shown_when_it_is_whole(family: str, character: str) -> None:
    tokenizer = ALL[family]()
    before, after = (
        encoded(tokenizer, "the cat"),
        encoded(tokenizer, "the cat sat")[len(encoded(tokenizer, "the cat")) :],
    )
    middle = encoded(tokenizer, f"the cat{character}")[len(before) :]
    pieces = pushed(tokenizer, [*before, *middle, *after])
    texts = shown(pieces)
    assert texts[-1] == f"the cat{character} sat"
    assert all(text.isascii() or text.startswith(f"the cat{character}") for text in texts)
    assert not any(UNDECODABLE in text for text in texts)


CHARACTER, BAD_BYTE = ["<0xE4>", "<0xBD>", "<0xA0>"], "<0xFF>"  # of 你
BEYOND = 3
"""Names no token: an id behind the last one of the tokenizer."""
RUNS: dict[str, tuple[str, list[str | int], list[str]]] = {
    "a split character": ("byte level", ["ð", "Ł", "ĺ", "Ģ"], ["", "", "", "😀", ""]),  # its bytes as BPE writes them
    "a character that is never completed": ("byte level", ["a", "ð", "Ł"], ["a", "", "", UNDECODABLE]),
    "a run of bytes": ("sentencepiece", [*CHARACTER, "a"], ["", "", "", "你a", ""]),
    "a run that a bad byte spoils": (
        "sentencepiece",
        [*CHARACTER, BAD_BYTE, "a"],
        ["", "", "", "", 4 * UNDECODABLE + "a", ""],
    ),
    **{
        f"a run that goes on behind {special}": (
            "sentencepiece",
            [*CHARACTER, special, BAD_BYTE, "a"],
            ["", "", "", "", "", 4 * UNDECODABLE + "a", ""],
        )
        for special in ("</s>", "<s>", RESERVED)
    },
    "a run that goes on behind an unknown id": (
        "sentencepiece",
        [*CHARACTER, BEYOND, BAD_BYTE],
        ["", "", "", "", "", 4 * UNDECODABLE],
    ),
}
"""Tokens by their names, and what is shown of each, and at the end: what a later byte may spoil is not shown before."""


@pytest.mark.parametrize("run", RUNS)
def test_bytes_are_shown_when_nothing_can_spoil_them_any_more(run: str) -> None:
    family, names, pieces = RUNS[run]
    tokenizer = ALL[family]()
    ids = [len(tokenizer) + name if isinstance(name, int) else token_id(tokenizer, name) for name in names]
    assert pushed(tokenizer, ids) == pieces


@families
@given(data=st.data())
def test_special_tokens_say_nothing_and_leave_their_neighbours_alone(family: str, data: st.DataObject) -> None:
    tokenizer = ALL[family]()
    specials = sorted(id_ for id_, token in tokenizer.added_tokens_decoder.items() if token.special)
    token_ids = [id_ for id_ in data.draw(answers(tokenizer)) if id_ not in specials]
    place = data.draw(st.integers(0, len(token_ids)))
    special = data.draw(st.sampled_from(specials))
    pieces = pushed(tokenizer, [*token_ids[:place], special, *token_ids[place:]])
    assert pieces.pop(place) == ""
    assert pieces == pushed(tokenizer, token_ids)


@families
def test_a_detokenizer_that_has_finished_begins_anew(family: str) -> None:
    tokenizer = ALL[family]()
    token_ids = encoded(tokenizer, "the cat 你")
    detokenizer = Detokenizer(TokenTexts(tokenizer))
    first = [*detokenizer.push(token_ids), detokenizer.finish()]
    assert [*detokenizer.push(token_ids), detokenizer.finish()] == first


@families
def test_ids_beyond_the_tokenizer_say_nothing(family: str) -> None:
    """A model's vocabulary may be padded past its tokenizer's."""
    tokenizer = ALL[family]()
    a = token_id(tokenizer, "a")
    assert pushed(tokenizer, [a, len(tokenizer) + 3, a]) == ["a", "", "a", ""]


@families
def test_names_of_tokens_keep_their_leading_space(family: str) -> None:
    tokenizer = ALL[family]()
    start = len(encoded(tokenizer, "a"))
    rest = encoded(tokenizer, "a cat sat on the mat")[start:]
    names = TokenTexts(tokenizer).names(rest)
    assert "".join(names) == " cat sat on the mat"
    assert names[0].startswith(" ")


@families
def test_names_of_special_tokens_are_what_the_tokenizer_calls_them(family: str) -> None:
    tokenizer = ALL[family]()
    specials = {id_: token.content for id_, token in tokenizer.added_tokens_decoder.items() if token.special}
    assert TokenTexts(tokenizer).names(list(specials)) == list(specials.values())


@pytest.mark.parametrize(
    ("family", "token", "name"),
    [
        ("sentencepiece", "▁the", " the"),
        ("byte level", "ä", "‹E4›"),
        ("sentencepiece", "<0xE4>", "‹E4›"),
        ("sentencepiece", "<0x0A>", "\n"),
        ("sentencepiece", "<0x7E>", "~"),
    ],
)
def test_a_token_is_named_by_its_text_and_a_lone_byte_by_its_value_or_its_character(
    family: str, token: str, name: str
) -> None:
    tokenizer = ALL[family]()
    assert TokenTexts(tokenizer).name(token_id(tokenizer, token)) == name


@families
def test_every_token_has_a_name_and_none_is_undecodable(family: str) -> None:
    tokenizer = ALL[family]()
    names = TokenTexts(tokenizer).names(range(len(tokenizer)))
    assert all(names)
    assert not any(UNDECODABLE in name for name in names)


@families
@given(data=st.data())
def test_an_answer_that_pauses_and_goes_on_has_the_text_of_one_without_a_pause(
    family: str, data: st.DataObject
) -> None:
    tokenizer = ALL[family]()
    token_ids = data.draw(answers(tokenizer))
    places = sorted(data.draw(st.lists(st.integers(0, len(token_ids)), min_size=1, max_size=3)))
    whole = "".join(pushed(tokenizer, token_ids))
    with_pauses = "".join(paused(tokenizer, token_ids, places))
    assert with_pauses == whole or UNDECODABLE in whole  # a byte that spoils a run takes nothing back


def test_a_run_of_byte_tokens_with_several_pauses_is_shown_once() -> None:
    tokenizer = tokenizers.sentencepiece()
    assert paused(tokenizer, [token_id(tokenizer, f"<0x{byte:02X}>") for byte in b"ABC"], [1, 2]) == ["A", "B", "C"]


def paused(tokenizer: PreTrainedTokenizerBase, token_ids: list[int], places: list[int]) -> list[str]:
    """What is shown of an answer up to each of these places, where it pauses, and behind the last one."""
    texts = TokenTexts(tokenizer)
    parts: list[str] = []
    for start, end in pairwise([0, *places, len(token_ids)]):
        detokenizer = Detokenizer(texts)
        detokenizer.resume(token_ids[:start], "".join(parts))
        last = len(parts) == len(places)
        held_back = detokenizer.finish if last else detokenizer.pause
        parts.append("".join(detokenizer.push(token_ids[start:end])) + held_back())
    return parts
