"""Which panels are shown beside the conversation, and their heights."""

from typing import NamedTuple

from ladechat.protocol import DecoderInfo, Step

TRANSFER = "transfer"
"""The value of `DecoderInfo.needs` for a decoder that has pseudo states."""


class Arrangement(NamedTuple):
    """Which panels are shown, and their heights. It changes rarely, because it follows from whole turns.

    Attributes:
        policy, window, drafts: whether these panels are shown.
        seen_window, seen_drafts: whether a step of this turn, with this decoder, had data for them.
        new_decoder: whether no step of this decoder has been seen yet.
        window_rows: rows of the Jacobi window.
        lens: whether the panel of pseudo states is shown: always, for a decoder that has some.
        lens_rows: number of layers in that panel.
        window_set: the setting W; 0 for a decoder that has none.
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
        """Return the arrangement after a step. A panel appears when a step has data for it; it is removed only at the
        first step of another decoder.
        """
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
        """Return the arrangement for a new turn: the panels that the turn before used."""
        if not self.seen_window and not self.seen_drafts:
            return self
        unseen = self._replace(window=self.seen_window, drafts=self.seen_drafts)
        return unseen._replace(seen_window=False, seen_drafts=False)

    def for_decoder(self, info: DecoderInfo) -> "Arrangement":
        """Return the arrangement until the decoder's first step: with a window, unless it is plain decoding, chooses by
        itself, or has pseudo states.
        """
        lens = info.needs == TRANSFER
        window = info.tree_attention and info.by_hand is None and not lens
        return Arrangement(window=window, window_rows=self.window_rows, lens=lens, lens_rows=self.lens_rows)
