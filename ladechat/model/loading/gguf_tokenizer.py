"""The tokenizer that a GGUF file describes, built from its vocabulary.

Not by transformers' own reading of it: that (5.17) takes the token that begins a text for the one that ends it, builds
the merges of a SentencePiece vocabulary in a time that grows with its square (a minute and more for 32,000 tokens), and
splits the text of a Llama 3 by GPT-2's rule.
"""

from typing import Any, NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ladechat.model.checkpoint.files import LoadError
from ladechat.model.checkpoint.gguf_file import OTHER_COPY, GgufFile
from ladechat.model.checkpoint.marks import is_role_mark, looks_like_a_mark

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
"""What a token is, as llama.cpp numbers it. The others are bytes, and places that nobody uses."""

ROLES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
"""What transformers and the metadata call the tokens that have a role."""

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
MARKS_AND_SPACES = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


class Splitting(NamedTuple):
    """How a byte-level tokenizer cuts a text before it merges: where, and what it does besides.

    Attributes:
        parts: what is a part, as a regular expression; None for GPT-2's rule.
        single_digits: whether each digit is cut off before that.
        composed: whether the text is brought into the composed form of Unicode (NFC) before.
        whole_words: whether a part that is a token is taken as such, whatever merges would make of it.
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
"""By what llama.cpp calls them. Those of other models are refused: a text that is cut elsewhere is another prompt."""


def gguf_tokenizer(file: GgufFile) -> PreTrainedTokenizerBase:
    """The tokenizer in a GGUF file, with its chat template.

    Raises:
        LoadError: it is of a kind that is not built here, or not all of it is there.
    """
    kind, splitting = (str(file.facts.get(f"tokenizer.ggml.{key}", "none")) for key in ("model", "pre"))
    if kind != "llama" and (kind != "gpt2" or splitting not in SPLITTINGS):
        message = f"{file.name} has a tokenizer of the kind {kind!r}, {splitting!r}, which cannot be built here."
        raise LoadError("load_failed", message, OTHER_COPY)
    try:
        tokenizer = _sentencepiece(file) if kind == "llama" else _byte_level(file, SPLITTINGS[splitting])
        tokens = list(zip(file.tokens, _kinds(file), strict=True))
    except Exception as error:  # of what does not fit together, the tokenizers raise nothing more special
        message = f"The tokenizer in {file.name} is damaged, or not all of it is there."
        raise LoadError("load_failed", message, "Check that the file is complete; download it again.") from error
    template = _template(file)
    special = [
        AddedToken(token, normalized=False, special=True)
        for token, kind in tokens
        if kind in (UNKNOWN, CONTROL) or (kind == NORMAL and is_mark_of(template, token))
    ]
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, kind in tokens if kind == USER_DEFINED])
    named = {ours: file.token_id(theirs) for ours, theirs in ROLES.items()}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        chat_template=template,
        clean_up_tokenization_spaces=False,
        **{ours: file.tokens[token_id] for ours, token_id in named.items() if token_id is not None},
    )


def is_mark_of(template: str | None, token: str) -> bool:
    """Whether a token is a mark by its text, whatever a file says of its kind: converters write some as normal ones.

    Such a mark would be cut into letters in a prompt, and shown as text where an answer should end.
    """
    return is_role_mark(token) or (template is not None and looks_like_a_mark(token) and token in template)


def _template(file: GgufFile) -> str | None:
    found = file.facts.get("tokenizer.chat_template")
    return found if isinstance(found, str) else None


def _sentencepiece(file: GgufFile) -> Tokenizer:
    """Of the two pieces that join to the likeliest one, again and again; bytes for what is not in the vocabulary."""
    unknown = file.token_id("unknown")
    tokenizer = Tokenizer(
        models.BPE(
            vocab={token: index for index, token in enumerate(file.tokens)},
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
    """Every way in which a token is two others, the likeliest token first."""
    ids = {token: index for index, token in enumerate(file.tokens)}
    found = []
    for token, score, kind in zip(file.tokens, file.facts["tokenizer.ggml.scores"], _kinds(file), strict=True):
        for cut in range(1, len(token) if kind == NORMAL else 0):
            left, right = token[:cut], token[cut:]
            if left in ids and right in ids:
                found.append((-score, ids[token], ids[left], ids[right]))
    return [(file.tokens[left], file.tokens[right]) for *_, left, right in sorted(found)]


def _byte_level(file: GgufFile, splitting: Splitting) -> Tokenizer:
    """Each byte has a letter; the merges are in the file."""
    pairs = [merge.split(" ") for merge in file.facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={token: index for index, token in enumerate(file.tokens)},
            merges=[(left, right) for left, right in pairs],
            ignore_merges=splitting.whole_words,
        )
    )
    steps: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if splitting.single_digits else []
    if splitting.parts is not None:
        steps.append(pre_tokenizers.Split(Regex(splitting.parts), "isolated"))
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=splitting.parts is None)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, last])
    if splitting.composed:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _kinds(file: GgufFile) -> list[int]:
    """What each token is; without a word on that, normal."""
    return list(file.facts.get("tokenizer.ggml.token_type", [NORMAL] * len(file.tokens)))
