"""What a screen is composed of gets its styles once before it is shown, and again when it comes back."""

from collections import Counter
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from ladechat.screens.help.help import HelpScreen
from ladechat.widgets.bars.status_line import StatusLine
from tests.app.stage import Stage, shows
from tests.waiting import press


async def test_what_a_screen_is_composed_of_is_styled_once_before_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    styled: Counter[DOMNode] = Counter()
    apply = Stylesheet.apply

    def counted(sheet: Stylesheet, node: DOMNode, **options: Any) -> None:
        styled[node] += 1
        apply(sheet, node, **options)

    monkeypatch.setattr(Stylesheet, "apply", counted)
    async with Stage().running() as (pilot, stage):
        status = stage.app.query_one(StatusLine)  # which nothing changes yet
        assert styled[status] == 1
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        await press(pilot, "escape", brings=lambda: styled[status] > 1)
