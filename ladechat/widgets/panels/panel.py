"""Base classes of the live panels: rows of styled text, drawn line by line, at a limited rate."""

import textwrap
from collections import deque
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ladechat.contrast import readable
from ladechat.palette import Palette
from ladechat.protocol import Step
from ladechat.widgets.cells import SPACE, cell_len, fit, shorten, visible
from ladechat.widgets.formatting import is_own
from ladechat.widgets.later import Throttle
from ladechat.widgets.strips import strip_of

FRAME_SECONDS = 0.06
"""Panels are read at a glance, not character by character: they are repainted at most this often, with every second
frame of the conversation."""
SECONDS_TO_JOIN = 0.04
"""Extra delay, so that the panel is repainted together with the conversation's next frame instead of in one of its own.
"""

LAST_ACCEPTING = "the last that gave several tokens", "last to accept"
LAST_LONGEST = "the last with the longest block", "longest block"
"""Description of the pass at which a finished answer's panels stay, from long to short."""

Span = tuple[str, Style]
"""A printable text and its style."""
Row = list[Span]

LEAST_ROWS, FEW_ROWS = 4, 6
ROWS_AT_ONCE = 3
"""A panel comes to need so many rows more at once, so that the others rarely move."""
PASSES_AT_FIRST, PASSES_COUNTED = 16, 64
"""The passes that a panel takes for small ones before it has seen any, and the latest that count."""


class Needs(NamedTuple):
    """The rows that a panel needs: to say anything, for what most passes have, and for all that it can show."""

    least: int = 1
    usual: int = 1
    most: int = 1


