"""The reader's progress, in a small file in the user's data folder that only its user may read."""

import contextlib
from pathlib import Path

import msgspec
from msgspec.structs import replace
from platformdirs import user_data_path

from ladechat.files import PRIVATE, read_saved, replace_file
from ladechat.lessons.lesson import Lesson
from ladechat.lessons.scenes import CHAPTERS
from ladechat.protocol.values import Count


class Score(msgspec.Struct, frozen=True):
    """The number of correct predictions in a scene, and of all."""

    right: Count
    made: Count


class Progress(msgspec.Struct, frozen=True):
    """The name of the current scene, the card reached in it, the predictions made there; and all scores."""

    scene: str = CHAPTERS[0].name
    card: Count = 0
    choices: list[Count] = []
    scores: dict[str, Score] = {}

    @property
    def number(self) -> int:
        """The index of the scene, from 0; 0 for an unknown name."""
        names = [scene.name for scene in CHAPTERS]
        return names.index(self.scene) if self.scene in names else 0

    @property
    def right(self) -> int:
        return sum(score.right for score in self.scores.values())

    @property
    def made(self) -> int:
        return sum(score.made for score in self.scores.values())

    def at_scene(self, number: int) -> "Progress":
        """Return the progress at the beginning of another scene."""
        return replace(self, scene=CHAPTERS[number].name, card=0, choices=[])

    def after(self, lesson: Lesson) -> "Progress":
        """Return the progress with what was reached and predicted in the current scene."""
        scores, predictions = self.scores, lesson.predictions
        if predictions:
            score = Score(sum(page.right for page in predictions), len(predictions))
            if score.made >= scores.get(lesson.scene.name, score).made:
                scores = {**scores, lesson.scene.name: score}
        choices = lesson.choices if lesson.reached >= self.card else self.choices
        return replace(self, card=max(lesson.reached, self.card), choices=choices, scores=scores)


class ProgressFile:
    """Reads and writes the progress, by default in the user's data folder. Errors in writing are ignored."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or user_data_path("ladechat") / "learn.json"

    def read(self) -> tuple[Progress, str]:
        """Return the progress, and what is wrong with the file, in a sentence; "" if nothing is."""
        progress, problem = read_saved(self._path, msgspec.json.Decoder(Progress).decode)
        return progress or Progress(), problem

    def write(self, progress: Progress) -> None:
        """Save the progress."""
        with contextlib.suppress(OSError):
            replace_file(self._path, msgspec.json.encode(progress), PRIVATE)
