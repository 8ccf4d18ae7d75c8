"""The prompt: what is typed arrives, however fast it comes."""

from textual import events
from textual.widgets.text_area import Edit, EditResult

from ladechat.widgets.prompt import Prompt
from tests.app.stage import Stage
from tests.waiting import brings, until

LONG = "the cat sat on the mat, and " * 300


async def test_what_is_pasted_without_being_marked_as_such_arrives_whole_and_in_few_insertions() -> None:
    """Each insertion wraps the whole line anew: one for each of thousands of keys would take minutes."""
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        prompt = stage.app.query_one(Prompt)
        await until(lambda: prompt.has_focus, pilot)
        inserted: list[str] = []
        edit_prompt = prompt.edit

        def counted(edit: Edit) -> EditResult:
            inserted.append(edit.text)
            return edit_prompt(edit)

        prompt.edit = counted  # type: ignore[method-assign]
        for character in LONG:
            stage.app.post_message(events.Key("space" if character == " " else character, character))
        await until(lambda: len(prompt.text) == len(LONG), pilot)
        assert prompt.text == "".join(inserted) == LONG
        assert len(inserted) < len(LONG) / 10


async def test_keys_that_steer_act_behind_the_characters_before_them() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        prompt = stage.app.query_one(Prompt)
        await until(lambda: prompt.has_focus, pilot)
        async with brings(lambda: prompt.text == "abxde\nlast", pilot):
            await pilot.press(*"abc", "backspace", *"de", "left", "left", "x", "end", "ctrl+j", *"last")
        async with brings(lambda: bool(stage.engine.questions), pilot):
            await pilot.press("up", "home", *"go ", "enter")
        assert stage.engine.questions[-1].messages[-1].content == "go abxde\nlast"


async def test_no_letter_overtakes_the_backspace_before_it() -> None:
    """The keys of an app at work wait in line together, though nobody typed them at once."""
    stage = Stage()
    async with stage.app.run_test(size=(100, 30)) as pilot:
        prompt = stage.app.query_one(Prompt)
        await until(lambda: prompt.has_focus, pilot)
        async with brings(lambda: prompt.text == "the cart", pilot):
            await pilot.press(*"the cart")
        for key, character in (("backspace", "\x7f"), ("backspace", "\x7f"), ("t", "t"), ("left", None), ("h", "h")):
            stage.app.post_message(events.Key(key, character))
        await until(lambda: prompt.text == "the caht", pilot)