class Panel(Widget):
    """A panel that draws the data it was last given. A subclass implements `rows` and calls `redraw`."""

    DEFAULT_CSS = """
    Panel { height: 1fr; width: 1fr; min-height: 1; }
    Panel > .panel--title { text-style: bold; }
    Panel > .panel--muted { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"panel--title", "panel--muted"}

    NAME: ClassVar[str] = ""
    """The panel's name, on the screen and in its explanation."""
    SHOWS: ClassVar[str] = ""
    """A general description of the panel's content; "" if it needs none."""
    COMES: ClassVar[str] = ""
    """When the panel is on the screen."""
    NEEDS: ClassVar[Needs] = Needs()

    palette: reactive[Palette] = reactive(Palette)
    unreported: reactive[str] = reactive("")
    """Why there is nothing to draw, if a server has decoded the answer: it does not tell what this panel shows."""
    optional: reactive[bool] = reactive(False, layout=True)
    """Whether it is left out where the panels have no room for what they usually show."""

    @property
    def title(self) -> str:
        """The panel's name, which may depend on its content."""
        return self.NAME

    @property
    def shows(self) -> str:
        """The general description, which may depend on who decodes."""
        return self.SHOWS

    @property
    def moment(self) -> str:
        """Which pass is shown, unless it is the newest; else ""."""
        return ""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.drawing = Throttle(self, self._draw, FRAME_SECONDS, joining=SECONDS_TO_JOIN)
        self._painted: list[Strip] | None = None
        self._drawn_for = self.NEEDS
        self.begin_anew()

    def begin_anew(self) -> None:
        """Need what is usual until passes of another decoder are counted."""
        self._needed = self.NEEDS
        self._rows_of_passes = deque([FEW_ROWS] * PASSES_AT_FIRST, PASSES_COUNTED)

    def rows(self, width: int, height: int) -> list[Row]:
        """Return what to draw in `width` × `height` cells, from the top. Extra rows are cut, missing ones are blank."""
        raise NotImplementedError

    def needs(self) -> Needs:
        return self._needed

    def count_rows(self, rows: int, more: int = 0) -> None:
        """Need the rows that three of four passes need, and never less than before. `rows` are those of the next pass,
        `more` for what can be left out.
        """
        self._rows_of_passes.append(rows)
        usual = sorted(self._rows_of_passes)[len(self._rows_of_passes) * 3 // 4]
        usual = -(-usual // ROWS_AT_ONCE) * ROWS_AT_ONCE
        self._needed = Needs(*map(max, self._needed, (LEAST_ROWS, usual, usual + more)))

    def explain(self) -> str:
        """Return an explanation in two or three sentences with the current numbers; "" if the panel needs none."""
        return ""

    @property
    def explanation(self) -> str:
        """What there is to explain now; "" for nothing."""
        return self.unreported or self.explain()

    def on_click(self, event: events.Click) -> None:
        if not event.y and self.explanation:
            self.call_next(self.run_action, f"app.explain({self.id!r})")

    def redraw(self) -> None:
        self.drawing.soon()

    def _draw(self) -> None:
        """Repaint; if the panel has come to need other rows, share them anew."""
        if self.display and (needs := self.needs()) != self._drawn_for:
            self._drawn_for = needs
            self.refresh(layout=True)
        else:
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        self._painted = None
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width, height = self.content_size
        if self._painted is None:
            rows = self.only(width, (self.NAME,), self.unreported) if self.unreported else self.rows(width, height)
            base, rows = self.rich_style, rows[:height]
            segments = ([Segment(text, base + style) for text, style in row if text] for row in rows)
            self._painted = [strip_of(row, width, base) for row in segments]
        return self._painted[y] if y < len(self._painted) else Strip.blank(width, self.rich_style)

    @property
    def title_style(self) -> Style:
        return self.get_component_rich_style("panel--title")

    @property
    def muted(self) -> Style:
        return self.get_component_rich_style("panel--muted")

    def faded(self, amount: float) -> Style:
        """Return the text colour, blended by `amount` (0 to 1) into the background: for shapes."""
        return Style(color=self._blended(amount).rich_color)

    def faded_text(self, amount: float) -> Style:
        """Return the same for words, blended only as far as they stay readable."""
        return Style(color=readable(self._blended(amount), self.colors[2], depth=self.palette.depth).rich_color)

    def _blended(self, amount: float) -> Color:
        _, _, background, colour = self.colors
        return colour.blend(background, amount, alpha=1.0)

    def step_style(self, step: Step, token: int) -> Style:
        """Return the style of a step's token, the same in every panel."""
        return self.palette.style_of_step(step.index, len(step.token_ids), own=is_own(step, token))

    def header(self, width: int, titles: Sequence[str], facts: Sequence[str], style: Style | None = None) -> Row:
        """Return a row with a title at the left and facts at the right, each in the longest form that fits.

        The forms are in lists, longest first. A short title is preferred to fewer facts.
        """
        for fact in facts:
            for title in titles:
                gap = width - cell_len(title) - cell_len(fact)
                if gap >= 2:
                    return [(title, self.title_style), (" " * gap, Style()), (fact, style or self.muted)]
        return [(shorten(titles[-1], width), self.title_style)]

    def token(self, text: str, style: Style) -> Row:
        """Return a token in its style, with the dots that mark its outer spaces in a quieter one."""
        core = text.strip(SPACE)
        before, after = text[: text.find(core)], text[text.find(core) + len(core) :]
        return [(before, self.muted), (core, style), (after, self.muted)]

    def cell(self, piece: str, cells: int, style: Style) -> Row:
        """Return a token in exactly `cells` cells. Padding is unstyled: coloured, it would look like a space."""
        text = fit(visible(piece), cells)
        token = text.rstrip(" ")
        return [*self.token(token, style), (" " * (len(text) - len(token)), Style())]

    def only(self, width: int, titles: Sequence[str], sentence: str) -> list[Row]:
        """Return a header and a sentence, which says why there is nothing else."""
        return [self.header(width, titles, [""]), *self.sentence(sentence, width)]

    def legend(self, texts: Sequence[str], more: str, width: int) -> Row:
        """Return the longest of `texts` that fits beside `more`, which is at the right."""
        text = longest(width - len(more) - 2, texts)
        return [(text, self.muted), (more.rjust(width - len(text)), self.muted)]

    def sentence(self, text: str, width: int) -> list[Row]:
        return wrapped(text, width, self.muted)


class AnswerPanel(Panel):
    """A panel about the steps of an answer, which may add up figures over them."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.forget()

    def forget(self) -> None:
        """Return to the state before the first step."""
        raise NotImplementedError

    def show_step(self, step: Step) -> None:
        """Draw the next step."""
        raise NotImplementedError

    def clear(self) -> None:
        self.forget()
        self.redraw()


class StepPanel(AnswerPanel):
    """A panel that draws one step."""

    awaits_answer: reactive[bool] = reactive(False)
    """Whether the next answer has another decoder than the last one, which may have had no data for this panel."""

    @property
    def moment(self) -> str:
        return self._moments()[0] if self._moments() else ""

    def forget(self) -> None:
        self._step: Step | None = None
        self._passes: int | None = None
        """The number of passes of the answer, if the step is not the last of them."""

    def show_step(self, step: Step) -> None:
        self._step, self._passes = step, None
        self.redraw()

    def stay_at(self, step: Step, passes: int) -> None:
        """Draw again the step that tells most, labelled as pass so-and-so of `passes`."""
        self._step, self._passes = step, passes
        self.redraw()

    def titles(self, *titles: str) -> tuple[str, ...]:
        """Return titles for the header, with the number of the step if it is not the last one and fits."""
        moments = [f" · {moment}" for moment in self._moments()]
        return tuple(f"{title}{moment}" for moment in [*moments, ""] for title in titles)

    def _moments(self) -> tuple[str, ...]:
        """Return which step is shown, in versions from long to short; nothing for the last one."""
        if self._step is None or self._passes is None:
            return ()
        place = f"pass {self._step.index + 1:,}"
        of_all = f"{place} of {self._passes:,}"
        return *(f"{of_all}, {why}" for why in why_telling(self._step)), of_all, place


def why_telling(step: Step) -> tuple[str, str]:
    """Return why panels stay at a step that is not the last one of its answer, see `AnswerSteps.telling`, in versions
    from long to short.
    """
    return LAST_ACCEPTING if len(step.token_ids) > 1 else LAST_LONGEST


def wrapped(text: str, width: int, style: Style) -> list[Row]:
    """Return a text in one style, wrapped for `width` cells. No line begins with the dot between two parts."""
    lines = textwrap.wrap(text.replace(" ·", "\xa0·"), max(width, 1))
    return [[(line.replace("\xa0", " "), style)] for line in lines]


def longest(width: int, texts: Sequence[str]) -> str:
    """Return the first of `texts` that fits into `width` cells, or ""."""
    return next((text for text in texts if cell_len(text) <= width), "")
