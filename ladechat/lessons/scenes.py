"""The scenes, in order, and the questions after them."""

from ladechat.lessons import hidden_transfer, jacobi, numbers, one_token, pool, questions, verification, window

SCENES = (
    one_token.SCENE,
    jacobi.SCENE,
    window.SCENE,
    pool.SCENE,
    verification.SCENE,
    numbers.SCENE,
    hidden_transfer.SCENE,
)
CHAPTERS = (*SCENES, questions.SCENE)
"""All that a reader goes through."""


EXPLAINED_IN = {one: number for number, scene in enumerate(SCENES, 1) for one in scene.explains}
"""For each panel and slider that a scene explains, by its id, the number of that scene, the last one if several do."""


def questions_about(decoder: str) -> tuple[str, ...]:
    """Return two questions about a decoder that the bundled model answers: those of its scene, or about the pool."""
    return next((scene.asks for scene in SCENES if scene.decoder == decoder), pool.SCENE.asks)
