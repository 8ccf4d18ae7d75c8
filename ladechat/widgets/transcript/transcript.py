"""The conversation, each token in the colour of the step that emitted it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, takewhile
from operator import itemgetter
from typing import ClassVar, Literal

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive

from ladechat import protocol
from ladechat.own_keys import with_own_keys
from ladechat.palette import MARKUP, Palette
from ladechat.widgets.flow import PLAIN, Ink, Run, ink_at
from ladechat.widgets.formatting import is_own
from ladechat.widgets.later import Throttle
from ladechat.widgets.steps.answer_steps import StepPointedAt
from ladechat.widgets.steps.thinking import Thinking
from ladechat.widgets.transcript.block import FOLD_KEY, Block, Kind
from ladechat.widgets.transcript.message_lines import ROWS_AROUND_MARK, MessageLines
from ladechat.widgets.transcript.whole import THINKS, WholeMessage
from ladechat.widgets.units import PASS

FORMATTING_SECONDS = 0.25
"""Minimum time between two formattings of an answer that is being written, in seconds."""
SHARE_FOR_FORMATTING = 0.2
"""Maximum share of the time for formatting: a block that takes long is formatted less often."""
NEW_BELOW = " ↓ more below · End "
BELOW_MARK = " ↓ more below "
"""Shown while a step is marked, when End shows the answer's last step."""

NO_TOKENS = "Formatted text has no tokens to click: Ctrl+G shows them."


@dataclass
class QuestionPointedAt(Message):
    """The user has clicked question number `block` of the messages; `by`: the arrow to the variant so many on, or 0."""

    block: int
    by: int


