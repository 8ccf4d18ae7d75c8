"""Copied text is also saved in a file: many terminals do not support writing the clipboard, and none reports it."""

import os
import tempfile
from pathlib import Path

from platformdirs import user_state_path


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
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".copied-", dir=path.parent)  # readable only by its owner
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="") as file:
                file.write(text)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        return None
    return path
