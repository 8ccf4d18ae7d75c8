"""What a corpus consists of: exchanges of a question and an answer, and text that says one thing in several ways."""

import re
from dataclasses import dataclass
from random import Random

# The innermost group that has an alternative in it. Braces without a bar, as in Python code, are left as they are.
_GROUP = re.compile(r"\{([^{}]*\|[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question of the user's and the assistant's answer to it, as plain text."""

    question: str
    answer: str


def vary(text: str, rng: Random) -> str:
    """`text` with one alternative taken of every group `{a|b|c}`; groups may contain groups, and parts may be empty."""
    while group := _GROUP.search(text):
        text = text[: group.start()] + rng.choice(group[1].split("|")) + text[group.end() :]
    return text


def capitalised(text: str) -> str:
    """`text` with its first letter large and all others as they are."""
    return text[:1].upper() + text[1:]


BEFORE = (
    "Hi, ", "Hi! ", "Hello, ", "Hey, ", "Ok, ", "Ok. ", "And ", "So ", "Well, ", "Hm, ", "One question: ",
    "I wonder: ", "Sorry, ", "Please tell me: ", "Now tell me, ", "Quick question: ", "Maybe you know this: ", "Good. ",
    "Thanks. ", "I see. ", "Another question: ", "I have a question. ", "Just curious: ", "Wait. ", "By the way, ",
)  # fmt: skip
AFTER = (
    " Thanks.",
    " Thank you.",
    " I am new here.",
    " Please.",
    " I am curious.",
    " I would like to know.",
    "?",
    "!",
    "...",
)


SHORTER = (
    ("What is ", "What's "),
    ("What is ", "Whats "),
    (" do not ", " don't "),
    (" do not ", " dont "),
    ("I am ", "I'm "),
)


def as_typed(question: str, rng: Random) -> str:
    """`question` as somebody may type it: with a word before or after it, or in a hurry, with letters left out."""
    if rng.random() < 0.2:
        question = question.replace(*rng.choice(SHORTER))
    if rng.random() < 0.15:
        before = rng.choice(BEFORE)
        question = before + (question if before.endswith(". ") else question[:1].lower() + question[1:])
    if rng.random() < 0.06:
        question += rng.choice(AFTER)
    if rng.random() < 0.25:
        question = question[:1].lower() + question[1:]
    if rng.random() < 0.2:
        question = question.rstrip("?.!")
    if rng.random() < 0.05:
        question = _mistyped(question, rng)
    return question


def _mistyped(question: str, rng: Random) -> str:
    """The question with two small letters swapped or one left out, somewhere in a word of its own."""
    words = question.split(" ")
    place = rng.randrange(len(words))
    word = words[place]
    if len(word) < 5 or not word.isalpha() or not word.islower():
        return question
    at = rng.randrange(1, len(word) - 2)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    words[place] = swapped if rng.random() < 0.5 else word[:at] + word[at + 1 :]
    return " ".join(words)
