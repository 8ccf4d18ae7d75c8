"""The line of keys at the bottom of a screen."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.screen import Screen

from ladechat.widgets.cells import cell_len
from ladechat.widgets.strips import OneLine


class FooterKey(NamedTuple):
    """A key, as shown in the footer.

    Attributes:
        key: Textual's name of the key.
        shown: its name for users.
        group: common description of several keys; "" for a key alone.
    """

    key: str
    shown: str
    description: str
    enabled: bool
    tooltip: str
    group: str


class _FooterPiece(NamedTuple):
    """Some cells of the line. `part` selects the style, `key` is pressed by a click."""

    text: str
    part: str = ""
    key: FooterKey | None = None


class KeyFooter(OneLine):
    """Shows the active key bindings; a click presses a key. At the right is the key of the palette.

    It is one widget that draws a line. Textual's own footer has a widget for each key: a dozen would be removed and
    mounted, with a new layout of the screen, at the first letter that is typed.
    """

    DEFAULT_CSS = """
    KeyFooter { dock: bottom; color: $footer-foreground; background: $footer-background; }
    KeyFooter > .key-footer--key {
        color: $footer-key-foreground; background: $footer-key-background; text-style: bold;
    }
    KeyFooter > .key-footer--description {
        color: $footer-description-foreground; background: $footer-description-background;
    }
    KeyFooter > .key-footer--border { color: $foreground 20%; }
    KeyFooter > .key-footer--pointed { color: $footer-background; background: $footer-key-foreground; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"key-footer--{part}" for part in ("key", "description", "border", "pointed")
    }
    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[FooterKey] = []
        self.palette: FooterKey | None = None
        self._pointed: FooterKey | None = None
        self._drawn: list[_FooterPiece] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if self.is_attached and screen is self.screen:
            self.call_after_refresh(self._look)

    def _look(self) -> None:
        if not self.is_attached:
            return
        active = self.screen.active_bindings
        by_action: dict[str, FooterKey] = {}
        for _, binding, enabled, tooltip in active.values():
            if binding.show:
                by_action.setdefault(binding.action, self._footer_key(binding, enabled, tooltip))
        palette = active.get(self.app.COMMAND_PALETTE_BINDING)
        shown = list(by_action.values()), palette and self._footer_key(*palette[1:])
        if shown != (self.keys, self.palette):
            self.keys, self.palette = shown
            self.refresh()

    def _footer_key(self, binding: Binding, enabled: bool, tooltip: str) -> FooterKey:
        group = binding.group.description if binding.group else ""
        shown = self.app.get_key_display(binding)
        return FooterKey(binding.key, shown, binding.description, enabled, tooltip or binding.description, group)

    def segments(self, width: int) -> list[Segment]:
        blank = Style(bgcolor=self.rich_style.bgcolor)
        right = [] if self.palette is None or self.screen.has_class("-tiny") else self._palette(self.palette)
        room = max(width - _cells(right), 0)
        left = list(self._left(room))
        if (over := _cells(left) - room) > 0:  # by the gap after the last key
            left[-1] = left[-1]._replace(text=left[-1].text[:-over])
        self._drawn = [*left, _FooterPiece(" " * (room - _cells(left))), *right]
        return [self._segment(piece, blank) for piece in self._drawn if piece.text]

    def _left(self, room: int) -> Iterator[_FooterPiece]:
        """Yield the pieces of all keys but the palette's: as many keys, or groups of keys, as fit into `room` cells."""
        for pieces in self._groups():
            room -= _cells(pieces)
            if room < -_cells([self._gap]):  # the last key needs no gap after it
                return
            yield from pieces

    def _groups(self) -> Iterator[list[_FooterPiece]]:
        """Yield the pieces of each key, or of each group of several keys."""
        for group, members in groupby(self.keys, lambda key: key.group):
            several = list(members)
            if group and len(several) > 1:
                keys = [piece for key in several for piece in (_FooterPiece(key.shown, "key", key), _FooterPiece(" "))]
                yield [_FooterPiece(" "), *keys, _FooterPiece(" "), _FooterPiece(group, "description"), self._gap]
            else:
                for key in several:
                    yield [*_alone(key), self._gap]

    def _palette(self, key: FooterKey) -> list[_FooterPiece]:
        return [_FooterPiece("▏", "border"), *_alone(key), self._gap]

    @property
    def _gap(self) -> _FooterPiece:
        return _FooterPiece("  " if self.screen.has_class("-wide") else " ")

    def _segment(self, piece: _FooterPiece, blank: Style) -> Segment:
        if not piece.part:
            return Segment(piece.text, blank)
        off = piece.key is not None and not piece.key.enabled  # a disabled key is drawn in the style of descriptions
        style = blank + self.get_component_rich_style(f"key-footer--{'description' if off else piece.part}")
        if piece.key is not None and piece.key == self._pointed:
            style += self.get_component_rich_style("key-footer--pointed")
        return Segment(piece.text, style)

    def _key_at(self, x: int) -> FooterKey | None:
        """Return the key at column `x` of the content."""
        for piece in self._drawn:
            x -= cell_len(piece.text)
            if x < 0:
                return piece.key
        return None

    def _point_at(self, key: FooterKey | None) -> None:
        if key != self._pointed:
            self._pointed = key
            self.tooltip = key and key.tooltip
            self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point_at(self._key_at(event.x - self.styles.padding.left))

    def on_leave(self) -> None:
        self._point_at(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        key = self._key_at(event.x - self.styles.padding.left)
        if key is not None and key.enabled:
            self.app.simulate_key(key.key)
        elif key is not None:
            self.app.bell()


def _alone(key: FooterKey) -> tuple[_FooterPiece, _FooterPiece]:
    return _FooterPiece(key.shown, "key", key), _FooterPiece(f" {key.description}", "description", key)


def _cells(pieces: Iterable[_FooterPiece]) -> int:
    return sum(cell_len(piece.text) for piece in pieces)
