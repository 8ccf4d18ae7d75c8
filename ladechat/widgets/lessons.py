"""The card of a lesson, and the panels beside it."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from rich.style import Style
from textual.app import ComposeResult
from textual.geometry import Size
from textual.reactive import reactive

from ladechat.protocol import Ready
from ladechat.widgets.cells import shorten
from ladechat.widgets.panels.biography_panel import BiographyPanel
from ladechat.widgets.panels.cost_panel import CostPanel
from ladechat.widgets.panels.explaining import explained, key_of, name_of
from ladechat.widgets.panels.lens_panel import LensPanel
from ladechat.widgets.panels.methods_panel import MethodsPanel
from ladechat.widgets.panels.panel import Panel, Row, wrapped
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.panels.views import View


class LessonCard(NamedTuple):
    """What a card shows.

    Attributes:
        heading: the scene, at the left, and the card, at the right.
        text: the text, wrapped when drawn.
        hint: what the reader can do.
        choices: one line each, numbered.
        chosen: the index of the reader's prediction.
        outcome: the index of the choice that came true.
        urgent: whether the hint is highlighted.
    """

    heading: tuple[str, str] = ("", "")
    text: str = ""
    hint: str = ""
    choices: tuple[str, ...] = ()
    chosen: int | None = None
    outcome: int | None = None
    urgent: bool = False


class LessonBox(Panel, can_focus=True):
    """A heading, a text, the choices of a prediction, and a last line with instructions."""

    DEFAULT_CSS = """
    LessonBox:focus > .panel--title { color: $text-accent; }
    """

    card: reactive[LessonCard] = reactive(LessonCard(), layout=True)
    _top = 0
    """The first visible line of text and choices, if not all fit."""

    def watch_card(self, before: LessonCard, card: LessonCard) -> None:
        self._top = 0 if card.text != before.text else self._top

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + len(self._body(width)) + len(self._hint(width))

    def rows(self, width: int, height: int) -> list[Row]:
        hint = self._hint(width)
        room = max(height - 1 - len(hint), 1)
        whole = self._body(width)
        self._top = min(self._top, max(len(whole) - room, 0))
        body = whole[self._top : self._top + room]
        empty: list[Row] = [[] for _ in range(room - len(body))]
        title, place = self.card.heading
        more = f"{'↑' if self._top else ' '}{'↓' if self._top + room < len(whole) else ' '}".strip()
        head = self.header(width, (title,), (more or place,))
        return [head, *body, *empty, *hint]

    def scroll_text(self, lines: int) -> None:
        """Scroll the text down by a number of lines, if not all of it fits."""
        self._top = max(self._top + lines, 0)
        self.refresh()

    def _hint(self, width: int) -> list[Row]:
        return _lines(self.card.hint, width, Style(bold=self.card.urgent))

    def _body(self, width: int) -> list[Row]:
        lines = _lines(self.card.text, width, Style())
        return [*lines, *(self._choice(number, text, width) for number, text in enumerate(self.card.choices))]

    def _choice(self, number: int, text: str, width: int) -> Row:
        """Return the row of a choice, with marks for the reader's prediction and for the outcome."""
        true, made = number == self.card.outcome, number == self.card.chosen
        mark = "✓" if true else "✗" if made and self.card.outcome is not None else " "
        suffix = " · your prediction" if made else ""
        style = Style(bold=True) if made or true else Style()
        return [(shorten(f"{mark} {number + 1}  {text}{suffix}", width), style)]


def _lines(text: str, width: int, style: Style) -> list[Row]:
    """Return a text as rows: each of its lines wrapped, an empty one for an empty line."""
    return [row for line in text.split("\n") for row in wrapped(line, width, style) or [[]]]


ELSEWHERE = "explained in other scenes"


class LessonPanels(SidePanels):
    """Shows the panel requested by its id, and where there is room also the decoder's other panels.

    Two of them are only there on request: what a pass costs, and the methods beside each other. `explained_in` has for
    each panel and slider that a scene explains, by its id, the number of the scene.
    """

    def __init__(self, explained_in: Mapping[str, int], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wanted = ""
        self._explained_in = explained_in
        self._new: Collection[str] = ()

    def compose(self) -> ComposeResult:
        yield CostPanel(id="cost")
        yield MethodsPanel(id="methods")
        yield from super().compose()

    def show_model(self, model: Ready) -> None:
        super().show_model(model)
        self.query_one(MethodsPanel).trained = model.trained

    def show_panel(self, wanted: str, new: Collection[str]) -> None:
        """Show the panel of this id in any case, instead of a view that was chosen with another card. `new` is what the
        scene explains, by ids of panels and sliders.
        """
        self._new = new
        if wanted != self._wanted:
            self._wanted, self.shown = wanted, View.PANELS
            self._apply()

    def explanations(self, only: str = "") -> list[tuple[str, str]]:
        """Explain what is new in the scene, and name the scenes that explain the rest. The card's panel comes first,
        and says at least what it shows now.
        """
        shown = {key_of(one): one for one in self.on_screen}
        if only or self.shown is not View.PANELS or self._wanted not in shown:
            return super().explanations(only)
        name, text = explained(shown[self._wanted])
        if self._wanted not in self._new:
            text = text.partition(". ")[0].rstrip(".") + "."
        del shown[self._wanted]
        texts = [(name, text), *(explained(one) for key, one in shown.items() if key in self._new)]
        scenes: dict[int, list[str]] = {}
        for key, one in shown.items():
            if key not in self._new and key in self._explained_in:
                scenes.setdefault(self._explained_in[key], []).append(name_of(one))
        places = " · ".join(f"scene {scene}: {', '.join(names)}" for scene, names in sorted(scenes.items()))
        return [*texts, (ELSEWHERE, places)] if places else texts

    def _apply(self) -> None:
        super()._apply()
        self._place(self.query_one(CostPanel), False, True)
        self._place(self.query_one(MethodsPanel), False, True)

    def _place(self, panel: Panel, shown: bool, optional: bool) -> None:
        wanted = panel.id == (self._wanted if self.shown is View.PANELS else self.shown)
        panel.display = wanted or (shown and not isinstance(panel, BiographyPanel))
        panel.optional = not wanted and not isinstance(panel, LensPanel)
