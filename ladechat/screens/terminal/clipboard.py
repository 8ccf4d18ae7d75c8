"""Copied text is also saved in a file: many terminals do not support writing the clipboard, and none reports it."""

from pathlib import Path

from platformdirs import user_state_path

from ladechat.files import PRIVATE, replace_file


def keep(text: str, folder: Path | None = None) -> Path | None:
    """Write a text to the file of the last copied text, which only its owner can read.

    Args:
        text: the copied text.
        folder: the folder of the file; by default the platform's folder for a program's state.

    Returns:
        The file, or None if it cannot be written.
    """
    path = (folder or user_state_path("ladechat")) / "copied.txt"
    try:
        replace_file(path, text.encode(errors="replace"), PRIVATE)
    except OSError:
        return None
    return path
