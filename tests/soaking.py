"""What both runs of an hour have in common: how long they last, and what is asked. No torch, as the app has none."""

import os
import time
from pathlib import Path

import pytest

MINUTES = float(os.environ.get("LADECHAT_SOAK_MINUTES", "2"))
"""How long a process is watched, after the warm-up."""
WARM_UP_MINUTES, WARM_UP_TURNS = min(5.0, MINUTES / 2), 120
"""At least: until each decoder was made, what learns is full (`tests.engine.small_memories`), the KV cache has grown,
and every kind of screen was drawn."""
QUESTIONS = (
    "What is the n-gram pool?",
    "How do I choose W, N and G?",
    "Write a Python function that reverses a string.",
    "Count to twenty.",
    "Tell me a story about a cat.",
    "Why? Tell me more.",
    "日本語 🙂 e\u0301 \u202e \x1b[31m",
    "Repeat: the cat sat on the mat and the cat sat on the mat.",
)


def is_warm(began: float, turns: int) -> bool:
    """Is the warm-up over, after so many turns since then (`time.monotonic`)?"""
    return turns >= WARM_UP_TURNS and time.monotonic() - began >= 60 * WARM_UP_MINUTES


RUNS_LONG = [
    pytest.mark.full,
    pytest.mark.timeout(60 * (MINUTES + WARM_UP_MINUTES) + 3600),
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc"),
]
"""The marks of their tests."""
