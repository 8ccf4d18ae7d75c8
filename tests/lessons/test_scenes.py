"""Every scene over the real engine: it stops where it means to, its task can be done, and every card has room."""

import re

import pytest
from textual.geometry import Size

from ladechat import commands
from ladechat.app import LadechatApp
from ladechat.lessons.lesson import MISSED, PASSED_ALREADY, Lesson, Phase
from ladechat.lessons.progress import Progress
from ladechat.lessons.scene import Predict, Scene, Task
from ladechat.lessons.scenes import CHAPTERS, SCENES
from ladechat.screens.learn.lesson_hint import where
from ladechat.screens.learn.lesson_session import lesson_session
from ladechat.screens.learn.screen import LearnScreen
from ladechat.screens.view import WELCOME
from ladechat.widgets.lessons import LessonBox
from tests.app.stage import Driver
from tests.waiting import press, until

TASK_KEYS = {
    "one_token": "end",
    "jacobi": "end",
    "window": "home",
    "pool": "home",
    "verification": "pageup",
    "numbers": "pageup",
    "hidden_transfer": "home",
}
"""What moves the slider of each task to where it is wanted."""


def test_a_title_leaves_room_for_where_one_is() -> None:
    """The card is 62 cells wide on a terminal of 120 columns, less than on one of 80."""
    for scene in CHAPTERS:
        lesson = Lesson(scene, reached=len(scene.cards))
        assert len(f"{scene.title}  {where(lesson, Progress(scene=scene.name))}") <= 62


def test_what_invites_to_the_lessons_says_the_minutes_that_the_first_card_says() -> None:
    """The welcome said seven, and the card ten."""
    found = re.search(r"(\d+) min left", where(Lesson(SCENES[0]), Progress()))
    minutes = {7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}[int(found[1])] if found else ""
    command = commands.find("learn")
    assert minutes and command is not None
    assert f"{minutes} minutes" in WELCOME and f"{minutes} minutes" in str(command)


@pytest.mark.full
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
async def test_a_scene_reaches_all_its_stops_and_its_task_can_be_done_at_80x24(scene: Scene) -> None:
    lesson = await walked(scene, len(scene.cards))
    assert len(lesson.predictions) == sum(isinstance(card, Predict) for card in scene.cards)
    assert len(lesson.runs) == 1 + sum(isinstance(card, Task) for card in scene.cards)


async def walked(scene: Scene, cards: int) -> Lesson:
    """Go through so many cards of a scene by keys, with the bundled model."""
    session = lesson_session()
    screen = LearnScreen(session, Progress(scene=scene.name))
    async with LadechatApp(screen, session).run_test(size=(80, 24)) as pilot:
        while True:
            await until(lambda: screen.lesson.page.phase is not Phase.RUNNING, pilot)
            await check_card(pilot, screen)
            if screen.lesson.place == cards - 1 and screen.lesson.page.phase is Phase.EXPLAINED:
                return screen.lesson
            await do_what_the_card_asks(pilot, screen)


async def check_card(pilot: Driver, screen: LearnScreen) -> None:
    """The card has something to say, and room for all of it; and what it talks about is on the screen."""
    await pilot.pause()
    page, box = screen.lesson.page, screen.query_one(LessonBox)
    assert page.text not in ("", MISSED, PASSED_ALREADY)
    size = box.content_size
    assert box.get_content_height(Size(80, 24), Size(80, 24), size.width) <= size.height
    panel = screen.query_one(f"#{page.card.panel}")
    assert panel.display and screen.region.contains_region(panel.region)
    assert panel.size.height >= 5 and panel.region.bottom <= box.region.y


async def do_what_the_card_asks(pilot: Driver, screen: LearnScreen) -> None:
    lesson, page = screen.lesson, screen.lesson.page
    before = place_of(lesson)
    if isinstance(page.card, Task) and page.phase is Phase.WAITING:
        await press(pilot, TASK_KEYS[lesson.scene.name], brings=lambda: not lesson.missing)
    predicts = isinstance(page.card, Predict) and page.phase is Phase.WAITING
    await press(pilot, "1" if predicts else "enter", brings=lambda: place_of(lesson) != before)
    if lesson.page.phase is Phase.RUNNING:
        await pilot.press("enter")  # hurry


def place_of(lesson: Lesson) -> tuple[int, Phase]:
    return lesson.place, lesson.page.phase
