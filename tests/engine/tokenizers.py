"""Small tokenizers of the two families that chat models use, built in code, and the bundled model's own."""

import json
from functools import lru_cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tests.tiny import DEMO

TEXTS = (
    "The cat sat on the mat, and the dog sat on the log.",
    "What is the name of the river? The name of the river is the Rhine.",
    "Größe, naïve café, über alles – schöne Grüße!",
    "你好，世界。今天天气很好。",
    "Привет, мир! 😀😀 🎉",
    "def add(a, b):\n    return a + b\n\n    # two  spaces",
    " the  a   b",
)
RESERVED = "<|reserved|>"
"""Special to the tokenizer, but none of the roles (beginning, end, unknown) that Python's side knows by name."""


@lru_cache(maxsize=1)
def byte_level() -> PreTrainedTokenizerBase:
    """Byte-level BPE as GPT-2 and Llama 3 have it: each byte has a letter, and a token may end inside a character."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<unk>", "<s>", "</s>", RESERVED],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return _wrapped(tokenizer)


@lru_cache(maxsize=1)
def sentencepiece() -> PreTrainedTokenizerBase:
    """BPE as Llama 2 has it: `▁` for a space and in front of a text, and `<0xE4>` for bytes of unknown characters."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    specials = ["<unk>", "<s>", "</s>"]
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = _spaces_as_underlines()
    # Words are learned one by one, as SentencePiece does it; the finished tokenizer merges over the whole text.
    trained.pre_tokenizer = pre_tokenizers.Split(Regex("▁"), "merged_with_next")
    latin = [text for text in TEXTS if text.isascii() or "ß" in text]
    trained.train_from_iterator(latin, trainers.BpeTrainer(vocab_size=160, show_progress=False))
    learned = json.loads(trained.to_str())["model"]
    pieces = [piece for piece, _ in sorted(learned["vocab"].items(), key=lambda item: item[1])]
    merges = [(left, right) for left, right in learned["merges"]]
    vocabulary = {piece: index for index, piece in enumerate([*specials, *bytes_, *pieces])}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = _spaces_as_underlines()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in [*specials, RESERVED]])
    return _wrapped(tokenizer)


@lru_cache(maxsize=1)
def demo() -> PreTrainedTokenizerBase:
    """The bundled model's tokenizer."""
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(DEMO)
    return tokenizer


ALL = {"byte level": byte_level, "sentencepiece": sentencepiece, "demo": demo}


def decoded(tokenizer: PreTrainedTokenizerBase, token_ids: list[int]) -> str:
    """What the tokenizer itself makes of a whole answer."""
    return str(tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def encoded(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """The tokens of a text, and nothing around them."""
    return list(tokenizer.encode(text, add_special_tokens=False))


def token_id(tokenizer: PreTrainedTokenizerBase, token: str) -> int:
    """The id of a token by its name in the vocabulary."""
    return int(tokenizer.get_vocab()[token])


def _spaces_as_underlines() -> normalizers.Normalizer:
    return normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])


def _wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerBase:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
