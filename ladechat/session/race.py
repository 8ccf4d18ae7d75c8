"""A race: the answers of several decoders to one question, and the conclusions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ladechat import catalog
from ladechat.protocol import Ready, ServerInfo, Settings, Step, TurnFinished, TurnStarted, credible_speedup, one_by_one
from ladechat.session.recordings.recorder import SUFFIX
from ladechat.session.recordings.recording import Recording

PLAIN = "autoregressive"
"""Plain decoding: the reference for passes saved and times."""
NEAR_TIE = 0.25
"""The largest gap between log-probabilities that rounding can swap: two steps of bfloat16, for logits from 16 to 32."""
AUTO = "auto"
LEAST_LOSS = 1.05
"""The lead of another decoder from which on `auto` has lost; less may be chance."""
DISTURBED = "No speeds: something else kept this machine busy, plain passes took longer than wide ones. Race again."


@dataclass
class Lane:
    """A decoder in a race, and its measured steps.

    Attributes:
        name, label: the name and label of the decoder.
        settings: the settings of its answer; None before it has started.
        steps: in order.
        finished: the end of its answer; None while it is measured, or if the engine broke off.
        server: the server that has answered; None: this machine has.
    """

    name: str
    label: str
    settings: Settings | None = None
    steps: list[Step] = field(default_factory=list)
    finished: TurnFinished | None = None
    server: ServerInfo | None = None

    def finish(self, event: TurnFinished) -> None:
        """Take the end of the answer, which may tell that some steps held several passes."""
        self.finished = event
        self.steps = one_by_one(self.steps, event.pass_tokens)

    @property
    def passes(self) -> int | None:
        """The number of forward passes; None if a server does not tell them."""
        return len(self.steps) if self.server is None or self.server.passes else None

    @property
    def tokens(self) -> int | None:
        """The number of tokens; None if a server does not tell it."""
        if self.passes is not None:
            return len(self.token_ids)
        return None if self.finished is None or self.finished.server is None else self.finished.server.tokens

    @property
    def timed_tokens(self) -> int | None:
        """The number of tokens whose time `seconds` has: those that came with a server's first answer are not."""
        tokens, untimed = self.tokens, 0 if self.finished is None else self.finished.untimed_tokens
        return None if tokens is None else max(0, tokens - untimed)

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(piece for step in self.steps for piece in step.pieces)

    @property
    def token_ids(self) -> list[int]:
        """The token ids of the answer."""
        return [token for step in self.steps for token in step.token_ids]

    @property
    def seconds(self) -> float:
        """The time of its steps on this machine, without prefill."""
        return sum(step.timing.step_ms for step in self.steps) / 1000

    @property
    def whole(self) -> bool:
        """Whether the answer came to an end of its own."""
        return self.finished is not None and self.finished.reason in ("eos", "max_new_tokens", "context")

    def token(self, place: int) -> tuple[str, float]:
        """Return the text and the log-probability of a token of the answer."""
        each = ((text, log) for step in self.steps for text, log in zip(step.pieces, step.logprobs, strict=True))
        return list(each)[place]


# --- conclusions ------------------------------------------------------------------------------------------------------


def conclusions(lanes: Sequence[Lane]) -> list[str]:
    """Return the closing lines: exactness check, passes saved, measured times; without those that are not known."""
    lines = (seal(lanes), passes_saved(lanes), measured_time(lanes), why_auto_lost(lanes))
    return [sentence for sentence in lines if sentence]


def seal(lanes: Sequence[Lane]) -> str:
    """Return the exactness check: whether all answers are equal as far as measured, else where they first differ."""
    measured = [lane for lane in lanes if lane.steps]
    if len(measured) < 2:
        return "Nothing to compare: fewer than two decoders have answered."
    if any(lane.server is not None and not lane.server.token_ids for lane in measured):
        return _same_text(measured)
    reference = next((lane for lane in measured if lane.name == PLAIN), measured[0])
    others = [lane for lane in measured if lane is not reference]
    found = [(place, lane) for lane in others if (place := first_difference(reference, lane)) is not None]
    if found:
        return _described(*min(found, key=lambda each: each[0]), reference)
    same = min(len(lane.token_ids) for lane in measured)
    if all(lane.whole for lane in measured):
        return f"✓ {same:,} of {same:,} tokens identical"
    return f"The first {same:,} tokens are identical; no more was measured of every decoder."


