"""An export beside the app: what is told while it runs, and why there is no file."""

import sys

import pytest

from ladechat.screens.chat import recordings as exporting
from ladechat.screens.chat.recordings import ExportFailed, export


async def told(monkeypatch: pytest.MonkeyPatch, script: str) -> tuple[list[str], str]:
    """The progress and the failure of an export in whose place a script runs."""
    monkeypatch.setattr(exporting, "COMMAND", (sys.executable, "-c", f"import os, signal, sys\n{script}"))
    progress: list[str] = []
    with pytest.raises(ExportFailed) as failed:
        await export([], [], progress.append)
    return progress, str(failed.value)


async def test_progress_is_not_given_as_the_reason_why_an_export_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "print('drawing 45%', file=sys.stderr, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    assert await told(monkeypatch, script) == (
        ["drawing 45%"],
        "The export ended without a word; try another format.",
    )


@pytest.mark.parametrize("said", ["ladechat: The disk is full.", "Error: No such option: --sie"])
async def test_the_reason_is_what_the_program_says_among_lines_of_any_length(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"sys.stderr.write('x' * 200_000 + '\\n{said}\\nbye\\n'); sys.exit(1)"
    progress, why = await told(monkeypatch, script)
    assert said.endswith(f": {why}")
    assert progress[-1] == "bye" and max(map(len, progress)) < 100_000
