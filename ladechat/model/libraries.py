"""The libraries that compute, imported in one place: where they cannot be, a sentence says why."""

import importlib

from ladechat.model.checkpoint.files import LoadError

LIBRARIES = ("torch", "transformers")


def import_libraries() -> None:
    """Import torch and transformers, which takes seconds.

    Raises:
        LoadError: one of them is missing, or broken.
    """
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except Exception as error:  # a library of the system that is missing is an OSError, and there are others
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            message = f"{name} cannot be imported: {reason.removesuffix('.')}."
            hint = "Install it anew, as docs/installing.md says; in a checkout: remove .venv, then make setup."
            raise LoadError("load_failed", message, hint) from error