def _same_text(lanes: Sequence[Lane]) -> str:
    """Return whether answers are equal whose tokens are not reported."""
    texts = [lane.text for lane in lanes]
    longest = max(map(len, texts))
    same = next((place for place, signs in enumerate(zip(*texts, strict=False)) if len(set(signs)) > 1), None)
    same = min(map(len, texts)) if same is None else same
    if same == longest:
        return f"✓ {same:,} of {same:,} characters identical"
    return f"✗ The first difference is after {same:,} characters."


def first_difference(one: Lane, other: Lane) -> int | None:
    """Return the index of the first token that differs, or that a complete answer lacks; None if there is none."""
    mine, theirs = one.token_ids, other.token_ids
    for place, (left, right) in enumerate(zip(mine, theirs, strict=False)):
        if left != right:
            return place
    shorter = one if len(mine) < len(theirs) else other
    return len(shorter.token_ids) if len(mine) != len(theirs) and shorter.whole else None


def _described(place: int, lane: Lane, reference: Lane) -> str:
    """Describe a difference: both tokens with their probabilities, and whether these nearly tie.

    For sampled tokens, or probabilities that are changed before the choice, a near tie explains nothing.
    """
    where = f"✗ The first difference is at token {place + 1:,}"
    for short, long in ((lane, reference), (reference, lane)):
        if place >= len(short.token_ids):
            return f"{where}: {short.label} ends before it, {long.label} goes on with {_quoted(long.token(place))}."
    sentence = f"{where}: {_written_at(reference, place)}, {_written_at(lane, place)}"
    settings = lane.settings
    if settings is None or settings.temperature or settings.repetition_penalty != 1:
        return f"{sentence}."
    apart = abs(reference.token(place)[1] - lane.token(place)[1])
    return f"{sentence}: {'a near tie' if apart <= NEAR_TIE else 'no near tie'}."


def _written_at(lane: Lane, place: int) -> str:
    return f"{lane.label} has {_quoted(lane.token(place))}"


def _quoted(token: tuple[str, float]) -> str:
    text, log = token
    return f"“{text}” ({100 * math.exp(log):.1f} %)"


def passes_saved(lanes: Sequence[Lane]) -> str:
    """Return the passes that each decoder saved, the most first; "" if none was compared."""
    whole = [lane for lane in lanes if lane.whole and lane.name != PLAIN]
    saved = sorted(((len(lane.token_ids) - len(lane.steps), lane) for lane in whole), key=lambda each: -each[0])
    lengths = {len(lane.token_ids) for lane in whole}
    if len(lengths) == 1:
        return f"Passes saved of {lengths.pop():,}: " + " · ".join(f"{lane.label} {count:,}" for count, lane in saved)
    each = (f"{lane.label} {count:,} of {len(lane.token_ids):,}" for count, lane in saved)
    return f"Passes saved: {' · '.join(each)}" if saved else ""


def speedup(lane: Lane, lanes: Sequence[Lane]) -> float | None:
    """Return a lane's tokens per second relative to plain decoding.

    None unless both have complete answers, and if any lane is faster than its passes explain: then something
    disturbed the machine, and no time can be compared.
    """
    return None if disturbed(lanes) else _ratio(lane, lanes)


def disturbed(lanes: Sequence[Lane]) -> bool:
    """Return whether a lane is faster than its passes explain."""
    known = [(lane, times) for lane in lanes if (times := _ratio(lane, lanes)) is not None]
    return any(credible_speedup(times, len(lane.token_ids) / len(lane.steps)) is None for lane, times in known)


def _ratio(lane: Lane, lanes: Sequence[Lane]) -> float | None:
    plain = _plain(lanes)
    if plain is None or not lane.whole or not lane.seconds or not plain.seconds:
        return None
    return len(lane.token_ids) / lane.seconds / (len(plain.token_ids) / plain.seconds)


def _plain(lanes: Sequence[Lane]) -> Lane | None:
    return next((lane for lane in lanes if lane.name == PLAIN and lane.whole), None)


def measured_time(lanes: Sequence[Lane]) -> str:
    """Return tokens a pass ÷ cost of a pass = speed on this machine, the fastest first; "" if it is not known."""
    if disturbed(lanes):
        return DISTURBED
    known = [(lane, times) for lane in lanes if lane.name != PLAIN and (times := speedup(lane, lanes)) is not None]
    each = (f"{lane.label} {_gain(lane, times)}" for lane, times in sorted(known, key=lambda each: -each[1]))
    return f"Tokens a pass ÷ cost of a pass = speed, plain 1×: {' · '.join(each)}" if known else ""


