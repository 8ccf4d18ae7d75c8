"""A card with its heading, its last line and its keys: what the reader can do now."""

from ladechat.lessons.lesson import Lesson, Phase
from ladechat.lessons.progress import Progress
from ladechat.lessons.scene import Predict, Recall, Task
from ladechat.lessons.scenes import CHAPTERS, SCENES
from ladechat.widgets.lessons import LessonCard

ENDED = "The engine has ended. F5 starts it again, and this scene goes on."


def shown_card(lesson: Lesson, progress: Progress, waiting: str, *, reminded: bool, ended: str) -> LessonCard:
    """Return the card that is shown.

    Args:
        lesson: the current scene.
        progress: the number of the scene, and the predictions of all scenes.
        waiting: the text until the card has its own.
        reminded: whether the last line says what the card waits for.
        ended: that the engine has ended, and what to do; "" if it has not.
    """
    page, heading = lesson.page, (lesson.scene.title, where(lesson, progress))
    choices = page.card.choices if isinstance(page.card, Predict) else ()
    urgent = reminder(lesson) if reminded else ""
    last = urgent or hint(lesson, progress, ended)
    return LessonCard(heading, page.text or waiting, last, choices, page.choice, page.outcome, bool(urgent))


def where(lesson: Lesson, progress: Progress) -> str:
    """Return the reader's place, and the minutes left: those of the scenes, by the cards of this one."""
    scene, number = lesson.scene, progress.number
    left = scene.minutes * (len(scene.cards) - lesson.place) / len(scene.cards)
    left += sum(later.minutes for later in CHAPTERS[number + 1 :])
    chapter = f"scene {number + 1} of {len(SCENES)} · " if scene in SCENES else ""
    return f"{chapter}card {lesson.place + 1} of {len(scene.cards)} · {max(round(left), 1)} min left"


def hint(lesson: Lesson, progress: Progress, ended: str) -> str:
    """Return the line that explains the keys; see `shown_card` for the arguments."""
    page = lesson.page
    if ended:
        return ended
    if isinstance(page.card, Recall) and page.phase is Phase.WAITING:
        return "Answer in your head · Enter shows the answer" + (" · n: the next question" if lesson.can_skip else "")
    if lesson.looking_back:
        return "Enter forward · this is how it was"
    if page.phase is Phase.RUNNING:
        return "The engine works · Enter hurries it"
    if isinstance(page.card, Predict) and page.phase is Phase.WAITING:
        return f"Predict: press {_numbers(page.card)}"
    if not isinstance(page.card, Task):
        return _way_on(lesson, progress)
    if page.phase is Phase.EXPLAINED:
        return f"{_way_on(lesson, progress)} · or move a slider and try again"
    if lesson.holds_settings or lesson.missing:
        skipped = " · n skips" if acts(lesson, progress, "next_scene", ()) else ""
        missing = "The answer before ends first." if lesson.holds_settings else lesson.missing
        return f"{missing} ← → moves it · Tab: another{skipped}"
    return "Enter asks again · ← → move the slider · Tab: another"


def reminder(lesson: Lesson) -> str:
    """Return what the card waits for, if Enter cannot continue; "" if it can."""
    if lesson.enter_acts:
        return ""
    card = lesson.page.card
    if isinstance(card, Predict):
        return f"Not yet: press a number first, {_numbers(card)}."
    return f"Not yet: {lesson.missing} ← → moves it"


def acts(lesson: Lesson, progress: Progress, action: str, parameters: tuple[object, ...]) -> bool:
    """Return whether this action of a key does something now."""
    page = lesson.page
    match action, parameters:
        case "answer", (int(choice),):
            return isinstance(page.card, Predict) and page.phase is Phase.WAITING and choice < len(page.card.choices)
        case "go_on" | "remind", _:
            return lesson.enter_acts == (action == "go_on")
        case "back", _:
            return lesson.place > 0
        case "next_slot", _:
            return page.slot is not None
        case "next_scene", _:
            return progress.number + 1 < len(CHAPTERS) or lesson.at_last_card or lesson.can_skip
    return True


def _numbers(card: Predict) -> str:
    """Return the numbers to choose from, as in "1 or 2" or "1 to 4"."""
    return f"1 {'to' if len(card.choices) > 2 else 'or'} {len(card.choices)}"


def _way_on(lesson: Lesson, progress: Progress) -> str:
    if not lesson.at_last_card:
        return "Enter goes on"
    if progress.number + 1 < len(CHAPTERS):
        asks = " ".join(lesson.scene.asks)
        following = CHAPTERS[progress.number + 1]
        next_one = f"next scene, {following.title}" if following in SCENES else following.title.lower()
        return f"Later, in the chat, ask the model: {asks}\nEnter: {next_one}"
    return f"Enter leaves · {progress.right} of {progress.made} predictions came true"