class Transcript(MessageLines):
    """The whole conversation.

    It follows its end until the user scrolls up; then a mark at the bottom says that there is more.
    """

    DEFAULT_CSS = """
    Transcript > .transcript--label { text-style: bold; color: $text-muted; }
    Transcript > .transcript--user { text-style: bold; color: $foreground; }
    Transcript > .transcript--muted { color: $text-muted; }
    Transcript > .transcript--mark { color: $text-muted; }
    Transcript > .transcript--comment { color: $text-muted; text-style: italic; }
    Transcript > .transcript--offer { color: $foreground; }
    Transcript > .transcript--alert { color: $text-error; }
    Transcript > .transcript--marked { background: $block-cursor-background; color: $block-cursor-foreground; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"transcript--{part}" for part in ("label", "user", "muted", "mark", "comment", "offer", "alert", "marked")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("end", "scroll_to_end", "To the end", show=False, id="transcript.end"),
    ]

    palette: reactive[Palette] = reactive(Palette)
    formatted: reactive[bool] = reactive(False)
    """Whether answers are formatted as Markdown. If not, or while a step is marked, they have the steps' colours."""

    class FormattedClicked(Message):
        """The user has clicked a formatted answer whose steps are known."""

    @dataclass
    class Picked(Message):
        """The user has clicked an offered question: `text`."""

        text: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._offered: Sequence[str] = ()
        self._formatting = Throttle(self, self._format, FORMATTING_SECONDS, share=SHARE_FOR_FORMATTING)
        self._marked: tuple[int, int] | None = None
        self._followed = True
        self._below: list[Block] = []
        """Notices that were below an answer that is being continued; they return when it ends."""
        self.more_below = NEW_BELOW
        self.unit, self._thinking = PASS, Thinking()
        self._going_on: tuple[int, tuple[int, int]] | None = None
        """The block of the answer being continued, and its extent before; None once the continuation is settled."""

    def on_mount(self) -> None:
        self.anchor()

    # --- content ------------------------------------------------------------------------------------------------------

    def start(self, kind: Kind, name: str = "") -> None:
        """Begin a message or a notice, to which following text is added."""
        if not self._wrapped_width:  # a widget mounted during a session may get its size without a Resize event
            self.on_resize()
        self._formatting.at_once_if_waiting()
        if self._thinks and not self._blocks[-1].done:
            self._blocks[-1].end()
            self._update_last()
        if kind in ("user", "model"):
            self._thinking = Thinking()
        if kind == "user":
            self._going_on = None
        self._blocks.add(self._block(kind, name, self._text_width))
        self._update_last()

    def _block(self, kind: Kind, name: str, width: int) -> Block:
        fold_key = with_own_keys(FOLD_KEY, self.app)
        return Block(kind, name, width, formatted=self._shows_formatted, fold_key=fold_key)

    def open(self, messages: Iterable[WholeMessage]) -> None:
        """Replace everything by the messages of an earlier conversation."""
        self.keep(0)
        for kind, name, runs, length in messages:
            block = self._block(kind, name, 0)
            block.length, block.done, block.sums_up = length, kind == "thought", kind == "notice"
            block.append(runs)
            self._blocks.add(block)
        self._lay_out_anew()
        self.anchor()

    def add_whole(self, messages: Iterable[WholeMessage]) -> None:
        for kind, name, runs, length in messages:
            self.start(kind, name)
            self._blocks[-1].length, self._blocks[-1].sums_up = length, kind == "notice"
            self._add(runs)

    def add(self, text: str, ink: Ink = PLAIN) -> None:
        """Add text to the last message."""
        self._add([(text, ink)])

    def _add(self, runs: Sequence[Run]) -> None:
        place = self._blocks[-1].append(runs)
        if self._shows_formatted:
            self._format()
        else:
            self._update_last(place)

    def add_steps(self, steps: list[protocol.Step]) -> None:
        """Add the tokens of steps to the answer. If a notice came in between, the answer continues below it.

        If the beginning of an answer is missing from a recording, the answer begins with them. Reasoning before the
        answer has a block of its own, above that of the answer, with its tokens and its time.
        """
        runs = [
            (token < step.reasoning, (piece, _ink(step, token)))
            for step in steps
            for token, piece in enumerate(step.pieces)
        ]
        self._thinking = self._thinking.after(steps)
        for thought, group in groupby(runs, itemgetter(0)):
            texts = [run for _, run in group]
            if thought and not self._thinks and not "".join(text for text, _ in texts).strip():
                continue  # there are marks around nothing
            self._begin_answer("thought" if thought else "model")
            if thought:
                self._blocks[-1].length = self._thinking.in_words(self.unit)
            place = self._blocks[-1].append(texts)
            if self._shows_formatted and not thought:
                self._formatting.soon()
            else:
                self._update_last(place)

    @property
    def _thinks(self) -> bool:
        return bool(self._blocks) and self._blocks[-1].kind == "thought"

    def mend(self, came: Sequence[protocol.Step], passes: Sequence[protocol.Step]) -> None:
        """Give the tokens of an answer the colours of its passes, of which some came in one step."""
        before, after = (
            [_ink(step, token) for step in steps for token in range(len(step.token_ids))] for steps in (came, passes)
        )
        inks = dict(zip(before, after, strict=True))
        for block in reversed(self._blocks):
            if block.kind == "user":
                break
            block.recolour(inks)
        self._redraw()

    def _begin_answer(self, kind: Kind) -> None:
        """Begin a block of an answer or of its reasoning, unless the last one is such."""
        last = self._blocks[-1] if self._blocks else None
        if last is not None and last.kind == kind:
            return
        if kind == "thought" and last is not None and last.kind == "model" and not last.written:
            self.keep(len(self._blocks) - 1)
            self.start(kind, f"{last.name}{THINKS}")
        else:
            thought = last is not None and last.kind == "thought"
            self.start(kind, last.name.removesuffix(THINKS) if last is not None and thought else "")

    def answers(self) -> Iterator[str]:
        """Return the raw text of the answers, last first, without notices in between."""
        starts = [number for number, block in enumerate(self._blocks) if block.kind == "user" or not number]
        return filter(None, map(self.answer_to, reversed(starts)))

    def answer_to(self, number: int) -> str:
        """Return the raw text of the answer to question number `number` of the messages; "" if there is none."""
        after = takewhile(lambda block: block.kind != "user", islice(self._blocks, number + 1, None))
        blocks = [self._blocks[number], *after]  # the first is an answer where a recording lacks the question
        return "".join(block.written for block in blocks if block.kind == "model").strip()

    def notice(self, text: str, kind: Literal["muted", "alert"] = "muted") -> None:
        self.start("notice")
        self.add(with_own_keys(text, self.app), Ink(kind))

    def notice_below(self, text: str) -> None:
        """Add a notice once the answer that is being written has ended."""
        block = Block("notice", "", 0)
        block.append([(text, Ink("muted"))])
        self._below.append(block)

    def offer(self, questions: Sequence[str]) -> None:
        """Add questions to the last notice, each to be asked by a click."""
        self._offered = questions
        for number, question in enumerate(questions):
            self.add(f"\n› {question}", Ink("offer", token=number))

    def sum_up(self, text: str) -> None:
        """Add a notice with the last answer's figures, followed by the notices that its continuation hid."""
        self.notice(text)
        self._blocks[-1].sums_up = True
        self.put_back()

    def go_on(self) -> None:
        """Continue the last answer in its block: its figures are removed, and other notices return once it has ended.
        The text of an earlier, unsettled continuation is removed too.

        If anything else than notices is below the answer, nothing changes.
        """
        blocks = self._blocks
        end = len(blocks) - len(list(takewhile(lambda block: block.kind == "notice", reversed(blocks))))
        if self._going_on is not None:
            end = self._going_on[0] + 1
        elif not end or blocks[end - 1].kind not in ("model", "thought"):
            return
        going_on = self._going_on or (end - 1, blocks[end - 1].extent)
        notices = [block for block in blocks[end:] if block.kind == "notice" and not block.sums_up]
        self.keep(end)
        blocks[-1].cut(going_on[1])
        blocks[-1].done = False
        self._update_last()
        self._below, self._going_on = notices, going_on

    def settle(self) -> None:
        """Make the continuation a permanent part of the answer."""
        self._going_on = None

    def put_back(self) -> None:
        """Show the notices that were hidden by a continuation."""
        for block in self._below:
            if self._text_width:
                block.lay_out(self._text_width, self._shows_formatted)
            self._blocks.add(block)
            self._update_last()
        self._below = []

    @property
    def blocks(self) -> int:
        return len(self._blocks)

    def keep(self, blocks: int) -> None:
        """Remove all but the first `blocks` messages and notices."""
        self._below, self._going_on = [], None
        if blocks < len(self._blocks):
            self._formatting.cancel()  # it formats the last block only, which is removed
            self._blocks.keep(blocks)
            if self._blocks.waiting == blocks:
                self._lay_out_anew()
            self._update_last()

    def label(self, block: int, variant: int, variants: int, *, chosen: bool) -> None:
        """Show which of its variants a question is, and whether it is chosen."""
        self._blocks[block].label(variant, variants, chosen)
        self._redraw()

    # --- formatting and folding ---------------------------------------------------------------------------------------

    @property
    def _shows_formatted(self) -> bool:
        return self.formatted and self._marked is None

    def watch_formatted(self) -> None:
        self._formatting.cancel()
        self._lay_out_anew()

    def _format(self) -> None:
        self._blocks[-1].format()
        self._update_last()

    def action_fold(self) -> None:
        """Unfold all long questions and thoughts, or fold them if none is folded."""
        self._lay_out_rest()
        self._fold([block for block in self._blocks if block.foldable])

    def _fold(self, blocks: list[Block]) -> None:
        folded = not any(block.folded for block in blocks)
        for block in blocks:
            block.fold(folded)
        if blocks:
            self._blocks.count_anew()
            self._take_over_height()

    def action_scroll_to_end(self) -> None:
        self.anchor()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def watch_palette(self) -> None:
        self._redraw()

    @property
    def _may_follow(self) -> bool:
        return self._marked is None or self.is_anchored

    @property
    def _more_below(self) -> str:
        return self.more_below if self._marked is None else BELOW_MARK

    def _style(self, ink: Ink) -> Style:
        marked = "transcript--marked" if self.palette.colour else "lines--selected"
        if ink.kind == "step":
            style = self.palette.style_of_step(ink.step, ink.tokens, own=ink.own)
            if (ink.turn, ink.step) == self._marked:
                style += self.get_component_rich_style(marked) + Style(reverse=False)  # it may be a cue of the palette
            return style
        if ink.kind == "marked":
            return self.get_component_rich_style(marked)
        if ink.kind in ("plain", "answer", "listing"):
            return Style()
        if ink.kind in MARKUP:
            return self.palette.markup(ink.kind)
        return self.get_component_rich_style(f"transcript--{ink.kind}")

    # --- steps --------------------------------------------------------------------------------------------------------

    def mark(self, turn: int, step: int) -> None:
        """Mark the tokens of a step, and scroll to them. New lines do not scroll them out of view."""
        if self._marked is None:
            self._followed = self.follows_end
            self.anchor(False)
        self._mark((turn, step))
        place = self._marked_line()
        if place is None and not self.laid_out:
            self._lay_out_rest()
            place = self._marked_line()
        if place is None and (hidden := [one for one in self._blocks if one.folded and one.has_step(turn, step)]):
            self._fold(hidden)
            place = self._marked_line()
        top, height = self.scroll_offset.y, self.scrollable_content_region.height - 1
        if place is not None and not top <= place < top + height:
            self.scroll_to(y=max(place - ROWS_AROUND_MARK, 0), animate=False, immediate=True)

    def unmark(self) -> None:
        """Remove the mark, and follow the end again if the view did before."""
        if self._marked is not None:
            self._mark(None)
            if self._followed:
                self.anchor()

    def _mark(self, step: tuple[int, int] | None) -> None:
        before, self._marked = self._marked, step
        if self.formatted and (before is None) != (step is None):
            self.watch_formatted()
        self._redraw()

    def _marked_line(self) -> int | None:
        """Return the number of the last line with a token of the marked step; None if none is laid out."""
        lines = self._blocks.lines
        inks = ((y, ink) for y in range(len(lines) - 1, -1, -1) for _, ink in lines[y].runs)
        return next((y for y, ink in inks if ink.kind == "step" and (ink.turn, ink.step) == self._marked), None)

    def on_click(self, event: events.Click) -> None:
        """Post `StepPointedAt` for a click on a token, `QuestionPointedAt` for one on a question, `Picked` for one on
        an offered question; fold or unfold a long question, or thoughts, for one on the hint below. Post
        `FormattedClicked` for one on a formatted answer.

        A click at the end of a drag that selected text does nothing.
        """
        offset = event.get_content_offset(self)
        if offset is None or self.text_selection is not None:
            return
        y = self.scroll_offset.y + offset.y
        if y >= self._blocks.height:
            return
        number, place = self._blocks.place(y)
        block = self._blocks[number]
        ink = ink_at(block.lines[place], offset.x)
        if block.foldable and place == len(block.lines) - 2:  # the hint, before the empty line
            self._fold([block])
        elif block.kind == "user":
            self.post_message(QuestionPointedAt(number, ink.step))
        elif ink.kind == "step":
            self.post_message(StepPointedAt(ink.turn, ink.step, ink.token))
        elif ink.kind == "offer":
            self.post_message(self.Picked(self._offered[ink.token]))
        elif ink.kind == "answer":
            self.post_message(StepPointedAt(None, 0, 0))
        elif block.kind == "model" and self._shows_formatted and offset.x < len(block.lines[place].text):
            self.post_message(self.FormattedClicked() if block.has_steps else StepPointedAt(None, 0, 0))


def _ink(step: protocol.Step, token: int) -> Ink:
    return Ink("step", step.turn, step.index, len(step.token_ids), token, is_own(step, token))
