"""What every screen looks like. A new look is accepted, once seen, with `--snapshot-update`."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ladechat.lessons.lesson import Phase
from tests import scenes
from tests.scenes import Scene

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
THEMES = {"dark": "textual-dark", "light": "textual-light", "plain": "textual-dark"}
"""By the names of the looks; `plain` is without colours."""

MAIN: dict[str, Callable[[Path], Scene]] = {
    "answering": lambda _: scenes.mid_answer(),
    "looking_back": lambda _: scenes.after_answer(*["left"] * 9),
    "replay": lambda _: scenes.replay(),
    "race": lambda _: scenes.race(*scenes.MID_RACE),
    "lesson": lambda _: scenes.lesson(scenes.PREDICTED, Phase.EXPLAINED),
}
"""The screens that are looked at longest: in each size, and in each look."""
OTHERS: dict[str, Callable[[Path], Scene]] = {
    "begun": lambda _: scenes.begun(),
    "auto": lambda _: scenes.mid_answer("auto"),
    "pseudo_states": lambda _: scenes.mid_answer("hidden_transfer"),
    "suffix": lambda _: scenes.mid_answer("suffix"),
    "plain_decoding": lambda _: scenes.mid_answer("autoregressive"),
    "demo_look": lambda _: scenes.mid_answer("lookahead", "f4"),
    "selected": lambda _: scenes.selected(),
    "finished": lambda _: scenes.after_answer(),
    "mask": lambda _: scenes.after_answer("f10"),
    "biography": lambda _: scenes.after_answer(*["left"] * 9, "f10", "f10"),
    "markdown": lambda _: scenes.after_answer("ctrl+g"),
    "long_question": lambda _: scenes.after_answer(question=scenes.LISTING),
    "panels_hidden": lambda _: scenes.after_answer("f2"),
    "queue": lambda _: scenes.queue(),
    "error": lambda _: scenes.error(),
    "slash_commands": lambda _: scenes.after_answer("slash"),
    "palette": lambda _: scenes.palette_open(),
    "explanations": lambda _: scenes.after_answer("question_mark"),
    "help": lambda _: scenes.after_answer("f1"),
    "settings": lambda _: scenes.after_command("/settings"),
    "models": lambda folder: scenes.after_command("/model", folder),
    "system_prompt": lambda _: scenes.after_command("/system"),
    "conversations": lambda folder: scenes.conversations(folder, "down", "down"),
    "deleted": lambda folder: scenes.conversations(folder, "down", "f8"),
    "race_measured": lambda _: scenes.measuring(),
    "race_seal": lambda _: scenes.race("end"),
    "race_seconds": lambda _: scenes.race(*scenes.MID_RACE, "c"),
    "replay_search": lambda _: scenes.replay("slash"),
    "prediction": lambda _: scenes.lesson(scenes.ASKED, Phase.WAITING),
}
"""In the dark, as they are on a small terminal."""
SAID_BY_COLOUR = [
    *((name, "plain") for name in ("selected", "demo_look", "pseudo_states", "mask", "biography", "markdown", "error")),
    *((name, "plain") for name in ("slash_commands", "conversations")),
    *((name, "light") for name in ("selected", "markdown")),
]
"""Of the others, those that say something by colours, where there are none or others."""
BY_DEFAULT = {
    ("answering", "80x24", "dark"),
    ("answering", "200x60", "dark"),
    ("answering", "80x24", "light"),
    ("looking_back", "80x24", "plain"),
    ("replay", "120x40", "dark"),
    ("race", "80x24", "plain"),
    ("lesson", "80x24", "dark"),
    ("conversations", "80x24", "dark"),
}
"""The rest is compared in the long run."""


def cases() -> Iterator[object]:
    wanted = [(name, size, "dark") for name in MAIN for size in SIZES]
    wanted += [(name, "80x24", look) for name in MAIN for look in ("light", "plain")]
    wanted += [(name, "80x24", "dark") for name in OTHERS]
    wanted += [(name, "120x40", look) for name, look in SAID_BY_COLOUR]
    for case in wanted:
        yield pytest.param(*case, id="-".join(case), marks=() if case in BY_DEFAULT else pytest.mark.full)


@pytest.mark.parametrize(("name", "size", "look"), cases())
def test_snapshot_of(
    name: str,
    size: str,
    look: str,
    snap_compare: Callable[..., bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if look == "plain":
        monkeypatch.setenv("NO_COLOR", "1")
    app, prepare = {**MAIN, **OTHERS}[name](tmp_path)

    async def run_before(pilot: Pilot[int]) -> None:
        app.theme = THEMES[look]
        await prepare(pilot)
        await scenes.settled(pilot)

    assert snap_compare(app, terminal_size=SIZES[size], run_before=run_before)
