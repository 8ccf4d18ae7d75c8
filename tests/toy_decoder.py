"""A decoder that ladechat knows nothing of: a drafter, an entry in the catalog, an entry in the registry, and no more.

Run as a program it is `ladechat` with that decoder: `python -m tests.toy_decoder engine --decoder toy --times 3`.
"""

from collections.abc import Mapping, Sequence

from ladechat import catalog, registry
from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, Proposal, Room
from ladechat.decoder.loop import Decoder
from ladechat.protocol import DecoderInfo, Parameter

TIMES = Parameter(name="times", label="times", help="How often it is said again.", default=2, least=1, most=9)
INFO = DecoderInfo(name="toy", label="toy guesses", help="Guess that the last token comes again.", parameters=[TIMES])


class ToyDrafter(Drafter):
    """Proposes the last token again."""

    def __init__(self) -> None:
        self._times = int(TIMES.default)
        self._text: Sequence[int] = ()

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        self._times = parameters.get("times", self._times)

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text = text

    def propose(self, room: Room) -> Proposal:
        return Proposal(
            [Node(i - 1 if i else ROOT, self._text[-1], "toy", "toy", 0.1) for i in range(min(self._times, room.depth))]
        )


def register() -> None:
    """The two entries."""
    catalog.register(INFO)
    registry.register("toy", lambda runner, shared: Decoder(runner, [ToyDrafter()], name="Toy decoding"))


if __name__ == "__main__":
    register()
    from ladechat.shell.cli import main  # only now: its options come from the catalog

    main()
