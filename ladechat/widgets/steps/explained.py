"""Drafts in words: their sources, and tokens of the chat format among them."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ladechat.widgets.cells import NO_TEXT, visible

EARLIER = "earlier"


class Source(NamedTuple):
    """A source of drafts, in words.

    Attributes:
        name: the name shown beside drafts. It differs from the name in events where that would mislead: 'accepted'
            beside an ✗ would contradict itself.
        meaning: a description in a few words; "" for a user's own drafter.
        phrase: the noun phrase for a draft of this source.
    """

    name: str
    meaning: str
    phrase: str


SOURCES = {
    "window": Source("window", "n-grams of the Jacobi window", "an n-gram of the Jacobi window"),
    "prompt": Source("prompt", "what the prompt has after the same words", "an n-gram of the prompt"),
    "accepted": Source("answer", "what this answer has after the same words", "an n-gram of this answer"),
    EARLIER: Source("earlier", "what an earlier answer had after the same words", "remembered from an earlier answer"),
    "suffix": Source("suffix", "what the conversation has after the longest match of its end", "drafted by suffix"),
    "recycling": Source(
        "recycling", "tokens that earlier passes found likely after the last one", "drafted by recycling"
    ),
    "hidden_transfer": Source(
        "hidden transfer", "guesses of trained maps half-way up the model", "drafted by hidden transfer"
    ),
    "medusa": Source("medusa", "guesses of trained heads on the model's last layer", "drafted by medusa"),
    "layer_skip": Source(
        "layer skip", "guesses of the model itself with some layers left out", "drafted by layer skip"
    ),
}
"""By their names in events."""


def source_of(name: str) -> Source:
    """Return the source with this name in events."""
    words = name.replace("_", " ")
    return SOURCES.get(name) or Source(words, "", f"drafted by {words}")


def sources_explained(names: Iterable[str]) -> str:
    """Return a description of each source, once, in order of first appearance; "" if none is known."""
    known = [f"{one.name}, {one.meaning}" for one in map(source_of, dict.fromkeys(names)) if one.meaning]
    return f"Where drafts come from: {'; '.join(known)}." if known else ""


_OF_THE_FORMAT = re.compile(
    r"<[|｜].+[|｜]>"  # <|im_end|>, <｜User｜>
    r"|</?s>|<(bos|eos|pad|unk)>|<\w+_of_\w+>"  # <end_of_turn>
    r"|\[/?[A-Z_]{3,}\]|<</?SYS>>"  # [/INST]
)
MOST_NAMED = 2


def format_explained(pieces: Iterable[str]) -> str:
    """Return an explanation of the chat-format tokens among these pieces, found by their form, and of tokens without
    text; "" without any.
    """
    pieces = list(pieces)
    empty = f"{NO_TEXT}: a token without text, such as the end of an answer." if "" in pieces else ""
    found = [f"‹{visible(one)}›" for one in dict.fromkeys(pieces) if _OF_THE_FORMAT.fullmatch(one.strip())]
    if not found:
        return empty
    named = found[:MOST_NAMED]
    what = f"{' and '.join(named)} {'are tokens' if named[1:] else 'is a token'} of the chat format"
    return " ".join(filter(None, [f"{what} (who speaks, where a text ends).", empty]))
