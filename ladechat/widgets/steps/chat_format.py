"""Control tokens of the chat format: models guess them like any others, but they should not look like gibberish."""

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
    """Return an explanation of the chat-format tokens among these pieces, found by their form; "" without any."""
    found = [f"‹{visible(one)}›" for one in dict.fromkeys(pieces) if _OF_THE_FORMAT.fullmatch(one.strip())]
    if not found:
        return ""
    named = found[:MOST_NAMED]
    what = f"{' and '.join(named)} {'are tokens' if named[1:] else 'is a token'} of the chat format"
    return f"{what} (who speaks, where a text ends): the model can guess such tokens too."
