"""The question in the user's editor, and a key that clears the prompt."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ladechat.widgets.prompt.completions import Completions
from ladechat.widgets.prompt.prompt import Prompt
from tests.app.stage import Stage, ask
from tests.waiting import brings, press

ADDS = '#!/bin/sh\nprintf "%s, edited\\n" "$(cat "$2")" > "$2.new" && mv "$2.new" "$2"\nexit ${1#-}\n'
"""An editor that adds a word, and ends with the code that is its option."""


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's editor; the editor of the other variable would fail."""
    path = tmp_path / "my editor"
    path.write_text(ADDS)
    path.chmod(0o700)
    monkeypatch.setenv("VISUAL", f"'{path}' -0")
    monkeypatch.setenv("EDITOR", "false")
    return path


def on_terminal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the app give a terminal away, which the one of the tests cannot; return what happens, in order."""
    happened: list[str] = []

    @contextmanager
    def suspend() -> Iterator[None]:
        happened.append("given")
        yield
        happened.append("back")

    monkeypatch.setattr(stage.app, "suspend", suspend)
    return happened


@pytest.mark.parametrize("keys", [("f12",), ("ctrl+x", "ctrl+e")])
async def test_a_key_opens_the_text_in_the_users_editor_and_an_undo_brings_it_back(
    keys: tuple[str, ...], editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Stage().ready() as (pilot, stage):
        happened = on_terminal(stage, monkeypatch)
        stage.app.query_one(Prompt).load_text("  one\n\ttwo")
        await press(pilot, *keys, brings=lambda: stage.prompt == "  one\n\ttwo, edited")
        assert happened == ["given", "back"]
        await press(pilot, "ctrl+z", brings=lambda: stage.prompt == "  one\n\ttwo")
        await ask(pilot, "/editor", brings=lambda: stage.prompt == ", edited")
        assert stage.asked == []


async def test_ctrl_e_alone_and_ctrl_x_with_a_selection_are_what_they_were(editor: Path) -> None:
    async with Stage().ready() as (pilot, stage):
        await press(pilot, *"one", "home", "ctrl+e", "!", brings=lambda: stage.prompt == "one!")
        await press(pilot, "ctrl+a", "ctrl+x", "ctrl+e", brings=lambda: stage.prompt == "")
        await press(pilot, *"two", "ctrl+x", "home", "ctrl+e", "!", brings=lambda: stage.prompt == "two!")
        assert not any("editor" in said for said in stage.notices)


async def test_an_editor_that_fails_changes_nothing_and_says_why(
    tmp_path: Path, editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Stage().ready() as (pilot, stage):
        stage.app.query_one(Prompt).load_text("one")
        await press(pilot, "f12", brings=lambda: "a page in a browser" in stage.notice)  # nor is the tests' a terminal
        happened = on_terminal(stage, monkeypatch)
        monkeypatch.setenv("VISUAL", f"'{editor}' -3")
        await press(pilot, "f12", brings=lambda: stage.notice.endswith("my editor ended with code 3."))
        monkeypatch.setenv("VISUAL", f"'{tmp_path}/none'")
        await press(pilot, "f12", brings=lambda: stage.notice.startswith("No editor is found"))
        monkeypatch.setenv("VISUAL", "'torn")
        monkeypatch.setenv("PATH", str(tmp_path))
        await press(pilot, "f12", brings=lambda: len(stage.notices) == 4)
        assert stage.notice.startswith("No editor is found") and stage.prompt == "one"
        assert happened == ["given", "back"]


async def test_escape_clears_the_prompt_where_nothing_else_is_left_and_an_undo_brings_it_back() -> None:
    async with Stage().ready() as (pilot, stage):
        shown = stage.app.query_one(Completions)
        await press(pilot, *"/he", brings=lambda: shown.display)
        await press(pilot, "escape", brings=lambda: not shown.display and stage.prompt == "/he")
        await press(pilot, "escape", brings=lambda: stage.prompt == "" and "Ctrl+Z" in stage.notice)
        async with brings(lambda: stage.prompt == "/he", pilot):
            await pilot.press("ctrl+z")
