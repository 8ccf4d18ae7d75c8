"""Which panels are shown beside the conversation, and how high."""

from typing import NamedTuple

from ladechat.protocol import DecoderInfo, Step

TRANSFER = "transfer"
"""What a decoder needs that has pseudo states."""


class Arrangement(NamedTuple):
    """Which panels are shown, and how high: calm, because it follows from what whole turns need.

    Attributes:
        policy, window, drafts: whether these panels are shown.
        seen_window, seen_drafts: whether a step of this turn, with this decoder, had something for them.
        new_decoder: whether no step of this decoder has been seen.
        window_rows: rows of the Jacobi window.
        lens: whether the pseudo states are shown: with a decoder that has some, whether or not a step shows them.
        lens_rows: layers of them.
        window_set: W, as it was set; 0 for a decoder that has none.
    """

    policy: bool = False
    window: bool = True
    drafts: bool = True
    seen_window: bool = False
    seen_drafts: bool = False
    new_decoder: bool = True
    window_rows: int = 2
    lens: bool = False
    lens_rows: int = 4
    window_set: int = 0

    def after_step(self, step: Step) -> "Arrangement":
        """A panel comes when it is needed. It goes only where a decoder begins, at its first step."""
        window, drafts = step.window is not None, step.draft is not None or step.pool is not None
        if not window and not drafts and step.lens is None:
            return self
        return self._replace(
            window=window or (self.window and not self.new_decoder),
            drafts=drafts or (self.drafts and not self.new_decoder),
            seen_window=window or self.seen_window,
            seen_drafts=drafts or self.seen_drafts,
            new_decoder=False,
            window_rows=len(step.window.rows) if step.window else self.window_rows,
            lens=step.lens is not None or self.lens,
            lens_rows=len(step.lens.rows) if step.lens else self.lens_rows,
        )

    def for_turn(self) -> "Arrangement":
        """A new turn begins with the panels that the turn before has used."""
        if not self.seen_window and not self.seen_drafts:
            return self
        kept = self._replace(window=self.seen_window, drafts=self.seen_drafts)
        return kept._replace(seen_window=False, seen_drafts=False)

    def for_decoder(self, info: DecoderInfo) -> "Arrangement":
        """Until the first step of a decoder says more: a window, unless it decodes plainly or chooses by itself, or
        has pseudo states.
        """
        lens = info.needs == TRANSFER
        window = info.tree_attention and info.by_hand is None and not lens
        return Arrangement(window=window, window_rows=self.window_rows, lens=lens, lens_rows=self.lens_rows)
