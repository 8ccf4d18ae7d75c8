"""Whatever comes from a model, a hub or a file: the terminal gets texts of the width they claim, and no commands."""

import unicodedata

import msgspec
from hypothesis import given, settings, strategies as st
from textual.events import Paste
from textual.pilot import Pilot
from textual.strip import Strip

from ladechat import protocol
from ladechat.protocol import Failed, Loading, Ready, Settings, TurnStarted
from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.cells import cell_len
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.presenter import Presenter
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Stage
from tests.waiting import brings, until
from tests.widgets.hosting import hosted, lines
from tests.widgets.sample_steps import candidate, pool_view, step, window_view
from tests.widgets.test_formatting import LLAMA

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\x00\x08\x7f\u202e\u2028"
PIECES = st.text(max_size=6) | st.sampled_from([
    "\x1b[31m", "\x1b]52;c;eA==\x07", "\x9b2J", "\x00", "\r", "\n", "\t", "  ", "\x85", "\u2028", "\u202e", "漢字",
    "👩\u200d", "🚀", "\u200d", "❤\ufe0f", "👍🏽", "🇩🇪", "हि", "न्दी", "ि", "\u0301", "سلام", "‹E4›", "",
])  # fmt: skip


def check(strips: list[Strip], width: int) -> None:
    """Nothing but printable characters, and as many cells as the screen has."""
    for strip in strips:
        raw = [c for c in strip.text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
        assert raw == []
        assert cell_len(strip.text) == width == strip.cell_length


def shown(pieces: list[str], index: int) -> protocol.Step:
    """A step that has these pieces everywhere where a step has any."""
    row = pieces[:4] or [""]
    guesses = [candidate(pieces[i:] or [""], "window", matched=i % 2, tried=i < 3) for i in range(4)]
    return step(
        pieces or [""],
        index=index,
        window=window_view([row, row], row),
        pool=pool_view(pieces[0] if pieces else "", guesses),
    )


async def test_no_event_gets_a_control_character_onto_the_screen_or_a_line_out_of_its_width() -> None:
    async with Stage().ready(size=(100, 30)) as (_, stage):
        app = stage.app
        parts = app.query_one(Transcript), app.query_one(SidePanels), app.query_one(StatusLine), app.query_one(SeekBar)

        @settings(max_examples=60)
        @given(st.lists(PIECES, max_size=8), st.lists(PIECES, max_size=8), st.text(max_size=30))
        def survives(one: list[str], other: list[str], name: str) -> None:
            presenter = Presenter(*parts)
            presenter.begin(Settings())
            presenter.show(
                [
                    Loading(stage=1, stages=2, doing=name + EVIL),
                    ready(name + EVIL),
                    protocol.Asked(turn=1, text=name + "".join(other)),
                    TurnStarted(
                        turn=1, messages=[], prompt_ids=[], cached_tokens=0, max_new_tokens=9, settings=Settings()
                    ),
                    shown(one, 0),
                    Failed(code="internal", message=name, hint=EVIL),
                    shown(other, 1),
                ]
            )
            for widget in parts[0], parts[2], *parts[1].children:
                check(widget.render_lines(widget.outer_size.region), widget.outer_size.width)

        survives()


def ready(name: str) -> Ready:
    return msgspec.structs.replace(LLAMA, model=name, device=name, dtype=name, quantization=name)


async def test_the_prompt_shows_what_was_pasted_and_gives_nothing_of_it_to_the_terminal() -> None:
    async with hosted(Prompt(), 60, 4) as (pilot, prompt):
        await paste(pilot, prompt, "a\x1b[31mb\x07\tc\r\nd\x9be")
        assert prompt.text == "a␛[31mb␇\tc\r\nd▯e"
        prompt.load_text("")
        prompt.offer("x\x1b]0;title\x07")
        assert prompt.text == "x␛]0;title␇"
        await pilot.pause()
        assert "".join(lines(prompt)).isprintable()


async def paste(pilot: Pilot[None], prompt: Prompt, text: str) -> None:
    prompt.focus()
    pilot.app.post_message(Paste(text))
    await pilot.pause()


async def test_a_notice_shows_what_it_is_given_and_nothing_of_it_reaches_the_terminal() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: "/tmp/[bold]" in "".join(strip.text for strip in screen(stage)), pilot):
            stage.app.notify(f"No room in /tmp/[bold]{EVIL}[/x]")
        check(screen(stage), 100)


def screen(stage: Stage) -> list[Strip]:
    return stage.app.screen._compositor.render_strips()
