"""After anything that was done with it, a conversation shows what a new one shows that is told the same."""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, strategies as st
from textual.app import App
from textual.pilot import Pilot
from textual.selection import Selection
from textual.strip import Strip

from ladechat.protocol import Step
from ladechat.widgets.flow import PLAIN
from ladechat.widgets.transcript.block import LINES_BEFORE_FOLDING, Blocks, Kind
from ladechat.widgets.transcript.transcript import Transcript
from ladechat.widgets.transcript.whole import WholeMessage
from tests.widgets.sample_steps import step

Result = TypeVar("Result")

HEIGHT = 60
"""What is beyond is not drawn: that would take most of the time."""
WIDTHS = (20, 40)
PIECES = ("# Pools\n\n", "**n-grams** ", "of a pass\n", "- one\n", "\n", "`code` ", "漢字 ", "```\nlist", "\n```\n")
LONG_QUESTION = "\n".join(f"line {number}" for number in range(LINES_BEFORE_FOLDING + 1))
ALL = Selection(None, None)
OPERATIONS = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(("**Why?**", LONG_QUESTION))),
    st.tuples(st.just("answer"), st.none()),
    st.tuples(st.just("notice"), st.none()),
    st.tuples(st.just("open"), st.integers(0, 6)),
    st.tuples(st.just("add"), st.sampled_from(PIECES)),
    st.tuples(st.just("steps"), st.lists(st.sampled_from(PIECES), min_size=1, max_size=4)),
    st.tuples(st.just("keep"), st.integers(0, 6)),
    st.tuples(st.just("format"), st.booleans()),
    st.tuples(st.just("due"), st.none()),
    st.tuples(st.just("mark"), st.integers(0, 9)),
    st.tuples(st.just("unmark"), st.none()),
    st.tuples(st.just("fold"), st.none()),
    st.tuples(st.just("resize"), st.sampled_from(WIDTHS)),
    st.tuples(st.just("find"), st.sampled_from(("n-grams", "Why", "line 2"))),
)


@dataclass
class Message:
    """One message or notice: what was added to it, as text or as steps."""

    kind: Kind
    name: str
    parts: list[str | list[Step]] = field(default_factory=list)

    @property
    def foldable(self) -> bool:
        return self.parts == [LONG_QUESTION]


