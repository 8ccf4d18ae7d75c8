"""Where drafts come from: what their sources are called on the screen, and what they are."""

from collections.abc import Iterable

NAMES = {"accepted": "answer"}
"""Where the name in events says something else to a reader: of what was accepted already, which an ✗ may stand
beside.
"""

MEANINGS = {
    "window": "branches and n-grams of the Jacobi window",
    "prompt": "what the prompt has after the same words",
    "accepted": "what this answer has after the same words",
    "earlier": "what an earlier answer had after the same words",
    "suffix": "what the conversation has after the longest match of its end",
    "recycling": "tokens that earlier passes found likely after the last one",
    "hidden_transfer": "guesses of trained maps half-way up the model",
    "medusa": "guesses of trained heads on the model's last layer",
    "layer_skip": "guesses of the model itself with some layers left out",
}
"""In a few words; a drafter of one's own need not be among them."""


def source_in_words(source: str) -> str:
    """A source of drafts as it is shown: hidden transfer."""
    return NAMES.get(source, source.replace("_", " "))


def sources_explained(sources: Iterable[str]) -> str:
    """What each of them is, once, in the order in which they come up first; "" where nothing is known of any."""
    known = [f"{source_in_words(one)}, {MEANINGS[one]}" for one in dict.fromkeys(sources) if one in MEANINGS]
    return f"Where drafts come from: {'; '.join(known)}." if known else ""
