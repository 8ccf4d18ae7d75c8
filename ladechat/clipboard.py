"""What is copied goes into a file too: many terminals take no text for the clipboard, and none says so."""

import os
import tempfile
from pathlib import Path

from platformdirs import user_state_path


def keep(text: str, folder: Path | None = None) -> Path | None:
    """Put a text into the file that holds what was copied last, which only its user may read.

    Args:
        text: what was copied.
        folder: where the file is; by default where the platform keeps a program's state.

    Returns:
        The file, or None if it cannot be written.
    """
    path = (folder or user_state_path("ladechat")) / "copied.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".copied-", dir=path.parent)  # readable by its user alone
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
