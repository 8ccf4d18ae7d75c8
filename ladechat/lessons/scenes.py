"""The scenes, in order."""

from ladechat.lessons import hidden_transfer, jacobi, numbers, one_token, pool, verification, window

SCENES = (
    one_token.SCENE,
    jacobi.SCENE,
    window.SCENE,
    pool.SCENE,
    verification.SCENE,
    numbers.SCENE,
    hidden_transfer.SCENE,
)
