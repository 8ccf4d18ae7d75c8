"""Sessions step by step: who steps when, and that nothing but the own steps is timed."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.speed_round import read, write
from benchmarks.taking_turns import Stepping, take_turns
from ladechat.bench.prompts import Prompt
from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Limits, Step
from ladechat.model.eager import EagerRunner
from ladechat.model.loading import LoadedModel
from tests.bench.made_up import Scripted

LIMITS = Limits(12)
PROMPTS = [Prompt("code", "one", [7], ()), Prompt("code", "two", [8], ())]


@dataclass
class Clock:
    """What time it is, and who has taken a step so far."""

    now: float = 0.0
    log: list[str] = field(default_factory=list)


class Empty:
    """A runner that nothing is asked of but to forget."""

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        yield from ()


@dataclass
class Walker:
    """A decoder that takes so many steps of so many seconds, and works on behind the last one."""

    name: str
    clock: Clock
    steps: int
    seconds: float

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        for number in range(self.steps):
            self.clock.now += self.seconds
            self.clock.log.append(self.name)
            yield Step((prompt[0], number), (0.0, 0.0), ("model", "model"), 1, 0, self.seconds)
        self.clock.now += 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made_up = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: made_up.now)
    return made_up


def stepping(clock: Clock, name: str, steps: int, seconds: float) -> Stepping:
    return Stepping(name, cast(Runner, Empty()), lambda _: Walker(name, clock, steps, seconds))


def test_between_two_steps_of_one_all_others_take_theirs(clock: Clock) -> None:
    names = ("a", "b", "c")
    take_turns([stepping(clock, name, 5, 1.0) for name in names], [], PROMPTS, LIMITS, number=0)
    lots = [clock.log[start : start + 3] for start in range(0, len(clock.log), 3)]
    assert len(lots) == 10 and all(sorted(lot) == sorted(names) for lot in lots)
    assert len({tuple(lot) for lot in lots}) > 1, "who follows whom is always the same"


def test_who_needs_fewer_steps_does_not_wait_with_the_next_prompt(clock: Clock) -> None:
    take_turns([stepping(clock, "slow", 6, 1.0), stepping(clock, "fast", 2, 1.0)], [], PROMPTS, LIMITS, number=0)
    assert "fast" not in clock.log[8:]


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

    some = [stepping(clock, "plain", 3, 1.0), stepping(clock, "faster", 2, 1.0)]
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
    rounds = [
        take_turns([stepping(clock, name, 3, 1.0)], [], PROMPTS, LIMITS, number=0) for name in ("eager", "compiled")
    ]
    write(rounds, tmp_path / "answers.json")
    for one, other in zip(read(tmp_path / "answers.json"), rounds, strict=True):
        assert one.keys() == other.keys()
        for name, answers in one.items():
            assert [(each.tokens, each.passes, each.rest_seconds) for each in answers] == [
                (each.tokens, each.passes, each.rest_seconds) for each in other[name]
            ]
