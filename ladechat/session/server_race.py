"""A race of servers: the same question to each, one after another, each by an engine of its own."""

from collections.abc import Sequence

from ladechat.protocol import Generate, Message, Ready
from ladechat.server_address import parted
from ladechat.session.engine import EngineSource
from ladechat.session.measuring import SEED, TURN, Measuring
from ladechat.session.race import Lane, seal

LANE = "server"
"""The name of each lane: no decoder of this program."""


class MeasuringServers(Measuring):
    """Asks one server after another, so that they do not slow each other down where they share a machine. Each has an
    engine, which was not started yet, with the name of its model as in `server_address.named`.
    """

    def __init__(
        self,
        engines: Sequence[tuple[str, EngineSource]],
        messages: Sequence[Message],
        max_new_tokens: int | None = None,
    ) -> None:
        super().__init__(engines[0][1], messages, max_new_tokens=max_new_tokens)
        self._engines = [engine for _, engine in engines]
        self._models: set[str] = set()
        self.lanes = [Lane(LANE, label) for label in labels([name for name, _ in engines])]

    async def run(self) -> None:
        """Ask all servers, until it is done, stopped or has failed; the engines have ended then."""
        try:
            for engine in self._engines:
                self._engine = engine
                await self._measure()
                if self.failure is not None or self._stopped:
                    break
        finally:
            self.running = False

    def conclusions(self) -> list[str]:
        """Return the closing lines: whether the answers are equal, tokens a pass, tokens a second."""
        compared = seal(self.lanes) if len(self._models) == 1 else "The models differ, so the answers are not compared."
        return [compared, *filter(None, (tokens_a_pass(self.lanes), tokens_a_second(self.lanes)))]

    def _choose(self, ready: Ready) -> bool:
        self._current += 1
        self._models.add(ready.model)
        self.lanes[self._current].server = ready.server
        self._seed = SEED if ready.settings.seed is None else ready.settings.seed
        return True

    async def _next(self) -> bool:
        """Ask this server, once."""
        lane = self.lanes[self._current]
        if lane.finished is not None:
            return False
        question = Generate(
            turn=TURN, messages=self._messages, max_new_tokens=self._max_new_tokens, fresh=True, seed=self._seed
        )
        await self._engine.send(question)
        return True


def labels(names: Sequence[str]) -> list[str]:
    """Return a label for each server: its host, and its model where one was named; a number where two are alike."""
    short = [" ".join(filter(None, (_host(server or ""), model))) for server, model in map(parted, names)]
    return [
        label if short.count(label) == 1 else f"{label} ({short[:place].count(label) + 1})"
        for place, label in enumerate(short)
    ]


def _host(server: str) -> str:
    return server.partition("://")[2].removesuffix("/v1")


def tokens_a_pass(lanes: Sequence[Lane]) -> str:
    """Return how many tokens a pass of each server has brought, the most first; "" if none tells its passes."""
    known = [(len(lane.token_ids) / lane.passes, lane) for lane in lanes if lane.steps and lane.passes]
    each = (f"{lane.label} {rate:.2f}" for rate, lane in sorted(known, key=lambda one: -one[0]))
    return f"Tokens a pass: {' · '.join(each)}" if known else ""


def tokens_a_second(lanes: Sequence[Lane]) -> str:
    """Return how fast the tokens came over the network, the fastest first; "" if that is not known of any."""
    known = [(lane.timed_tokens / lane.seconds, lane) for lane in lanes if lane.timed_tokens and lane.seconds]
    each = (f"{lane.label} {rate:,.1f}" for rate, lane in sorted(known, key=lambda one: -one[0]))
    return f"Tokens a second, as they came here: {' · '.join(each)}" if known else ""
