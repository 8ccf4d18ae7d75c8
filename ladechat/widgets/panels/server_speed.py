"""What the speed panel says of a server's answer: by the server's own count, once it has reported that."""

from ladechat.protocol import ServerFigures, ServerInfo, Step, TurnFinished
from ladechat.widgets.formatting import counted, duration
from ladechat.widgets.units import CHUNK, PASS, unit_of

SHOWS_OF_A_SERVER = {
    PASS: "Tokens a pass, drafts accepted, tokens a second as they came here; a bar is a pass, as high as its tokens.",
    CHUNK: "Chunks of text, and how many came a second; a bar is a chunk.",
}
"""What the speed panel shows of a server's answer, by what a step is."""


class ServerSpeed:
    """Sums over the steps of an answer. Texts are in versions from long to short.

    Args:
        server: what it tells.
    """

    def __init__(self, server: ServerInfo) -> None:
        self.server = server
        self._tokens = self._steps = 0
        self._drafted: int | None = 0
        self._step_ms = 0.0
        self._finished: TurnFinished | None = None

    def add(self, step: Step) -> None:
        self._tokens += len(step.token_ids)
        self._steps += step.passes
        self._drafted = None if self._drafted is None or step.drafted is None else self._drafted + step.drafted
        self._step_ms = step.timing.step_ms
        self._finished = None

    def finish(self, event: TurnFinished) -> None:
        """Take the server's own figures."""
        self._finished = event

    @property
    def _reported(self) -> ServerFigures:
        return (self._finished.server if self._finished is not None else None) or ServerFigures()

    @property
    def _passes(self) -> int:
        return self._steps if self._reported.passes is None else self._reported.passes

    def counts(self) -> list[str]:
        """Return the passes and their tokens, or the chunks."""
        if not self.server.passes:
            return [counted(self._steps, "chunk")]
        return [f"{counted(self._passes, 'pass')} for {self._tokens:,}", counted(self._passes, "pass")]

    def figures(self, rate: str) -> list[tuple[str, str]]:
        """Return numbers with their units: tokens a pass and tokens a second, where passes are reported."""
        if not self.server.passes:
            return [(rate, " chunks/s")]
        return [(f"{self._tokens / self._passes:.2f}" if self._passes else "–", " tokens a pass"), (rate, " tok/s")]

    def drafts(self) -> list[str]:
        """Return how many drafts a pass has accepted, of those that the server drafted as far as it tells."""
        if not self.server.passes or not self._passes:
            return []
        accepted = self._tokens - self._passes if self._reported.accepted is None else self._reported.accepted
        drafted = self._drafted if self._reported.drafted is None else self._reported.drafted
        number = f"{accepted / self._passes:.2f}"
        if drafted is not None:
            number += f" of {drafted / self._passes:.2f}"
        return [f"{number} drafts accepted a pass", f"{number} accepted"]

    def times(self) -> list[str]:
        """Return the time of the last step, or of the whole answer."""
        if (done := self._finished) is None:
            return [f"this {unit_of(self.server)} {self._step_ms:.1f} ms", f"{self._step_ms:.1f} ms"]
        first, rest = duration(done.prefill_seconds), duration(done.decode_seconds)
        return [f"first token after {first}, the rest in {rest}", f"first token {first}, rest {rest}", first]

    def explain(self) -> str:
        unit, counts = unit_of(self.server), counted(self._passes, unit_of(self.server))
        came = (
            f"{counts} gave {counted(self._tokens, 'token')}." if self.server.passes else f"The text came in {counts}."
        )
        high = ", as high as it gave tokens; grey: one token" if self.server.passes else ""
        return f"{came} Times are those at which it came over the network. A bar is a {unit}{high}."
