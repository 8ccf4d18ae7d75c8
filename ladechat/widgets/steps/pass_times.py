"""The times of passes, summed over an answer, and its speed compared with plain decoding."""

from typing import NamedTuple

from ladechat.protocol import Step, credible_speedup


class PassTimes(NamedTuple):
    """Sums over passes. Those without a measured plain pass to compare them with count in the first two only.

    Attributes:
        tokens: the tokens that they brought.
        step_ms: their time in milliseconds.
        compared: the number of passes with a measured plain pass.
        compared_ms, plain_ms: the time of those, and of as many plain passes.
    """

    tokens: int = 0
    step_ms: float = 0.0
    compared: int = 0
    compared_ms: float = 0.0
    plain_ms: float = 0.0

    def plus(self, step: Step) -> "PassTimes":
        """Return the sums with one more pass."""
        timing, tokens = step.timing, self.tokens + len(step.token_ids)
        whole = self._replace(tokens=tokens, step_ms=self.step_ms + timing.step_ms)
        if not timing.plain_ms:
            return whole
        return whole._replace(
            compared=self.compared + 1,
            compared_ms=self.compared_ms + timing.step_ms,
            plain_ms=self.plain_ms + timing.plain_ms,
        )

    def since(self, earlier: "PassTimes") -> "PassTimes":
        """Return the sums over the passes after `earlier`."""
        return PassTimes(*(now - before for now, before in zip(self, earlier, strict=True)))

    def means(self, tokens_per_pass: float) -> "Times | None":
        """Return the mean times, of an answer with so many tokens a pass; None if no pass was compared."""
        if not self.compared:
            return None
        return Times(self.compared_ms / self.compared, self.plain_ms / self.compared, tokens_per_pass)


class Times(NamedTuple):
    """The mean time of a pass of an answer and of a plain one, in milliseconds, and the answer's tokens a pass."""

    pass_ms: float
    plain_ms: float
    tokens_per_pass: float

    @property
    def cost(self) -> float:
        """The cost of a pass, in plain ones."""
        return max(1.0, self.pass_ms / self.plain_ms)

    @property
    def speedup(self) -> float | None:
        """The speed compared with plain decoding; None if the machine was disturbed."""
        return credible_speedup(self.tokens_per_pass * self.plain_ms / self.pass_ms, self.tokens_per_pass)