class Said:
    """All that makes up what a conversation shows."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.steps = 0
        self.unfolded = 0
        """Long questions among the first so many messages are unfolded."""
        self.formatted = False
        self.marked: int | None = None
        self.found = ""
        self.width = WIDTHS[-1]

    @property
    def may_wait(self) -> bool:
        """May the last message wait to be formatted?"""
        formatted = self.formatted and self.marked is None
        return formatted and bool(self.messages) and self.messages[-1].kind == "model"


class Beside(App[None]):
    """Conversations side by side."""

    CSS = "Screen { layout: horizontal; }"


class Stage:
    """One app for all sequences, which takes as long to start as many of them."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        app = Beside()
        self._running = app.run_test(size=(2 * WIDTHS[-1], HEIGHT))
        self._pilot: Pilot[None] = self.run(self._running.__aenter__())

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._runner.run(work)

    def close(self) -> None:
        self.run(self._running.__aexit__(None, None, None))
        self._runner.close()

    async def check(self, operations: list[tuple[str, Any]]) -> None:
        """Compare a conversation after these with a new one that is told what is left of them."""
        one, said = await self._new(WIDTHS[-1]), Said()
        for action, value in operations:
            await self._do(one, said, action, value)
            _shown(one)  # what is drawn now must not be shown later, where it has changed
        self._find(said)
        other = await self._new(said.width)
        last = _tell(other, said)
        start = last if said.may_wait else len(other.lines)
        assert _written(one)[:start] == _written(other)[:start]
        one._formatting.at_once_if_waiting()
        self._find(said, one, other)
        await self._pilot.pause()
        assert _written(one) == _written(other)
        assert one.get_selection(ALL) == other.get_selection(ALL)
        assert one.virtual_size.height == other.virtual_size.height == len(other.lines)
        if len(other.lines) < HEIGHT:
            assert _shown(one) == _shown(other)
        await self._pilot.app.screen.remove_children()

    async def _new(self, width: int) -> Transcript:
        transcript = Transcript()
        transcript.styles.width, transcript.styles.height = width, HEIGHT
        await self._pilot.app.mount(transcript)
        await self._pilot.pause()
        return transcript

    async def _do(self, transcript: Transcript, said: Said, action: str, value: Any) -> None:
        """Do one thing, and note it."""
        match action:
            case "ask" | "answer" | "notice":
                kinds: dict[str, Message] = {
                    "ask": Message("user", "You", [value]),
                    "answer": Message("model", "m"),
                    "notice": Message("notice", "", ["3 tokens"]),
                }
                said.messages.append(kinds[action])
                _tell_message(transcript, kinds[action])
            case "open":
                texts = [*PIECES, LONG_QUESTION][-value:] if value else []
                said.messages = [
                    Message("model" if place % 2 else "user", "m", [text]) for place, text in enumerate(texts)
                ]
                said.unfolded, said.marked = 0, None
                transcript.unmark()
                transcript.open(
                    [WholeMessage(one.kind, one.name, [(str(one.parts[0]), PLAIN)]) for one in said.messages]
                )
            case "add" if said.messages and said.messages[-1].kind == "model":
                transcript.add(value)
                said.messages[-1].parts.append(value)
            case "steps":
                steps = [step([piece], index=said.steps + place) for place, piece in enumerate(value)]
                said.steps += len(steps)
                transcript.add_steps(steps)
                if not said.messages or said.messages[-1].kind != "model":
                    said.messages.append(Message("model", ""))
                said.messages[-1].parts.append(steps)
            case "keep":
                transcript.keep(value)
                del said.messages[value:]
                said.unfolded = min(said.unfolded, value)
            case "format":
                transcript.formatted = said.formatted = value
            case "due":
                transcript._formatting.at_once_if_waiting()
            case "mark":
                transcript.mark(1, value)
                said.marked = value
            case "unmark":
                transcript.unmark()
                said.marked = None
            case "fold":
                transcript.action_fold()
                if long := [number for number, message in enumerate(said.messages) if message.foldable]:
                    said.unfolded = len(said.messages) if long[-1] >= said.unfolded else 0
            case "resize":
                transcript.styles.width = said.width = value
                await self._pilot.pause()
            case "find":
                said.found = value
                self._find(said, transcript)

    def _find(self, said: Said, *transcripts: Transcript) -> None:
        """Select the last place of what was searched for, in each of these."""
        found = {one: _last_place(one._blocks, said.found) for one in transcripts if said.found}
        self._pilot.app.screen.selections = {one: place for one, place in found.items() if place is not None}


def _last_place(blocks: Blocks, text: str) -> Selection | None:
    said = [number for number, block in enumerate(blocks) if block.kind != "notice"]
    places = (blocks[number].find(text, blocks.start(number), -1) for number in reversed(said))
    return next(filter(None, places), None)


def _tell(transcript: Transcript, said: Said) -> int:
    """Tell a new conversation all of it. The line that its last message begins with."""
    transcript.formatted = said.formatted
    start = 0
    for number, message in enumerate(said.messages):
        if number == said.unfolded:
            transcript.action_fold()
        start = transcript.virtual_size.height
        _tell_message(transcript, message)
    if said.unfolded >= len(said.messages):
        transcript.action_fold()
    transcript._formatting.at_once_if_waiting()
    if said.marked is not None:
        transcript.mark(1, said.marked)
    return start


def _tell_message(transcript: Transcript, message: Message) -> None:
    transcript.start(message.kind, message.name)
    for part in message.parts:
        if isinstance(part, str):
            transcript.add(part)
        else:
            transcript.add_steps(part)


def _written(transcript: Transcript) -> list[tuple[object, ...]]:
    return [(line.runs, line.joint, line.copied) for line in transcript.lines]


def _shown(transcript: Transcript) -> list[Strip]:
    return transcript.render_lines(transcript.size.region)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ladechat.widgets.transcript.transcript.FORMATTING_SECONDS", 1000.0)  # or when it is due
        patch.setattr("ladechat.widgets.transcript.message_lines.PAGES", 0)  # whatever can wait to be laid out waits
        stage = Stage()
        yield stage
        stage.close()


@given(st.lists(OPERATIONS, max_size=12))
@example([("format", True), ("answer", None), ("format", False), ("add", "# Pools\n\n"), ("format", True)])
def test_whatever_was_done_the_lines_are_those_of_a_new_conversation(
    stage: Stage, operations: list[tuple[str, Any]]
) -> None:
    stage.run(stage.check(operations))
