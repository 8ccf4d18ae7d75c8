"""The exported page: the conversation in the app's colours, all there without a script, and nothing but text in it."""

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.color import Color

from ladechat.export.conversation import talk_of
from ladechat.export.html import html
from ladechat.export.page import SURFACES
from ladechat.palette import Palette
from ladechat.protocol import Step
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.cells import visible
from ladechat.widgets.flow import safe
from ladechat.widgets.formatting import is_own
from tests.export.pages import Page
from tests.export.talks import HOSTILE, hostile, two_turns
from tests.session.streams import GOLDEN
from tests.test_refusals import RAW_CONTROLS

CUES = ("bold", "underlined")
RECORDINGS: list[Callable[[Path], Recording]] = [lambda _: Recording.read(GOLDEN[-1]), two_turns, hostile]


def steps_of(recording: Recording) -> list[list[Step]]:
    """By turns."""
    steps = [event for event in recording.events if isinstance(event, Step)]
    return [[step for step in steps if step.turn == turn] for turn in dict.fromkeys(step.turn for step in steps)]


def cue_of(step: Step, *, own: bool) -> str:
    """What tells a token from others without colours, as the app has it."""
    style = Palette().style_of_step(step.index, len(step.token_ids), own=own)
    return "bold" if style.bold else "underlined" if style.underline else ""


def colour_of(page: str, look: str, *, dark: bool) -> str | None:
    """The colour that the style sheet gives a class."""
    hue = re.search(r"hue\d+", look)
    if hue is None:
        return None
    root = re.findall(r":root \{([^}]*--[^}]*)\}", page)[dark]
    found = re.search(rf"--{hue[0]}: (#\w+);", root)
    assert found and f".{hue[0]} {{ color: var(--{hue[0]}); }}" in page
    return found[1]


@pytest.mark.parametrize("make", RECORDINGS, ids=["golden", "two turns", "hostile"])
def test_a_page_holds_every_token_in_the_colour_and_with_the_cue_of_its_step(
    make: Callable[[Path], Recording], tmp_path: Path
) -> None:
    recording = make(tmp_path)
    content = html(talk_of(recording))
    page = Page(content)
    assert len(page.answers) == len(steps_of(recording)) > 0
    for shown, tokens, cues, steps in zip(page.answers, page.tokens, page.cues, steps_of(recording), strict=True):
        assert "".join(text for _, text in shown) == safe("".join(p for step in steps for p in step.pieces).lstrip())
        assert [text for _, text in tokens] == [visible(piece) for step in steps for piece in step.pieces]
        for (look, _), step in zip(shown, steps, strict=True):
            for dark in (True, False):
                style = Palette(dark=dark).style_of_step(step.index, len(step.token_ids))
                colour = colour_of(content, look, dark=dark)
                assert (colour and Color.parse(colour)) == style.color
        own = iter([(step, is_own(step, token)) for step in steps for token in range(len(step.pieces))])
        drafted = [
            (cue, piece)
            for step in steps
            for token, piece in enumerate(step.pieces)
            if (cue := cue_of(step, own=is_own(step, token)))
        ]
        assert "".join(text for _, text in cues).strip() == safe("".join(piece for _, piece in drafted)).strip()
        assert {look for look, _ in cues} == {cue for cue, _ in drafted}
        for look, _ in tokens:
            step, is_models = next(own)
            assert [part for part in look.split() if part in CUES] == list(filter(None, [cue_of(step, own=is_models)]))


def test_a_page_says_of_each_step_its_slots_and_the_source_of_each_token() -> None:
    recording = Recording.read(GOLDEN[0])
    page = Page(html(talk_of(recording)))
    rows = iter(page.texts["td"])
    assert {"model", "window", "prompt", "answer"} <= set(page.texts["span"]), "as the screen names them"
    for steps in steps_of(recording):
        tokens = 0
        for number, step in enumerate(steps, start=1):
            tokens += len(step.token_ids)
            drafted = len(step.draft.token_ids) if step.draft else 0
            shown = [next(rows) for _ in range(5)]
            assert shown[0] == str(number)
            assert shown[2:] == [str(step.timing.slots), str(drafted), f"{tokens / number:.2f}"]


def test_what_a_recording_says_stays_text(tmp_path: Path) -> None:
    content = html(talk_of(hostile(tmp_path)))
    page = Page(content)  # which refuses elements and attributes that a page does not have
    assert not RAW_CONTROLS.search(content)
    assert len(page.texts["script"]) == len(page.texts["style"]) == 1
    assert any("alert(1)</script>" in text for text in page.texts["p"])
    assert any("alert(1)</script>" in text for text in page.texts["code"])
    assert safe(HOSTILE) in "".join(text for _, text in page.answers[0])


def test_a_page_fetches_nothing_and_runs_only_its_own_script(tmp_path: Path) -> None:
    content = html(talk_of(two_turns(tmp_path)))
    page = Page(content)
    assert page.policy.startswith("default-src 'none';") and "unsafe" not in page.policy
    for tag in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.texts[tag][0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page.policy
    assert not re.search(r"https?:|url\(|@import|fetch|XMLHttp", content)


def test_a_cleared_conversation_and_an_answer_without_its_end_are_there(tmp_path: Path) -> None:
    talk = talk_of(two_turns(tmp_path))
    assert [(turn.question, turn.begins_anew) for turn in talk.turns] == [("漢字 and Ünï?", False), ("Again?", True)]
    content = html(talk)
    assert any("its end was not recorded" in text for text in Page(content).texts["p"])
    assert content.count('class="turn anew"') == 1


def contrast(first: str, second: str) -> float:
    """By WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("dark", [True, False], ids=["dark", "light"])
def test_every_colour_can_be_read_on_what_it_is_drawn_on(dark: bool) -> None:
    surfaces = SURFACES[dark]
    hues = {str(Palette(dark=dark).style_of_step(index, 2).color.name) for index in range(6)}  # type: ignore[union-attr]
    for on in ("background", "surface", "here"):
        for colour in {surfaces["text"], *hues, *({surfaces["muted"]} if on != "here" else ())}:
            assert contrast(colour, surfaces[on]) >= 4.5, (colour, on)
