"""A folder with modules in it that are named like those that ladechat imports."""

from pathlib import Path

NAMES = ("torch", "transformers", "ladechat", "typer", "msgspec", "httpx", "numpy", "accelerate")


class HostileFolder:
    """A folder whose modules leave a trace when they are imported, and then fail.

    Args:
        folder: the modules are written into it.
        but: a name that is left out.
    """

    def __init__(self, folder: Path, but: str = "") -> None:
        self.folder = folder
        self._trace = folder / "trace"
        code = f"open({str(self._trace)!r}, 'a').write(__name__ + ' ')\nraise ImportError('from the wrong folder')\n"
        for name in NAMES:
            if name != but:
                (folder / f"{name}.py").write_text(code)

    @property
    def imported(self) -> list[str]:
        """The modules that were imported, in order."""
        return self._trace.read_text().split() if self._trace.exists() else []
