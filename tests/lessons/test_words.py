"""How much a reader of the lessons has to read, and what the scenes say of the real model."""

import pytest

from ladechat.lessons.scene import Scene
from ladechat.lessons.scenes import SCENES
from tools.lesson_words import shown

MOST_WORDS = 170


@pytest.mark.full
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
async def test_a_scene_is_read_in_a_minute_as_the_bundled_model_plays_it(scene: Scene) -> None:
    texts = await shown(scene)
    assert sum(len(text.split()) for text in texts) <= MOST_WORDS, "\n".join(texts)


@pytest.mark.full
async def test_scene_2_stops_where_the_right_word_stood_at_the_wrong_place() -> None:
    texts = await shown(SCENES[1])
    assert any("the right word at the wrong place" in text for text in texts), "\n".join(texts)
