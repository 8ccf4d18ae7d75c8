"""The message in a terminal that has no room for anything else."""

from textual.app import RenderResult
from textual.widget import Widget

LEAST_COLUMNS, LEAST_ROWS = 40, 10


class TooSmall(Widget):
    """One sentence, over everything, while the terminal is smaller than ladechat needs (by the app's breakpoints).

    The widgets below it are never laid out narrower than that, so none has to support a width of one column.
    """

    SCOPED_CSS = False
    DEFAULT_CSS = f"""
    TooSmall {{ layer: too-small; dock: top; width: 100%; height: 100%; display: none; background: $background; }}
    .-too-narrow TooSmall, .-too-low TooSmall {{ display: block; }}
    Screen {{ overflow: hidden; }}
    Screen > *, CommandList {{ min-width: {LEAST_COLUMNS}; }}
    Screen > TooSmall, Screen > Tooltip {{ min-width: 1; }}
    """

    def render(self) -> RenderResult:
        width, height = self.app.size
        return (
            f"ladechat needs {LEAST_COLUMNS}×{LEAST_ROWS} cells; this terminal has {width}×{height}. "
            "Make it larger: everything is still there."
        )
