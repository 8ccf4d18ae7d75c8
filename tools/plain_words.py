"""Holds the prose of the code to plain English: `python -m tools.plain_words` in `make check`.

Docstrings and comments say saved, accepted or cached for "kept", requested for "wished", and so on. Strings that users
see and names are not looked at.
"""

import argparse
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PRIVATE = re.compile(r"\b(told|kept|wished|besides|seldom|of late|lately|be it)\b", re.IGNORECASE)
QUOTED = re.compile(r'``.*?``|`.*?`|".*?"|^ *\w+(, \w+)*:', re.DOTALL | re.MULTILINE)
"""What is quoted, and the names of arguments and attributes that are described."""
ROOT = Path(__file__).parent.parent / "ladechat"


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a module, each with its first line.

    What they quote is left out, and the names that they describe.
    """
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        alone = token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if alone or token.type == tokenize.COMMENT:
            text = token.string[3:-3] if alone and token.string.startswith('"""') else token.string
            yield token.start[0], QUOTED.sub("", text)
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def main() -> int:
    """Print each private word with its place. Return 1 if there is one."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    found = 0
    for path in sorted(ROOT.rglob("*.py")):
        for line, text in prose(path.read_text(encoding="utf-8")):
            for word in PRIVATE.finditer(text):
                found = 1
                place = line + text.count("\n", 0, word.start())
                print(f"{path.relative_to(ROOT.parent)}:{place}: {word[0]!r} is no word of the field", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
