"""A pytest plugin: every call of `generate` is made twice, the second time through the door, and compared.

``make test-peers DIR=folder`` runs the tests of a folder with it. The tests get what transformers itself returned, so
they pass or fail as they would. Where there are several rows, the first of them is compared alone, too. At the end
stands what came of the second calls. The run fails if one of them differed or crashed. The folder's tests are somebody
else's, as those of transformers; nothing of them is kept here.
"""

import copy
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unittest.mock import patch

import pytest
import torch
from transformers import GenerationMixin

from ladechat import lookahead_generate

PassResult = Literal["equal", "own loop", "refused", "different", "crashed", "not compared"]
MEANINGS: dict[PassResult, str] = {
    "equal": "by lookahead decoding: the same sequences, scores and random numbers",
    "own loop": "handed on to the model's own loop, with a warning: the same",
    "refused": "a ValueError with a sentence",
    "different": "another text, other scores or other random numbers",
    "crashed": "another exception",
    "not compared": "transformers itself raised",
}
WRONG = ("different", "crashed")
OWN_LOOP = "transformers' own loop"
NEEDED = (
    "transformers' tests need the rest of their checkout, at the version that is installed, and two packages: "
    f"{sys.executable} -m pip install parameterized datasets"
)
NO_MODULE = re.compile(r"No module named '([\w.]+)'")
CLOSE = {"atol": 1e-3, "rtol": 1e-3}


class Call(NamedTuple):
    """What came of one call, and in which test."""

    test: str
    outcome: PassResult
    detail: str


@dataclass(eq=False)
class Twice:
    """The plugin: patches `GenerationMixin.generate` for the time of a run."""

    summary: Path | None = None
    calls: list[Call] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    test: str = ""
    _inside: bool = False

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Make every outermost call twice."""
        plainly = GenerationMixin.generate

        @wraps(plainly)
        def twice(model: Any, *arguments: Any, **options: Any) -> Any:
            if self._inside or options.get("custom_generate") is not None:
                return plainly(model, *arguments, **options)
            self._inside = True
            try:
                return self._both(plainly, model, arguments, options)
            finally:
                self._inside = False

        with patch.object(GenerationMixin, "generate", twice):
            yield

    def _both(self, plainly: Any, model: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        before = torch.get_rng_state()
        kept = copied(arguments), copied(options)
        try:
            expected = plainly(model, *arguments, **options)
        except Exception as error:
            self._note("not compared", error)
            raise
        after = torch.get_rng_state()
        torch.set_rng_state(before)
        alone = copied(kept) if len(sequences_of(expected)) > 1 else None
        self._note(*self._second(partial(plainly, model), *kept, expected, after))
        if alone is not None:
            self._first_row(partial(plainly, model), *alone)
        torch.set_rng_state(after)
        return expected

    def _second(
        self, generate: Any, arguments: tuple[Any, ...], options: dict[str, Any], expected: Any, after: torch.Tensor
    ) -> tuple[PassResult, object]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                result = generate(*arguments, **options, custom_generate=lookahead_generate)
            except ValueError as error:
                return "refused", error
            except Exception as error:
                return "crashed", error
        reasons = [one for one in (str(warning.message) for warning in said) if OWN_LOOP in one]
        difference = first_difference(result, expected)
        if difference is None and not torch.equal(torch.get_rng_state(), after):
            difference = "the random numbers after it"
        if difference:
            return "different", difference
        return ("own loop", reasons[0].partition(": ")[2]) if reasons else ("equal", "")

    def _first_row(self, generate: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Rows go to the model's own loop; so the first of them is compared alone, too, all of it seen."""
        rows = next((len(one) for one in (*arguments, *options.values()) if isinstance(one, torch.Tensor)), 1)
        if rows == 1:
            return
        alone = [
            (
                tuple(first_of(one, rows) for one in copied(arguments)),
                {name: first_of(one, rows) for name, one in copied(options).items() if name != "attention_mask"},
            )
            for _ in range(2)
        ]
        before = torch.get_rng_state()
        try:
            expected = generate(*alone[0][0], **alone[0][1])
        except Exception:  # what is asked of several rows need not be possible with one
            return
        after = torch.get_rng_state()
        torch.set_rng_state(before)
        outcome, detail = self._second(generate, *alone[1], expected, after)
        self._note(outcome, detail)

    def _note(self, outcome: PassResult, detail: object) -> None:
        in_a_line = " ".join(f"{type(detail).__name__}: {detail}".split()) if isinstance(detail, Exception) else detail
        self.calls.append(Call(self.test, outcome, str(in_a_line)[:300]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid
        with self.patched():
            return (yield)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.missing |= {name.partition(".")[0] for name in NO_MODULE.findall(str(report.longrepr or ""))}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if any(call.outcome in WRONG for call in self.calls):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.summary is not None:
            self.summary.write_text(json.dumps([call._asdict() for call in self.calls], indent=1))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        counts = Counter(call.outcome for call in self.calls)
        terminalreporter.section("generate, twice")
        for outcome, meaning in MEANINGS.items():
            terminalreporter.write_line(f"{counts[outcome]:7,}  {outcome:12}  {meaning}")
        for call in self.calls:
            if call.outcome in WRONG:
                terminalreporter.write_line(f"{call.outcome}: {call.test}: {call.detail}")
        for outcome in ("own loop", "refused"):
            reasons = Counter(call.detail for call in self.calls if call.outcome == outcome)
            for reason, count in reasons.most_common(20):
                terminalreporter.write_line(f"{outcome}, {count:,} times: {reason}")
        if self.missing:
            names = " ".join(sorted(self.missing))
            terminalreporter.write_line(f"Not all ran: what they import is not here: {names}. {NEEDED}")


def copied(value: Any) -> Any:
    """A copy that shares no state with what was given, but for models; the thing itself where it cannot be copied."""
    if isinstance(value, torch.nn.Module):
        return value
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and type(value).__module__ == "builtins":
        return type(value)(copied(one) for one in value)
    try:
        return copy.deepcopy(value)
    except Exception:  # of a lock, a thread, a generator
        return value


def first_of(value: Any, rows: int) -> Any:
    """The first row of a tensor that has so many; anything else as it is."""
    return value[:1] if isinstance(value, torch.Tensor) and len(value.shape) and len(value) == rows else value


def sequences_of(result: Any) -> torch.Tensor:
    """The texts of a result, whatever it has besides."""
    found: torch.Tensor = result if isinstance(result, torch.Tensor) else result.sequences
    return found


def first_difference(result: Any, expected: Any) -> str | None:
    """What differs; scores only where a row has not ended (NaN), and by more than rounding."""
    if not torch.equal(sequences_of(result), sequences_of(expected)):
        return f"sequences: {sequences_of(result).tolist()} and not {sequences_of(expected).tolist()}"
    for name in ("scores", "logits"):
        ours, theirs = getattr(result, name, None) or (), getattr(expected, name, None) or ()
        if len(ours) != len(theirs):
            return f"{name}: {len(ours)} steps and not {len(theirs)}"
        for mine, other in zip(ours, theirs, strict=True):
            running = ~mine.isnan().all(dim=-1)
            if not torch.allclose(mine[running], other[running], **CLOSE, equal_nan=True):
                return name
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--twice-summary", type=Path, metavar="FILE", help="write what came of each call, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Twice(config.getoption("--twice-summary")), "generate twice")
