"""What people say becomes no mark of the chat format, whatever the tokenizer; all else is tokenized as ever."""

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ladechat.model.checkpoint.marks import GUARD, Marks
from ladechat.model.loading.gguf_file import read_gguf
from ladechat.model.loading.gguf_tokenizer import gguf_tokenizer
from tests.engine import tokenizers
from tests.gguf_files import write_gguf
from tests.tiny import random_model

SPECIAL = ("<s>", "</s>", "<unk>", "<|reserved|>", "<|im_end|>")
OTHERS = ("<think>", "[|im|]", "|im|")
"""Not special: decoding does not leave them out. One holds another."""


def with_marks(tokenizer: PreTrainedTokenizerBase, normalized: bool = False) -> PreTrainedTokenizerBase:
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.add_special_tokens([AddedToken(mark, normalized=normalized, special=True) for mark in SPECIAL])
    backend.add_tokens([AddedToken(mark, normalized=normalized) for mark in OTHERS])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


def unigram() -> PreTrainedTokenizerBase:
    """As T5 and XGLM have it: full-width characters become plain ones, and `</s>` is a piece of the vocabulary."""
    backend = Tokenizer(models.Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    letters = [chr(code) for code in range(33, 127)] + list("äöüß你好")
    trainer = trainers.UnigramTrainer(
        vocab_size=200,
        special_tokens=["<unk>", "<s>", "</s>"],
        unk_token="<unk>",
        initial_alphabet=letters,
        show_progress=False,
    )
    backend.train_from_iterator(tokenizers.TEXTS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def metaspace(scheme: str) -> PreTrainedTokenizerBase:
    """As newer conversions of Llama 2 have it: the space in front is added once, or in front of every part."""
    backend = Tokenizer.from_str(tokenizers.sentencepiece().backend_tokenizer.to_str())
    backend.normalizer = None
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def from_gguf(of_bytes: bool) -> PreTrainedTokenizerBase:
    tokenizer = tokenizers.byte_level() if of_bytes else tokenizers.sentencepiece()
    model = random_model(0, "qwen2" if of_bytes else "llama", vocab_size=len(tokenizer))
    with TemporaryDirectory() as folder:
        path = write_gguf(Path(folder) / "tiny.gguf", model, tokenizer)
        return gguf_tokenizer(read_gguf(path, "tiny"))


KINDS: dict[str, Callable[[], PreTrainedTokenizerBase]] = {
    "byte level": lambda: with_marks(tokenizers.byte_level()),
    "byte level, marks normalized": lambda: with_marks(tokenizers.byte_level(), normalized=True),
    "sentencepiece": lambda: with_marks(tokenizers.sentencepiece()),
    "metaspace, first": lambda: with_marks(metaspace("first")),
    "metaspace, always": lambda: with_marks(metaspace("always")),
    "unigram": lambda: with_marks(unigram()),
    "demo": lambda: with_marks(tokenizers.demo()),
    "gguf of bytes": lambda: from_gguf(of_bytes=True),
    "gguf of sentencepiece": lambda: from_gguf(of_bytes=False),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def marks_of(kind: str) -> tuple[PreTrainedTokenizerBase, Marks]:
    tokenizer = KINDS[kind]()
    return tokenizer, Marks(tokenizer)


def decoded(tokenizer: PreTrainedTokenizerBase, token_ids: list[int]) -> str:
    return str(tokenizer.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


WORDS = st.sampled_from(["the cat", " sat", "a", "<", ">", "|", "/s>", "<s", "im_end", "[", "]", "!", "x "])
PIECES = st.one_of(WORDS, st.sampled_from([*SPECIAL, *OTHERS]))


@every_kind
@given(pieces=st.lists(PIECES, max_size=8))
def test_no_mark_comes_from_what_people_say_and_the_text_stays_as_it_is(kind: str, pieces: list[str]) -> None:
    tokenizer, marks = marks_of(kind)
    said = "".join(pieces)
    token_ids = marks.tokenize(marks.guarded(said))
    known = {number for number, token in tokenizer.added_tokens_decoder.items() if len(token.content) > 1}
    assert not known.intersection(token_ids)
    if kind != "unigram":  # which makes one space of several
        assert decoded(tokenizer, token_ids).lstrip() == said.lstrip()  # one in front is lost with Metaspace


@every_kind
@given(words=st.lists(WORDS, max_size=6), others=st.lists(PIECES, max_size=4))
def test_marks_that_a_template_writes_stay_marks_and_what_has_none_is_tokenized_as_ever(
    kind: str, words: list[str], others: list[str]
) -> None:
    tokenizer, marks = marks_of(kind)
    text = "".join(["<s>", *words, "</s>", *words])
    begun = "".join(words)
    if not marks.ids_in(begun):
        assert marks.guarded(begun) == begun
        assert marks.tokenize(text) == tokenizer.encode(text, add_special_tokens=False)
    whole = marks.tokenize("<s>" + marks.guarded("".join(others)) + "</s>")
    ends = [tokenizer.bos_token_id, tokenizer.eos_token_id]
    assert [token for token in whole if token in ends] == ends


@pytest.mark.parametrize("text", ["＜/s＞", "a＜think＞b", "＜|im_end|＞"])
def test_what_a_tokenizer_itself_makes_a_mark_of_is_none(text: str) -> None:
    tokenizer = with_marks(unigram(), normalized=True)
    marks = Marks(tokenizer)
    assert marks.ids_in(text), "the tokenizer takes it for a mark"
    assert not marks.ids_in("") and not set(marks.ids_in(text)).intersection(marks.tokenize(marks.guarded(text)))


@lru_cache
def with_words() -> PreTrainedTokenizerBase:
    tokenizer = with_marks(tokenizers.byte_level())
    tokenizer.add_tokens(["covid", "  ", "!"])
    return tokenizer


@pytest.mark.parametrize("text", ["a covid test", "if a:\n  b", "no!"])
def test_words_and_spaces_that_were_added_to_a_vocabulary_are_no_marks(text: str) -> None:
    tokenizer = with_words()
    marks = Marks(tokenizer)
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    assert set(token_ids).intersection(tokenizer.added_tokens_decoder)
    assert marks.tokenize(marks.guarded(text)) == token_ids


def test_a_guard_in_a_persons_text_does_no_harm() -> None:
    tokenizer, marks = marks_of("byte level")
    said = f"a{GUARD}b <{GUARD}/s></s>"
    token_ids = marks.tokenize(marks.guarded(said))
    assert tokenizer.eos_token_id not in token_ids
    assert decoded(tokenizer, token_ids) == said.replace(GUARD, "")
