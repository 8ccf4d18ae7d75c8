"""The conversation, each token in the colour of the step that emitted it."""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import ClassVar, Literal

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from ladechat import protocol
from ladechat.palette import MARKUP, Palette
from ladechat.widgets.answer_steps import StepPointedAt
from ladechat.widgets.block import Block, Kind, answers_in, folded_at
from ladechat.widgets.flow import PLAIN, UNKNOWN, Ink, Line, ink_at
from ladechat.widgets.formatting import is_own, name_of
from ladechat.widgets.later import Seldom
from ladechat.widgets.message_lines import ROWS_ABOVE_MARK, MessageLines

FORMATTING_SECONDS = 0.25
"""An answer that is being written is formatted anew at most this often."""
SHARE_FOR_FORMATTING = 0.2
"""Of the time, at most: a block that takes long to format is formatted less often."""
NEW_BELOW = " ↓ more below · End "
BELOW_MARK = " ↓ more below "
"""While a step is marked, when the key means its last step."""


Whole = tuple[Kind, str, str, Ink]
"""A message that is known as a whole: its kind, its name, its text, and the ink of that."""


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
    Transcript > .transcript--alert { color: $text-error; }
    Transcript > .transcript--marked { background: $block-cursor-background; color: $block-cursor-foreground; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"transcript--{part}" for part in ("label", "user", "muted", "mark", "comment", "alert", "marked")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("end", "scroll_to_end", "To the end", show=False, id="transcript.end"),
    ]

    palette: reactive[Palette] = reactive(Palette)
    formatted: reactive[bool] = reactive(False)
    """Are answers shown as formatted Markdown? Else, and while a step is marked, in the colours of steps."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._formatting = Seldom(self, self._format, FORMATTING_SECONDS, SHARE_FOR_FORMATTING)
        self._marked: tuple[int, int] | None = None
        self._followed = True
        self._sums: list[int] = []  # the places of the notices that sum an answer up
        self._below: list[Block] = []
        """Notices that were below the answer that goes on, until it ends."""
        self._going_on: tuple[int, tuple[int, int]] | None = None
        """The block of the answer that goes on, and its extent before; None once what came is part of the answer."""

    def on_mount(self) -> None:
        self.anchor()

    # --- content ------------------------------------------------------------------------------------------------------

    def start(self, kind: Kind, name: str = "") -> None:
        """Begin a message or a notice, which what comes next is added to."""
        if not self._wrapped_width:  # mounted in the middle of a session, a widget may have its size without being told
            self.on_resize()
        self._formatting.at_once_if_waiting()
        if kind == "user":
            self._going_on = None
        self._blocks.add(Block(kind, name, self._text_width, formatted=self._shows_formatted))
        self._update_last()

    def open(self, messages: Iterable[Whole]) -> None:
        """Show the messages of an earlier conversation in the place of all that is there."""
        self.clear()
        for kind, name, text, ink in messages:
            block = Block(kind, name, 0)
            block.append([(text, ink)])
            self._blocks.add(block)
        self._lay_out_anew()
        self.anchor()

    def add_whole(self, messages: Iterable[Whole]) -> None:
        """Add messages below what is there."""
        for kind, name, text, ink in messages:
            self.start(kind, name)
            self.add(text, ink)

    def add(self, text: str, ink: Ink = PLAIN) -> None:
        """Add text to the last message."""
        block = self._blocks.last
        place = block.append([(text, ink)])
        if self._shows_formatted:
            self._format()
        else:
            self._update_last(place)

    def add_steps(self, steps: list[protocol.Step]) -> None:
        """Add the tokens of steps to the answer, in one go. It goes on below a notice that came in between.

        An answer whose beginning is missing from a recording begins with them.
        """
        if not self._blocks or self._blocks.last.kind != "model":
            self.start("model")
        place = self._blocks.last.append(
            [
                (piece, Ink("step", step.turn, step.index, len(step.token_ids), token, is_own(step, token)))
                for step in steps
                for token, piece in enumerate(step.pieces)
            ]
        )
        if self._shows_formatted:
            self._formatting.soon()
        else:
            self._update_last(place)

    def answers(self) -> Iterator[str]:
        """The answers as the model wrote them, without notices in the middle of them; the last one first."""
        return answers_in(list(self._blocks))

    def notice(self, text: str, kind: Literal["muted", "alert"] = "muted") -> None:
        """Add a notice of the program."""
        self.start("notice")
        self.add(text, Ink(kind))

    def sum_up(self, text: str) -> None:
        """Add a notice that says what the last answer took; those that came before it went on follow."""
        self._sums.append(self.blocks)
        self.notice(text)
        self.put_back()

    def go_on(self) -> None:
        """Let the last answer go on in its block: its sum goes, and other notices come back once it has ended. What
        came when it went on before goes too, unless that was settled.

        Where something else than notices is below it, nothing changes.
        """
        blocks = list(self._blocks)
        if self._going_on is None:
            end = len(blocks) - len(list(takewhile(lambda block: block.kind == "notice", reversed(blocks))))
            if not end or blocks[end - 1].kind != "model":
                return
            going_on = end - 1, blocks[end - 1].extent
        else:
            going_on = self._going_on
            end = going_on[0] + 1
        below = enumerate(blocks[end:], start=end)
        notices = [block for place, block in below if block.kind == "notice" and place not in self._sums]
        self.keep(end)
        blocks[end - 1].cut(going_on[1])
        self._update_last()
        self._below, self._going_on = notices, going_on

    def settle(self) -> None:
        """Have what came since the answer went on be part of it."""
        self._going_on = None

    def put_back(self) -> None:
        """Show the notices again that made room for an answer that went on."""
        for block in self._below:
            if self._text_width:
                block.lay_out(self._text_width, self._shows_formatted)
            self._blocks.add(block)
            self._update_last()
        self._below = []

    def clear(self) -> None:
        """Forget everything."""
        self.keep(0)

    @property
    def blocks(self) -> int:
        """How many messages and notices there are."""
        return len(self._blocks)

    def keep(self, blocks: int) -> None:
        """Forget all but the first `blocks` messages and notices."""
        self._sums = [place for place in self._sums if place < blocks]
        self._below, self._going_on = [], None
        if blocks < len(self._blocks):
            self._formatting.cancel()  # the last block alone waits for it
            self._blocks.keep(blocks)
            if self._blocks.waiting == blocks:
                self._lay_out_anew()
            self._update_last()

    # --- formatting and folding ---------------------------------------------------------------------------------------

    @property
    def _shows_formatted(self) -> bool:
        return self.formatted and self._marked is None

    def watch_formatted(self) -> None:
        self._formatting.cancel()
        self._lay_out_anew()

    def _format(self) -> None:
        self._blocks.last.format()
        self._update_last()

    def action_fold(self) -> None:
        """Open all long questions, or fold them if they are open."""
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
        """Go to the end, and follow it again."""
        self.anchor()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def watch_palette(self) -> None:
        self._redraw()

    @property
    def _may_follow(self) -> bool:
        return self._marked is None or self.is_anchored

    @property
    def _more_below(self) -> str:
        return NEW_BELOW if self._marked is None else BELOW_MARK

    def _style(self, ink: Ink) -> Style:
        if ink.kind == "step":
            style = self.palette.step(ink.step, ink.tokens, own=ink.own)
            if (ink.turn, ink.step) == self._marked:  # where terminals are too light for bold, the style is reversed
                marked = "transcript--marked" if self.palette.colour else "lines--selected"
                style += self.get_component_rich_style(marked) + Style(reverse=False)
            return style
        if ink.kind in ("plain", "answer", "listing"):
            return Style()
        if ink.kind in MARKUP:
            return self.palette.markup(ink.kind)
        return self.get_component_rich_style(f"transcript--{ink.kind}")

    # --- steps --------------------------------------------------------------------------------------------------------

    def mark(self, turn: int, step: int) -> None:
        """Mark the tokens of a step, and bring them into view. What comes meanwhile does not scroll them away."""
        if self._marked is None:
            self._followed = self.follows_end
            self.anchor(False)
        self._mark((turn, step))
        place = self._blocks.last_where(self._shows_marked)
        if place is None and not self.laid_out:
            self._lay_out_rest()
            place = self._blocks.last_where(self._shows_marked)
        top, height = self.scroll_offset.y, self.scrollable_content_region.height - 1
        if place is not None and not top <= place < top + height:
            self.scroll_to(y=max(place - ROWS_ABOVE_MARK, 0), animate=False, immediate=True)

    def unmark(self) -> None:
        """Mark nothing any more, and go on where the view was."""
        if self._marked is not None:
            self._mark(None)
            if self._followed:
                self.anchor()

    def _mark(self, step: tuple[int, int] | None) -> None:
        before, self._marked = self._marked, step
        if self.formatted and (before is None) != (step is None):
            self.watch_formatted()
        self._redraw()

    def _shows_marked(self, line: Line) -> bool:
        return any(ink.kind == "step" and (ink.turn, ink.step) == self._marked for _, ink in line.runs)

    def on_click(self, event: events.Click) -> None:
        """A click on a token points at its step, one below a long question opens or folds it.

        Behind a drag that selected text it means nothing else.
        """
        offset = event.get_content_offset(self)
        if offset is None or self.text_selection is not None:
            return
        y = self.scroll_offset.y + offset.y
        if (folded := folded_at(self._blocks, y)) is not None:
            self._fold([folded])
            return
        ink = ink_at(self._blocks.line(y), offset.x) if y < self._blocks.height else PLAIN
        if ink.kind == "step":
            self.post_message(StepPointedAt(ink.turn, ink.step, ink.token))
        elif ink.kind == "answer":
            self.post_message(StepPointedAt(None, 0, 0))


def messages_of(exchange: protocol.Exchange) -> tuple[Whole, Whole]:
    """A question, and its answer, of which is not known how it was decoded."""
    return ("user", "You", exchange.question, PLAIN), ("model", name_of(exchange.model), exchange.answer, UNKNOWN)
