"""Ends an answer at a text, for models that mark its end by no token: "\\nUser:" starts the next question."""

from collections.abc import Sequence

from ladechat.engine.detokenizer import TokenTexts


class StopText:
    """Looks for one text in an answer, and holds back a possible beginning of it. That text and any after it are never
    shown.

    Attributes:
        reached: whether the text has come, which ends the answer.
    """

    def __init__(self, stop: str, texts: TokenTexts, answer: Sequence[int] = ()) -> None:
        """Begin with the tokens that the answer already has, where it is continued."""
        self.reached = False
        self._stop = stop
        self._texts = texts
        self._latest = list(answer[-len(stop) :])
        self._held = self._split(texts.decode(list(answer)))[1] if answer else ""

    def __call__(self, token: int) -> bool:
        """Return whether this token ends the answer, see `Limits.stop`."""
        self._latest = [*self._latest, token][-len(self._stop) :]  # a token has at least a character, or part of one
        self.reached = self.reached or self._stop in self._texts.decode(self._latest)
        return self.reached

    def shown(self, piece: str) -> str:
        """Return the text that can be shown now and was not shown before."""
        text, self._held = self._split(self._held + piece)
        return text

    def rest(self) -> str:
        """Return the text that was held back, at the end of an answer that cannot be continued."""
        held, self._held = self._held, ""
        return "" if self.reached else held

    def _split(self, text: str) -> tuple[str, str]:
        """Return the text before the stop or a possible beginning of it, and the text to hold back."""
        if self._stop in text:
            return text.partition(self._stop)[0], ""
        held = next((n for n in range(len(self._stop) - 1, 0, -1) if text.endswith(self._stop[:n])), 0)
        return text[: len(text) - held], text[len(text) - held :]
