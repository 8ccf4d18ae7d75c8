"""The session's own failure events, for answers and engines that end early."""

from ladechat.protocol import Failed

BROKEN_OFF = Failed(
    code="internal",
    message="This answer was broken off: the engine is started again.",
    hint="Its question is kept.",
    fatal=True,
)
CALLED_OFF = Failed(
    code="busy",
    message="Not asked: the model was still loading.",
    hint="The question is in the prompt again, or ↑ brings it there.",
)
NOT_CONTINUED = Failed(
    code="busy",
    message="The answer does not go on: the model was still loading.",
    hint="/continue asks for it once more.",
)
DOWNLOAD_STOPPED = "The download was stopped; what has come is kept."
RESTART_HINT = "The conversation is still here; F5 starts the engine again."
