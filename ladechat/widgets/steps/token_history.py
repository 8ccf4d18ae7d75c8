"""The history of a token: where it was guessed before the model chose it. It holds only what step events prove."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ladechat import protocol
from ladechat.widgets.cells import visible
from ladechat.widgets.formatting import counted, percent
from ladechat.widgets.steps.births import diagonals
from ladechat.widgets.steps.explained import source_of

MODEL = "model"
SAME_LOGPROB = 1e-3
"""Log-probabilities that differ by less are of the same token: events have them rounded."""
NEGLIGIBLE = "<1 %"
MOST_GUESSES = 6
"""Number of the window's latest guesses that a sentence lists."""


class WindowGuess(NamedTuple):
    """A guess of the Jacobi window for the token's position, in one step.

    Attributes:
        step: the index of that step.
        ahead: the distance from that step's last token, in tokens.
        token, piece: the guessed token.
    """

    step: int
    ahead: int
    token: int
    piece: str


@dataclass(frozen=True)
class TokenHistory:
    """The history of one token of an answer.

    Attributes:
        token, piece: its id and its text.
        step: the index of the step that emitted it.
        origin: the source of the draft that guessed it; `MODEL` for a token that was not drafted.
        emitted: number of tokens that the step emitted.
        ahead: its position among them, from 1.
        drafts: number of drafts in that pass, reached or not.
        of_block: whether its draft was a guess of Jacobi decoding, which forms no n-grams.
        guesses: the window's guesses for its position, oldest first.
        formed: the step in which the window first completed the n-gram that it was accepted with, if known.
        read: for hidden transfer, the layer from which on its pseudo state read it, and the last layer, if recorded.
        logprob: its natural log-probability.
        rivals: what else was likely in its place; None if that is not recorded.
    """

    token: int
    piece: str
    step: int
    origin: str
    emitted: int
    ahead: int
    drafts: int
    of_block: bool
    guesses: tuple[WindowGuess, ...]
    formed: int | None
    read: tuple[int, int] | None
    logprob: float
    rivals: protocol.Rivals | None

    @property
    def drafted(self) -> bool:
        return self.origin != MODEL

    @property
    def saved(self) -> int:
        """Passes that its step saved compared with plain decoding."""
        return self.emitted - 1


def token_history(steps: Sequence[protocol.Step], place: int) -> TokenHistory | None:
    """Return the history of token number `place`, from 0, of one answer's `steps` in order; None if they lack it.

    The first steps may be missing: `place` counts from the first token of the first given step, and earlier guesses are
    unknown.
    """
    before: list[int] = []  # tokens emitted before each step
    done = 0
    for number, step in enumerate(steps):
        before.append(done)
        done += len(step.token_ids)
        if place < done:
            return _history(steps[: number + 1], before, place) if place >= 0 else None
    return None


def last_drafted(steps: Sequence[protocol.Step]) -> int | None:
    """Return the place of the last drafted token, in the latest step that has one."""
    end = sum(len(step.token_ids) for step in steps)
    for step in reversed(steps):
        end -= len(step.token_ids)
        drafted = [index for index, origin in enumerate(step.origins) if origin != MODEL]
        if drafted:
            return end + drafted[-1]
    return None


def _history(steps: Sequence[protocol.Step], before: Sequence[int], place: int) -> TokenHistory:
    step, index = steps[-1], place - before[-1]
    token, view = step.token_ids[index], step.lens if step.origins[index] == "hidden_transfer" else None
    layer = None if view is None else settled_at(view, index, token)
    block = step.window is not None and step.pool is None and step.origins[index] == "window"
    return TokenHistory(
        token=token,
        piece=step.pieces[index],
        step=step.index,
        origin=step.origins[index],
        emitted=len(step.token_ids),
        ahead=index + 1,
        of_block=block,
        drafts=0 if step.draft is None else len(step.draft.token_ids),
        guesses=tuple(_guesses(steps[:-1], before, place)),
        formed=None if block else _formed(steps, index),
        read=None if view is None or layer is None else (layer, view.layers[-1]),
        logprob=step.logprobs[index],
        rivals=step.rivals[index] if step.rivals and step.rivals[index].pieces else None,
    )


def _guesses(steps: Sequence[protocol.Step], before: Sequence[int], place: int) -> list[WindowGuess]:
    """Return each pass's guess for this place: column c of its fresh row is at N − 1 + c after its last token."""
    found = []
    for step, done in zip(steps, before, strict=False):
        window = step.window
        ahead = place - done + 1
        column = ahead - (len(window.rows) if window else 0)
        if window and 0 <= column < len(window.fresh_ids):
            found.append(WindowGuess(step.index, ahead, window.fresh_ids[column], window.fresh[column]))
    return found


def _formed(steps: Sequence[protocol.Step], index: int) -> int | None:
    """Return the first step whose window completed the n-gram of the last step's accepted drafts, up to this token.

    Every suffix of a column is an n-gram of the pool, from the following step on.
    """
    step = steps[-1]
    window, origins = step.window, step.origins[: index + 1]
    if window is None or not window.row_ids or not window.row_ids[0] or set(origins) != {"window"}:
        return None
    ngram = (window.row_ids[0][0], *step.token_ids[: index + 1])
    for earlier in steps[:-1]:
        view = earlier.window
        if view is not None and any(_ends_hold(column, ngram) for column in diagonals(view)):
            return earlier.index
    return None


