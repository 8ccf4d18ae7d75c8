"""Rules that run the code of an answer: in a process and a folder of its own, with limits of time and memory."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence

SECONDS = 5
MEMORY = 1 << 30
"""Bytes, where the system has such a limit."""

LIMITS = f"""
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
except (ImportError, ValueError, OSError):
    pass
"""


def runs(checks: Sequence[str], answers: Sequence[str]) -> str | None:
    """The code in the answer runs, and these expressions are true after it."""
    source = code_in(answers[-1])
    return "has no code" if source is None else failure(source, checks)


def runs_any(cases: Sequence[str], answers: Sequence[str]) -> str | None:
    """As `runs`, whatever the function is called: cases are written `argument -> result`."""
    source = code_in(answers[-1])
    name = re.search(r"def (\w+)\(", source or "")
    if source is None or name is None:
        return "has no function"
    pairs = [case.split(" -> ") for case in cases]
    return failure(source, [f"{name[1]}({given}) == {result}" for given, result in pairs])


def code_in(answer: str) -> str | None:
    """The code of an answer: the first fenced piece that has a function, or else all from the first `def` on."""
    pieces: list[str] = re.findall(r"```\w*\n(.*?)(?:```|\Z)", answer, re.DOTALL)
    with_function = [piece for piece in pieces if "def " in piece]
    if with_function:
        return with_function[0]
    bare = re.search(r"^(?:from |import |def ).*", answer, re.DOTALL | re.MULTILINE)
    return bare[0] if bare and "def " in bare[0] else None


def failure(source: str, checks: Sequence[str]) -> str | None:
    """What goes wrong when the code and then the checks run."""
    program = "\n".join([LIMITS, source, *(f"assert {check}, {check!r}" for check in checks)])
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", program],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"runs longer than {SECONDS} s"
    said = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else f"fails: {said[-1] if said else done.returncode}"
