"""Whatever is pasted into a place for text, what is seen there is what is sent, searched and saved."""

import pytest
from textual.events import Paste
from textual.widget import Widget
from textual.widgets import Input, TextArea

from ladechat.widgets.inputs import Field, SearchLine, TypedText
from ladechat.widgets.prompt.prompt import Prompt
from tests.widgets.hosting import hosted, lines


async def at_once() -> None:
    """There is nothing to bring up to date."""


@pytest.mark.parametrize(
    "place", [lambda: Field(at_once), lambda: SearchLine(back_to=Widget()), lambda: TypedText(compact=True), Prompt]
)
async def test_escapes_are_symbols_wherever_they_are_pasted(place: type[Prompt]) -> None:
    widget: Widget = place()
    async with hosted(widget, 60, 4) as (pilot, _):
        if isinstance(widget, SearchLine):
            widget.open()
        widget.focus()
        pilot.app.post_message(Paste("a\x1b[31mb\x07c\x00d\x9be\x7f"))
        await pilot.pause()
        assert isinstance(widget, Input | TextArea)
        assert (widget.value if isinstance(widget, Input) else widget.text) == "a␛[31mb␇c␀d▯e␡"
        assert "".join(lines(widget)).isprintable()
