"""How far the reader has come: a small file in the user's data folder, which only its user may read."""

import contextlib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace
from platformdirs import user_data_path

from ladechat.files import read_file, replace_file
from ladechat.lessons.scenes import SCENES

Count = Annotated[int, msgspec.Meta(ge=0)]

PRIVATE = 0o600
DAMAGED = "The file that says how far you were cannot be read, so the lessons begin anew."


class Score(msgspec.Struct, frozen=True):
    """Predictions of a scene: those that came true, and all."""

    right: Count
    made: Count


class Progress(msgspec.Struct, frozen=True):
    """The scene by its name, the card that was reached in it, what was predicted there; and all scores."""

    scene: str = SCENES[0].name
    card: Count = 0
    choices: list[Count] = []
    scores: dict[str, Score] = {}

    @property
    def number(self) -> int:
        """Of the scene, from 0; the first one for a name that there is not."""
        names = [scene.name for scene in SCENES]
        return names.index(self.scene) if self.scene in names else 0

    @property
    def right(self) -> int:
        return sum(score.right for score in self.scores.values())

    @property
    def made(self) -> int:
        return sum(score.made for score in self.scores.values())

    def at_scene(self, number: int) -> "Progress":
        """At the beginning of another scene."""
        return replace(self, scene=SCENES[number].name, card=0, choices=[])


class ProgressFile:
    """Reads and writes it. What cannot be written is not missed.

    Args:
        path: by default in the user's data folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or user_data_path("ladechat") / "learn.json"

    def read(self) -> tuple[Progress, str]:
        """How far one is, and what is the matter with the file, in a sentence; "" if nothing is."""
        try:
            return msgspec.json.decode(read_file(self._path), type=Progress), ""
        except FileNotFoundError:
            return Progress(), ""
        except (OSError, msgspec.DecodeError, ValueError, RecursionError):
            return Progress(), DAMAGED

    def write(self, progress: Progress) -> None:
        """Keep it."""
        with contextlib.suppress(OSError):
            replace_file(self._path, msgspec.json.encode(progress), PRIVATE)