def _gain(lane: Lane, times: float) -> str:
    per_pass = len(lane.token_ids) / len(lane.steps)
    tokens, cost = f"{per_pass:.2f}", f"{per_pass / times:.2f}"
    return f"{tokens} ÷ {cost} ≈ {float(tokens) / float(cost):.2f}×"


def why_auto_lost(lanes: Sequence[Lane]) -> str:
    """Return what the drafts of `auto` cost and brought, if another decoder was clearly faster; else ""."""
    auto, plain = next((lane for lane in lanes if lane.name == AUTO), None), _plain(lanes)
    own = None if auto is None else speedup(auto, lanes)
    best = max((times for lane in lanes if (times := speedup(lane, lanes)) is not None), default=0.0)
    if auto is None or plain is None or own is None or best <= LEAST_LOSS * own:
        return ""
    drafted = [step for step in auto.steps if step.timing.slots > 1]
    text = (
        f"Why {auto.label} lost: it learns while it decodes what drafts bring here. {len(drafted):,} of its "
        f"{len(auto.steps):,} passes had drafts"
    )
    if not drafted:
        return f"{text}."
    cost = sum(step.timing.step_ms for step in drafted) / len(drafted) / (1000 * plain.seconds / len(plain.steps))
    tokens = sum(len(step.token_ids) for step in drafted) / len(drafted)
    return f"{text}: such a pass took {cost:.1f} plain ones and brought {tokens:.1f} tokens."


# --- two recordings side by side --------------------------------------------------------------------------------------


class NothingToCompare(ValueError):
    """The reason why nothing can be shown side by side, in a sentence."""


@dataclass(frozen=True)
class Answer:
    """An answer in a recording."""

    turn: int
    question: str
    model: str
    lane: Lane


class Comparison:
    """The latest question that both recordings have answered; if there is none, the last answer of each.

    Attributes:
        lanes: one per recording.
        question: the common question; else both questions, with the names of the recordings.

    Raises:
        NothingToCompare: a recording has no answer.
    """

    def __init__(self, one: Recording, other: Recording) -> None:
        ones, others = _answers(one), _answers(other)
        asked = {answer.question for answer in ones} & {answer.question for answer in others}
        self._same_question = bool(asked)
        left, right = ([answer for answer in each if not asked or answer.question in asked] for each in (ones, others))
        first = left[-1]
        second = next((answer for answer in reversed(right) if answer.question == first.question), right[-1])
        self._same_model = first.model == second.model
        self.lanes = [first.lane, second.lane]
        named = [f"{_name(one)}: {first.question}", f"{_name(other)}: {second.question}"]
        self.question = first.question if asked else " · ".join(named)

    def conclusions(self) -> list[str]:
        """Return the closing lines. Times of two sessions are not compared: they may be from two machines."""
        if not self._same_question:
            compared = "The questions differ, so the answers are not compared."
        elif not self._same_model:
            compared = "Two models have answered, so their tokens are not compared."
        else:
            compared = seal(self.lanes)
        return [sentence for sentence in (compared, passes_saved(self.lanes)) if sentence]


def _answers(recording: Recording) -> list[Answer]:
    """Return the answers that have steps, in order, without those whose start was not recorded."""
    answers: list[Answer] = []
    latest: Answer | None = None
    labels = {name: info.label for name, info in catalog.DECODERS.items()}
    model = recording.header.model
    for event in recording.events:
        match event:
            case Ready():
                model = event.model
                labels |= {info.name: info.label for info in event.decoders}
            case TurnStarted() if event.goes_on:
                latest = next((answer for answer in reversed(answers) if answer.turn == event.turn), None)
            case TurnStarted():
                name = event.settings.decoder
                lane = Lane(name, f"{labels.get(name, name)} ({_name(recording)})", event.settings)
                latest = Answer(event.turn, event.question.strip(), model, lane)
                answers.append(latest)
            case Step() if latest is not None:
                latest.lane.steps.append(event)
            case TurnFinished() if latest is not None:
                latest.lane.finish(event)
    answers = [answer for answer in answers if answer.lane.steps]
    if not answers:
        raise NothingToCompare(f"{recording.path} has no answer, so there is nothing to be shown beside the other.")
    return answers


def _name(recording: Recording) -> str:
    return recording.path.name.removesuffix(SUFFIX)
