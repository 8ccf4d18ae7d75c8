"""The `failed` events for commands that no engine can carry out."""

from ladechat.protocol import Failed


def busy(turn: int) -> Failed:
    """Return the event for a second answer that was requested while one is being written."""
    hint = "Ask again when its turn_finished has come; stop brings it sooner."
    return Failed(code="busy", message="Another answer is being written.", hint=hint, turn=turn)


def bad_command(reason: object, turn: int | None = None) -> Failed:
    """Return the event for a line, or a request in it, that is no valid command."""
    message = f"A line on the engine's input is not a command it can carry out: {reason}."
    hint = "docs/protocol.md lists the commands and their fields."
    return Failed(code="bad_command", message=message, hint=hint, turn=turn)