def _ends_hold(column: tuple[int, ...], ngram: tuple[int, ...]) -> bool:
    """Return whether one of the suffixes of a column begins with the n-gram."""
    length = len(ngram)
    return any(column[start : start + length] == ngram for start in range(len(column) - length + 1))


def settled_at(view: protocol.LensView, column: int, token: int) -> int | None:
    """Return the lowest layer from which on all layers have the token as argmax at a position; None if none has."""
    lowest: int | None = None
    for layer, ids in zip(reversed(view.layers), reversed(view.row_ids), strict=True):
        if ids[column : column + 1] != [token]:
            break
        lowest = layer
    return lowest


# --- in words ---------------------------------------------------------------------------------------------------------


def sentences(history: TokenHistory) -> list[str]:
    """Return the history in plain sentences: what else was likely, then how the token was emitted, and why."""
    likely = _of_its_rivals(history)
    if not history.drafted:
        among = f"the last of {counted(history.emitted, 'token')}" if history.saved else "and the only one"
        own = f"The model's own token in pass {history.step + 1}, {among}: no draft."
        return [likely, own, *_of_the_window(history)]
    place = f"in pass {history.step + 1} as token {history.ahead} of {history.emitted}"
    phrase = "a guess of the pass before" if history.of_block else source_of(history.origin).phrase
    sentences = [likely, f"Accepted {place}: {phrase}."]
    sentences += _of_the_window(history)
    if history.formed is not None:
        sentences.append(
            f"Its n-gram first stood in the window in pass {history.formed + 1}, "
            f"{counted(history.step - history.formed, 'pass')} before."
        )
    if history.read is not None:
        layer, layers = history.read
        since = f"from layer {layer} of {layers} on" if layer < layers else f"at the last layer only, {layer}"
        sentences.append(f"Its pseudo state read it {since}.")
    sentences.append(_of_the_pass(history))
    return sentences


def _of_its_rivals(history: TokenHistory) -> str:
    """Return how likely the token was by the model alone, whether it was the likeliest, and what else was likely."""
    own, rivals = history.logprob, history.rivals
    if rivals is None:
        return f"Its probability: {share(own)}. What else was likely here is not recorded."
    same, named = named_rivals(own, rivals)
    chosen = f"The likeliest, at {share(own)}" if same == 0 else f"Sampled at {share(own)} instead of {named[0]}"
    others = ", ".join(name for place, name in enumerate(named) if place not in (0, same))
    unsure = "" if rivals.entropy is None else f" Entropy: {rivals.entropy / math.log(2):.1f} bits."
    return f"{'; then '.join(filter(None, (chosen, others)))}.{unsure}"


def named_rivals(own: float, rivals: protocol.Rivals) -> tuple[int | None, list[str]]:
    """Return the index of the emitted token among the likeliest ones, None if it is not among them, and the likeliest
    ones with their probabilities, in words. `own` is the log-probability of the emitted token, by which it is found.
    """
    same = next((place for place, one in enumerate(rivals.logprobs) if abs(one - own) < SAME_LOGPROB), None)
    return same, [f"‹{visible(one)}› {share(its)}" for one, its in zip(rivals.pieces, rivals.logprobs, strict=True)]


def share(logprob: float) -> str:
    """Return a probability as text."""
    part = math.exp(min(logprob, 0.0))
    return percent(part) if part >= 0.005 else NEGLIGIBLE


def _of_the_window(history: TokenHistory) -> list[str]:
    """Return a sentence about the window's guesses for the token's position."""
    guesses = history.guesses
    if not guesses:
        return []
    first = counted(history.step - guesses[0].step, "pass")
    more = "… " if len(guesses) > MOST_GUESSES else ""
    pieces = more + " ".join(f"‹{visible(guess.piece)}›" for guess in guesses[-MOST_GUESSES:])
    return [f"The window's guesses for this place, from {first} before on: {pieces}, {_when_right(history)}."]


def _when_right(history: TokenHistory) -> str:
    """Return when the window had the token at its position. A correct guess may have been replaced again."""
    right = [guess.token == history.token for guess in history.guesses]
    if not any(right):
        return "wrong" if len(right) == 1 else "all wrong"
    if all(right):
        return "right"
    if not right[-1]:
        return "right for a time, not at the end"
    last_wrong = max(index for index, one in enumerate(right) if not one)
    return f"right from pass {history.guesses[last_wrong + 1].step + 1} on"


def _of_the_pass(history: TokenHistory) -> str:
    judged = "The pass" + (f" checked {counted(history.drafts, 'draft')} at once and" if history.drafts else "")
    if not history.saved:
        return f"{judged} saved none."
    return f"{judged} gave {counted(history.emitted, 'token')}: {counted(history.saved, 'pass')} saved."
