"""Rounds of the benchmark of speed: who steps when, that nothing but the own steps is timed, and a round as a whole."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import speed_prompts, speed_round
from benchmarks.speed_contenders import BASE, BESIDE_COMPILED, COMPILED_IN_TURNS, IN_TURNS, SHOWN, Through
from benchmarks.taking_turns import Stepping, take_turns
from ladechat.bench.prompts import Prompt
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Limits, Origin, Step
from ladechat.decoder.verify_mask import StepLayout
from ladechat.model.eager import EagerRunner
from ladechat.model.loading import LoadedModel
from tests.bench.made_up import Scripted

LIMITS = Limits(12)
NAMES, FEW = ("chat 1", "chat 2", "code 1", "random 0"), list[Prompt]()
PROMPTS = [Prompt("code", "one", [7], ()), Prompt("code", "two", [8], ())]


@dataclass
class Clock:
    """What time it is, and who has taken a step so far."""

    now: float = 0.0
    log: list[str] = field(default_factory=list)


@dataclass
class Empty:
    """A runner that nothing is asked of but to forget, which takes a while."""

    clock: Clock

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        self.clock.now += 100
        yield from ()


@dataclass
class Walker:
    """A decoder that takes so many steps of so many seconds and tokens, and works on behind the last one."""

    name: str
    clock: Clock
    steps: int
    seconds: float
    tokens: int = 2

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        for number in range(self.steps):
            self.clock.now += self.seconds
            self.clock.log.append(self.name)
            written = (prompt[0], *[number] * (self.tokens - 1))
            origins: list[Origin] = ["model"] * self.tokens
            yield Step(written, (0.0,) * self.tokens, tuple(origins), 1, 0, self.seconds)
        self.clock.now += 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made_up = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: made_up.now)
    return made_up


def stepping(clock: Clock, name: str, steps: int, seconds: float = 1.0, tokens: int = 2) -> Stepping:
    return Stepping(name, cast(Runner, Empty(clock)), lambda _: Walker(name, clock, steps, seconds, tokens))


def test_between_two_steps_of_one_all_others_take_theirs(clock: Clock) -> None:
    names = ("a", "b", "c")
    take_turns([stepping(clock, name, 5) for name in names], [], PROMPTS, LIMITS, number=0)
    lots = [clock.log[start : start + 3] for start in range(0, len(clock.log), 3)]
    assert len(lots) == 10 and all(sorted(lot) == sorted(names) for lot in lots)
    assert len({tuple(lot) for lot in lots}) > 1, "who follows whom is always the same"


def test_all_are_at_the_same_place_of_the_text_however_many_tokens_their_steps_bring(clock: Clock) -> None:
    bring = {"plain": 1, "some": 3, "many": 6}
    some = [stepping(clock, name, 12 // tokens, tokens=tokens) for name, tokens in bring.items()]
    take_turns(some, [], PROMPTS, LIMITS, number=0)
    emitted = dict.fromkeys(bring, 0)
    for name in clock.log:
        assert emitted[name] == min(emitted.values())
        emitted[name] += bring[name]
    assert set(emitted.values()) == {24}


def test_a_turn_is_over_with_the_first_step_behind_its_seconds(clock: Clock) -> None:
    some = [stepping(clock, "one", 6, 1.0), stepping(clock, "other", 6, 1.0)]
    for each in some:
        each.turn_seconds = 2.5
    take_turns(some, [], PROMPTS, LIMITS, number=0)
    turns = [list(steps) for _, steps in groupby(clock.log)]
    assert {len(turn) for turn in turns[:-1]} <= {3, 6} and len(clock.log) == 24


def test_a_turn_begins_anew_with_each_answer(clock: Clock) -> None:
    one = stepping(clock, "one", 4, 1.0)
    one.turn_seconds = 2.5
    assert [len(clock.log) for _ in one.session(PROMPTS, LIMITS)] == [3, 4, 7, 8]


def test_a_decoder_is_made_once_for_all_prompts_of_a_session_and_anew_for_the_next(clock: Clock) -> None:
    made = list[Walker]()

    def make(_: Runner) -> Walker:
        made.append(Walker("one", clock, 2, 1.0))
        return made[-1]

    one = Stepping("one", cast(Runner, Empty(clock)), make)
    for sessions in (1, 2):
        assert len(take_turns([one], [], PROMPTS, LIMITS, number=0)["one"]) == len(PROMPTS)
        assert len(made) == sessions


def test_only_the_own_steps_are_timed_and_the_first_one_apart(clock: Clock) -> None:
    found = take_turns(
        [stepping(clock, "one", 3, 1.0), stepping(clock, "other", 4, 5.0)], [], PROMPTS, LIMITS, number=0
    )
    for name, steps, seconds in (("one", 3, 1.0), ("other", 4, 5.0)):
        for prompt, answer in zip(PROMPTS, found[name], strict=True):
            assert answer.tokens == tuple(token for number in range(steps) for token in (prompt.token_ids[0], number))
            assert (answer.first_tokens, answer.passes) == (2, steps)
            assert (answer.first_seconds, answer.rest_seconds) == (seconds, (steps - 1) * seconds)


def test_who_answers_in_one_go_does_so_when_the_first_is_done_with_a_prompt(clock: Clock) -> None:
    log: list[tuple[str, int]] = []

    class Told(Scripted):
        def answer(self, prompt: list[int], limits: Limits) -> Any:
            clock.log.append(f"whole {prompt[0]}")
            return super().answer(prompt, limits)

    some = [stepping(clock, "plain", 3), stepping(clock, "faster", 2, tokens=3)]
    found = take_turns(some, [Told("whole", log)], PROMPTS, LIMITS, number=0)
    assert [prompt for _, prompt in log] == [7, 8] and len(found["whole"]) == 2
    assert clock.log[: clock.log.index("whole 7")].count("plain") == 3
    assert clock.log[: clock.log.index("whole 8")].count("plain") == 6


def test_in_turns_all_write_what_plain_decoding_does(loaded: LoadedModel) -> None:
    texts = ("the pool keeps", "n-grams of the pool, the window")
    prompts = [Prompt("code", text, list(loaded.tokenizer.encode(text)), ()) for text in texts]

    def runner() -> EagerRunner:
        return EagerRunner(loaded.runner.model, loaded.runner.context_length)

    some = [
        Stepping("plain", runner(), AutoregressiveDecoder),
        Stepping("lookahead", runner(), LookaheadDecoder),
    ]
    found = take_turns(some, [], prompts, LIMITS, number=1)
    assert [answer.tokens for answer in found["lookahead"]] == [answer.tokens for answer in found["plain"]]
    assert all(answer.passes == LIMITS.max_new_tokens for answer in found["plain"])


def test_answers_of_a_round_are_read_as_they_were_written(clock: Clock, tmp_path: Path) -> None:
    found = take_turns([stepping(clock, name, 3) for name in ("plain", "auto")], [], PROMPTS, LIMITS, number=0)
    found["plain"][0] = replace(found["plain"][0], tested={"window": 2}, accepted={"window": 1})
    speed_round.write(found, tmp_path / "answers.json")
    assert speed_round.read(tmp_path / "answers.json") == {
        name: [replace(answer, tested=None, accepted={}) for answer in answers] for name, answers in found.items()
    }


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all prompts these: two of a kind, one of another, one without sense."""
    monkeypatch.setattr(speed_round, "prompts_of", few_prompts)
    monkeypatch.setattr(speed_prompts, "LIMIT", 6)
    monkeypatch.setattr(speed_round, "LIMIT", 6)


