"""Where what drafting has learnt from a model's answers is saved, and how that is cleared."""

import hashlib
from pathlib import Path

from platformdirs import user_cache_path


def drafts_folder() -> Path:
    """Return the folder of these files, whether or not it exists."""
    return user_cache_path("ladechat") / "drafts"


def drafts_file(*model: str) -> Path:
    """Return the file of a model, which these texts distinguish from others."""
    return drafts_folder() / hashlib.blake2b("\n".join(model).encode(), digest_size=12).hexdigest()


def forget_drafts() -> None:
    """Delete the files of all models. A running engine whose file is gone forgets what it has learnt when it saves.

    Raises:
        OSError: one cannot be deleted.
    """
    for file in drafts_folder().glob("*"):
        if file.is_file():
            file.unlink(missing_ok=True)
