"""Takes the thoughts of a model apart from its answer, as they come: between two marks at the beginning of the text."""

from collections.abc import Iterable
from typing import Literal

from ladechat.protocol import ThinkingSwitch

TOKENS_OF_A_MARK = 16
"""The tokens at the end of a prompt that may be a mark, with line breaks."""


def thinking_switch(thinking: ThinkingSwitch) -> dict[str, bool]:
    """Return the variables of a chat template that tell a model to think before it answers, or not to; none for "auto".

    The first is that of Qwen 3, SmolLM 3 and GLM, the second that of DeepSeek and Granite.
    """
    return {} if thinking == "auto" else dict.fromkeys(("enable_thinking", "thinking"), thinking == "on")


class Thoughts:
    """Divides the text of one answer into thoughts and answer. The marks are left out, and the blanks between the two.
    Text that may be part of a mark is held back until the next pieces decide it.

    Args:
        marks: before and after the thoughts.
        begun: whether the prompt ends with the first mark.
    """

    def __init__(self, marks: tuple[str, str], *, begun: bool = False) -> None:
        self.marks = marks
        self._place: Literal["beginning", "thoughts", "between", "answer"] = "thoughts" if begun else "beginning"
        self._held = ""

    def divide(self, pieces: Iterable[str]) -> tuple[list[str], int]:
        """Return the pieces of a step without the marks, and how many of them, at the beginning, are thoughts.

        A piece with their end and the beginning of the answer becomes two, unless the one before it is empty.
        """
        divided: list[str] = []
        thoughts = 0
        for piece in pieces:
            thought, text = self._read(piece)
            if thought and text:
                divided = [*(divided if any(divided[-1:]) else divided[:-1]), thought]
                thoughts = len(divided)
            divided.append(text or thought)
            if not text and (thought or self._place in ("thoughts", "between")):
                thoughts = len(divided)
        return divided, thoughts

    def rest(self) -> str:
        """Return the text of the answer that was held back, at its end. A part of the second mark is none."""
        return self._held if self._place == "beginning" else ""

    def _read(self, piece: str) -> tuple[str, str]:
        """Return what a piece adds to the thoughts, and what to the answer."""
        (opening, closing), thought, text, self._held = self.marks, "", self._held + piece, ""
        if self._place == "beginning":
            begun = text.lstrip()
            if opening.startswith(begun) and begun != opening:  # nothing yet, or a part of the mark
                self._held = text
                return "", ""
            self._place = "thoughts" if begun.startswith(opening) else "answer"
            text = begun.removeprefix(opening) if self._place == "thoughts" else text
        if self._place == "thoughts":
            thought, mark, text = text.partition(closing)
            self._place = "between" if mark else "thoughts"
            if not mark:
                part = next((size for size in range(len(closing), 0, -1) if closing[:size] == thought[-size:]), 0)
                thought, self._held = thought[: len(thought) - part], closing[:part]
        if self._place == "between" and (text := text.lstrip()):
            self._place = "answer"
        return thought, text
