"""Tokens of the chat format: a model guesses them like any others, and a reader should not take them for gibberish."""

import re
from collections.abc import Iterable

from ladechat.widgets.cells import visible

_OF_THE_FORMAT = re.compile(
    r"<[|｜].+[|｜]>"  # <|im_end|>, <｜User｜>
    r"|</?s>|<(bos|eos|pad|unk)>|<\w+_of_\w+>"  # <end_of_turn>
    r"|\[/?[A-Z_]{3,}\]|<</?SYS>>"  # [/INST]
)
MOST_NAMED = 2


def format_explained(pieces: Iterable[str]) -> str:
    """What those of these tokens are that belong to the chat format, by their form; "" where none does."""
    found = [f"‹{visible(one)}›" for one in dict.fromkeys(pieces) if _OF_THE_FORMAT.fullmatch(one.strip())]
    if not found:
        return ""
    named = found[:MOST_NAMED]
    what = f"{' and '.join(named)} {'are tokens' if named[1:] else 'is a token'} of the chat format"
    return f"{what} (who speaks, where a text ends): the model can guess such tokens too."
