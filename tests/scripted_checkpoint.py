"""Tiny checkpoints that always write one given text, whatever they are asked."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tests.tiny import SHAPE

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
BEGINNING, END_OF_TEXT, START_OF_TURN, END_OF_TURN = "<s>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = (END_OF_TEXT, START_OF_TURN, END_OF_TURN)
PIECE = 4
"""Characters of a token of the text; more where it would come twice."""


def scripted_checkpoint(
    folder: Path,
    text: str,
    template: str | None = CHATML,
    end: str = END_OF_TURN,
    special: Sequence[str] = SPECIAL,
    marks: Sequence[str] = (),
    rows: int | None = None,
    **config: Any,
) -> Path:
    """Save a checkpoint that writes `text` and `end`, again and again, until it is stopped.

    Its next token depends on the last one alone: a token of the text is followed by the one behind it there, and any
    other by the first. What names the end of its answers is `END_OF_TEXT`, so `end` has to be found.

    Args:
        folder: where it goes.
        text: what it writes; none of its tokens is one that text is encoded to.
        template: its chat template, if it has one.
        end: the special token behind the text.
        special: all special tokens; the first one is `eos_token`, and `BEGINNING` is `bos_token`.
        marks: tokens that are not special, such as `<think>`: in the text each is one token.
        rows: of its embeddings and logits; by default as many as there are tokens.
        config: what else config.json says.
    """
    tokenizer = scripted_tokenizer(text, template, special, marks)
    vocabulary = tokenizer.get_vocab()
    script = [*script_ids(tokenizer, text), vocabulary[end]]
    size = rows or len(vocabulary)
    following = torch.full((size,), script[0])
    for token, after in pairwise(script):
        following[token] = after
    width = size + -size % SHAPE["num_attention_heads"]
    shape = {**SHAPE, "vocab_size": size, "hidden_size": width, "num_hidden_layers": 2, "intermediate_size": 8}
    eos_token_id = vocabulary[special[0]]
    model = LlamaForCausalLM(
        LlamaConfig(**{**shape, "bos_token_id": None, "pad_token_id": None, "eos_token_id": eos_token_id, **config})
    )
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size, width))
        model.lm_head.weight.zero_()
        model.lm_head.weight[following, torch.arange(size)] = 1.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def scripted_tokenizer(
    text: str, template: str | None = CHATML, special: Sequence[str] = SPECIAL, marks: Sequence[str] = ()
) -> PreTrainedTokenizerFast:
    """The tokenizer of such a checkpoint."""
    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast(
        tokenizer_object=byte_tokenizer(text, special, marks),
        bos_token=BEGINNING if BEGINNING in special else None,
        eos_token=special[0],
        chat_template=template,
        clean_up_tokenization_spaces=False,
    )
    return tokenizer


def script_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """The tokens that such a checkpoint writes its text with."""
    marks = [str(token) for token in tokenizer.added_tokens_decoder.values()]
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return [vocabulary[piece if piece in marks else letters(piece)] for piece in pieces(text, marks)]


def byte_tokenizer(text: str, special: Sequence[str] = SPECIAL, marks: Sequence[str] = ()) -> Tokenizer:
    """A byte-level tokenizer that encodes any text byte by byte, and has the tokens that a model writes `text` with."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, *(letters(piece) for piece in pieces(text, marks) if piece not in marks)]
    tokenizer = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in special])
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in marks])
    return tokenizer


def pieces(text: str, marks: Sequence[str] = ()) -> list[str]:
    """The text in parts of which none comes twice, each at least two characters long. A mark is one part."""
    parts = re.split("(" + "|".join(map(re.escape, marks)) + ")", text) if marks else [text]
    found = [piece for part in parts for piece in ([part] if part in marks else _pieces(part))]
    assert len({*found}) == len(found), "no part of the text may come twice"
    return found


def _pieces(text: str) -> list[str]:
    found: list[str] = []
    start = 0
    while start < len(text):
        end = start + PIECE
        while text[start:end] in found and end < len(text):
            end += 1
        found.append(text[start:end])
        start = end
    if len(found) > 1 and (len(found[-1]) < 2 or found[-1] in found[:-1]):
        last = found.pop()
        found[-1] += last
    return found


def letters(piece: str) -> str:
    """A piece as a byte-level vocabulary writes it: a letter for each byte."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(part for part, _ in byte_level.pre_tokenize_str(piece))


def change(file: Path, **changes: Any) -> None:
    """Change entries of a JSON file; None takes one away."""
    content = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
