"""The tokenizer of a GGUF file, built from its vocabulary.

transformers' own conversion is not used: it (5.17) confuses the token that begins a text with the one that ends it,
builds the merges of a SentencePiece vocabulary in quadratic time (more than a minute for 32,000 tokens), and splits the
text of a Llama 3 by GPT-2's rule.
"""

from typing import Any, NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ladechat.model.checkpoint.files import LoadError
from ladechat.model.checkpoint.marks import is_role_mark, looks_like_a_mark
from ladechat.model.loading.gguf_file import OTHER_COPY, GgufFile

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
"""The kinds of tokens, as numbered by llama.cpp. The others are bytes and unused ids."""

ROLES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
"""The names of tokens with a role in transformers and in the metadata."""

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
MARKS_AND_SPACES = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


class Splitting(NamedTuple):
    """The pre-tokenization of a byte-level tokenizer: how it splits a text before merging.

    Attributes:
        parts: a regular expression that matches a part; None for GPT-2's rule.
        single_digits: whether digits are first split off one by one.
        composed: whether the text is first normalised to NFC.
        whole_words: whether a part that is itself a token is used without merging.
    """

    parts: str | None = None
    single_digits: bool = False
    composed: bool = False
    whole_words: bool = False


SPLITTINGS = {
    "gpt-2": Splitting(),
    "llama-bpe": Splitting(rf"{CONTRACTIONS}|{WORDS}|\p{{N}}{{1,3}}|{MARKS_AND_SPACES}", whole_words=True),
    "qwen2": Splitting(rf"{CONTRACTIONS}|{WORDS}|\p{{N}}|{MARKS_AND_SPACES}", composed=True),
    "smollm": Splitting(single_digits=True),
}
"""By llama.cpp's names. Other names are refused: a text split differently is another prompt."""


def gguf_tokenizer(file: GgufFile) -> PreTrainedTokenizerBase:
    """Return the tokenizer in a GGUF file, with its chat template.

    Raises:
        LoadError: it is of an unsupported kind, or incomplete.
    """
    kind, splitting = (str(file.facts.get(f"tokenizer.ggml.{key}", "none")) for key in ("model", "pre"))
    if kind != "llama" and (kind != "gpt2" or splitting not in SPLITTINGS):
        message = f"{file.name} has a tokenizer of the kind {kind!r}, {splitting!r}, which cannot be built here."
        raise LoadError("load_failed", message, OTHER_COPY)
    try:
        tokenizer = _sentencepiece(file) if kind == "llama" else _byte_level(file, SPLITTINGS[splitting])
        tokens = list(zip(file.tokens, _kinds(file), strict=True))
    except Exception as error:  # the tokenizers library raises nothing more specific
        message = f"The tokenizer in {file.name} is damaged, or not all of it is there."
        raise LoadError("load_failed", message, "Check that the file is complete; download it again.") from error
    template = file.facts.get("tokenizer.chat_template")
    template = template if isinstance(template, str) else None
    # Converters write some marks as normal tokens. As such they would be split into letters in a prompt, and shown as
    # text where an answer should end.
    marks = {
        token for token, _ in tokens if is_role_mark(token) or (looks_like_a_mark(token) and token in (template or ""))
    }
    special = [token for token, kind in tokens if kind in (UNKNOWN, CONTROL) or (kind == NORMAL and token in marks)]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, kind in tokens if kind == USER_DEFINED])
    named = {ours: file.token_id(theirs) for ours, theirs in ROLES.items()}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        chat_template=template,
        clean_up_tokenization_spaces=False,
        **{ours: file.tokens[token_id] for ours, token_id in named.items() if token_id is not None},
    )


def _sentencepiece(file: GgufFile) -> Tokenizer:
    """Build a SentencePiece tokenizer: it repeatedly merges the two pieces that form the most likely token, with bytes
    for text that is not in the vocabulary.
    """
    unknown = file.token_id("unknown")
    tokenizer = Tokenizer(
        models.BPE(
            vocab=_vocabulary(file),
            merges=_merges(file),
            unk_token=None if unknown is None else file.tokens[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    spaced = bool(file.facts.get("tokenizer.ggml.add_space_prefix", True))
    steps: list[Any] = [normalizers.Prepend("▁")] if spaced else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    back: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)] if spaced else back)
    return tokenizer


def _merges(file: GgufFile) -> list[tuple[str, str]]:
    """Return every split of a token into two others, by falling score of the token."""
    ids, found = _vocabulary(file), []
    for token, score, kind in zip(file.tokens, file.facts["tokenizer.ggml.scores"], _kinds(file), strict=True):
        for cut in range(1, len(token) if kind == NORMAL else 0):
            left, right = token[:cut], token[cut:]
            if left in ids and right in ids:
                found.append((-score, ids[token], ids[left], ids[right]))
    return [(file.tokens[left], file.tokens[right]) for *_, left, right in sorted(found)]


def _byte_level(file: GgufFile, splitting: Splitting) -> Tokenizer:
    """Build a byte-level tokenizer, in which each byte is a letter; the merges are in the file."""
    pairs = [merge.split(" ") for merge in file.facts["tokenizer.ggml.merges"]]
    merges = [(left, right) for left, right in pairs]
    tokenizer = Tokenizer(models.BPE(_vocabulary(file), merges, ignore_merges=splitting.whole_words))
    steps: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if splitting.single_digits else []
    if splitting.parts is not None:
        steps.append(pre_tokenizers.Split(Regex(splitting.parts), "isolated"))
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=splitting.parts is None)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, last])
    if splitting.composed:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _vocabulary(file: GgufFile) -> dict[str, int]:
    return {token: index for index, token in enumerate(file.tokens)}


def _kinds(file: GgufFile) -> list[int]:
    """Return the kind of each token; normal where the file does not give it."""
    return list(file.facts.get("tokenizer.ggml.token_type", [NORMAL] * len(file.tokens)))