def few_prompts(loaded: LoadedModel) -> list[Prompt]:
    """Made once: all of these tests have the same model, and it takes seconds."""
    if not FEW:
        FEW.extend(one for one in speed_prompts.prompts_of(loaded) if one.name in NAMES)
    return FEW


class Asked:
    """Passes that leave each to the model itself, and write down of how many slots it was."""

    def __init__(self) -> None:
        self.sizes, self.slots = [1, 2], set[int]()

    def look(self) -> None:
        pass

    def forward(self, layout: StepLayout, *_: object) -> None:
        self.slots.add(len(layout))

    def read(self, _: object) -> None:
        pass

    def prepare(self) -> None:
        pass

    def rest(self) -> None:
        pass


def run(checkpoint: Path, answers: Path, monkeypatch: pytest.MonkeyPatch, *, compiled: bool = False) -> None:
    options = speed_round.Options(
        str(checkpoint), number=1, compiled=compiled, grid=False, reference=None, answers=str(answers)
    )
    monkeypatch.setattr(sys, "argv", ["speed_round", json.dumps(asdict(options))])
    speed_round.main()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("compiled", [False, True])
def test_a_round_leaves_the_answers_of_all_to_all_prompts_in_order(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: LoadedModel, compiled: bool
) -> None:
    passes = Asked()
    monkeypatch.setattr(speed_round, "passes_of", lambda _: {"eager": None, "compiled": passes})
    run(checkpoint, tmp_path / "answers.json", monkeypatch, compiled=compiled)
    found = speed_round.read(tmp_path / "answers.json")
    base, ways = (BESIDE_COMPILED, ("compiled", COMPILED_IN_TURNS)) if compiled else (BASE, ("eager", IN_TURNS))
    assert list(found) == [base, *(f"{name}, {way}" for way in ways for name in SHOWN)]
    assert ({1, 2} <= passes.slots) == compiled
    expected = [prompt.expected for prompt in few_prompts(loaded)]
    assert all([answer.tokens for answer in answers] == expected for answers in found.values())


@pytest.mark.usefixtures("few")
def test_a_decoder_that_writes_something_else_ends_the_round(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slip(self: LookaheadDecoder, *_: object) -> Iterator[Step]:
        yield Step((1,), (0.0,), ("model",), 1, 0, 0.1)

    monkeypatch.setattr(LookaheadDecoder, "run", slip)
    with pytest.raises(AssertionError, match="lookahead"):
        run(checkpoint, tmp_path / "answers.json", monkeypatch)
    assert not (tmp_path / "answers.json").exists()


def test_in_one_go_a_session_begins_with_its_first_prompt(loaded: LoadedModel, clock: Clock) -> None:
    made = list[Walker]()

    def make(_: Runner) -> Walker:
        made.append(Walker("one", clock, 2, 1.0))
        return made[-1]

    through = Through("one", loaded, make, begins={(7,)})
    for token, sessions in ((7, 1), (8, 1), (9, 1), (7, 2), (8, 2)):
        assert through.answer([token], LIMITS).tokens[0] == token
        assert len(made) == sessions
