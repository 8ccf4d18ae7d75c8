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


def forget_drafts() -> int:
    """Delete the files of all models, and return how many there were. An engine that runs notices and forgets, too.

    Raises:
        OSError: one cannot be deleted.
    """
    files = [file for file in drafts_folder().glob("*") if file.is_file()]
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)
