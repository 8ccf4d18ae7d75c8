"""Counts the words that a reader of the lessons has to read, scene by scene.

Plays each scene with the bundled model, and counts every text and every choice of its cards, each as often as it is
shown anew; headings, hints and panels are left out.

    python -m tools.lesson_words
"""

import argparse
import asyncio

from textual.pilot import Pilot

from ladechat.app import LadechatApp
from ladechat.lessons.lesson import Phase
from ladechat.lessons.progress import Progress
from ladechat.lessons.scene import Predict, Scene, Task
from ladechat.lessons.scenes import SCENES
from ladechat.screens.learn.lesson_session import lesson_session
from ladechat.screens.learn.screen import LearnScreen

SIZE = (120, 40)
SECONDS_TO_LOOK = 0.05
LEAPS = {"one_token": "end", "jacobi": "end", "verification": "pageup", "numbers": "pagedown"}
"""The key that does what a scene's task asks for; in other scenes, "home"."""


async def shown(scene: Scene) -> list[str]:
    """Return the texts and choices of a scene, in order."""
    session = lesson_session()
    screen = LearnScreen(session, Progress(scene=scene.name))
    texts = dict[tuple[int, str], None]()
    async with LadechatApp(screen, session).run_test(size=SIZE) as pilot:
        while True:
            lesson, page = screen.lesson, screen.lesson.page
            choices = page.card.choices if isinstance(page.card, Predict) else ()
            if page.phase is not Phase.RUNNING:
                texts |= dict.fromkeys((lesson.place, text) for text in (page.text, *choices))
            if lesson.at_last_card:
                return [text for _, text in texts]
            await _act(pilot, screen)


async def _act(pilot: Pilot[int], screen: LearnScreen) -> None:
    """Do what the card asks for, and wait for what it brings."""
    lesson, page = screen.lesson, screen.lesson.page
    if page.phase is Phase.RUNNING:
        await pilot.pause(SECONDS_TO_LOOK)
    elif isinstance(page.card, Predict) and page.phase is Phase.WAITING:
        await pilot.press("1")
    elif lesson.missing:
        await pilot.press(LEAPS.get(lesson.scene.name, "home"))
        while lesson.missing:
            await pilot.pause(SECONDS_TO_LOOK)
    elif isinstance(page.card, Task) and page.phase is Phase.WAITING and not lesson.runs[-1].ended:
        await pilot.pause(SECONDS_TO_LOOK)
    else:
        await pilot.press("enter")


async def main() -> None:
    """Print the number of words of each scene, and of all."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    counts = []
    for scene in SCENES:
        texts = await shown(scene)
        counts.append(sum(len(text.split()) for text in texts))
        print(f"{counts[-1]:5} {scene.title}", flush=True)
        print(*(f"        {len(text.split()):3} {text}" for text in texts), sep="\n")
    print(f"{sum(counts):5} all")


if __name__ == "__main__":
    asyncio.run(main())
