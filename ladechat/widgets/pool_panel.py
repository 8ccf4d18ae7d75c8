"""The n-gram pool of one step: what it knew after the last token, what was tried, and how far each guess went."""

from collections import Counter

from rich.style import Style

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.cells import cell_len, shorten, visible
from ladechat.widgets.panel import Panel, Row, longest

WIDE = 44
"""From this many cells on, a candidate's source is written out."""


class PoolPanel(Panel):
    """One candidate a line: where it came from, its tokens, and a mark for each of them."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._step: protocol.Step | None = None
        self._accepted: Counter[protocol.Source] = Counter()
        self._tested: Counter[protocol.Source] = Counter()

    def show_step(self, step: protocol.Step) -> None:
        self._step = step
        if step.draft is not None:
            for source, verdict in zip(step.draft.sources, step.draft.verdicts, strict=True):
                self._accepted[source] += verdict == "accepted"
                self._tested[source] += verdict != "untested"
        self.redraw()

    def clear(self) -> None:
        """Forget the step, and begin to count anew."""
        self._step = None
        self._accepted.clear()
        self._tested.clear()
        self.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        titles = ("n-gram pool", "pool")
        if self._step is None:
            return [self.header(width, titles, [""]), *self.sentence("Fills with the first step.", width)]
        pool = self._step.pool
        if pool is None:
            return [self.header(width, titles, [""]), *self._without_pool(self._step, width)]
        rate = f"{pool.hits / pool.lookups:.0%}".replace("%", " %") if pool.lookups else "–"
        header = self.header(width, titles, [f"{pool.ngrams:,} · hit {rate}", f"hit {rate}"])
        footer = [self._tally(pool, width)] if height >= 5 else []
        return [header, *self._known(pool, width, height - 1 - len(footer)), *footer]

    def _without_pool(self, step: protocol.Step, width: int) -> list[Row]:
        if step.draft is None:
            return self.sentence("Plain decoding: no pool.", width)
        tally = longest(width, self._tallies(()))
        return [*self.sentence("This decoder has no pool.", width), [(tally, self.muted)]]

    def _known(self, pool: protocol.PoolView, width: int, height: int) -> list[Row]:
        after = f"‹{visible(pool.after)}›"
        if not pool.candidates:
            what = f"nothing known after {after}" if pool.asked else f"not worth asking since {after}"
            return _filled([[(shorten(what, width), self.muted)]], height)
        shown = pool.candidates if len(pool.candidates) < height else pool.candidates[: max(height - 1, 0)]
        hidden = len(pool.candidates) - len(shown)
        more = f"+{hidden} more" if hidden else ""
        key = shorten(f"after {after}:", width - len(more) - 1)
        title: Row = [(key, self.muted), (more.rjust(width - cell_len(key)), self.muted)]
        marks = min(max((len(each.pieces) for each in shown), default=0), width // 3)
        return _filled([title, *(self._candidate(each, marks, width) for each in shown)], height)

    def _candidate(self, candidate: protocol.Candidate, marks: int, width: int) -> Row:
        """One line: a mark for each token, in `marks` cells; the tokens; where they came from."""
        source: str = candidate.source if width >= WIDE else candidate.source[0]
        if not candidate.tried and width >= WIDE:
            source = f"not tried · {source}"
        room = width - marks - 1 - cell_len(source) - 1
        row = self._marks(candidate, marks)
        used = 0
        for index, piece in enumerate(candidate.pieces):
            gap = " " if index else ""
            more = " …" if index < len(candidate.pieces) - 1 else ""
            text = gap + visible(piece)
            whole = cell_len(text + more) <= room - used
            text = text if whole else shorten(text + more, room - used)
            row += [(gap, Style()), *self.token(text[len(gap) :], self._token_style(candidate, index))]
            used += cell_len(text)
            if not whole:
                break
        row.append((" " * (room - used + 1), Style()))
        row.append((source, self.palette.source(candidate.source) if candidate.tried else self.muted))
        return row

    def _token_style(self, candidate: protocol.Candidate, index: int) -> Style:
        if self._step is None or not candidate.tried:
            return self.muted
        if index < candidate.matched:
            return self.palette.step(self._step.index, len(self._step.token_ids))
        return Style()

    def _marks(self, candidate: protocol.Candidate, cells: int) -> Row:
        if not candidate.tried:
            return [("–" * min(cells, 1), self.muted), (" " * (cells - min(cells, 1) + 1), Style())]
        verdicts = self._verdicts(candidate)
        shown = verdicts if len(verdicts) <= cells else verdicts[: max(cells - 1, 0)]
        row: Row = [(VERDICT_MARKS[verdict], self.palette.verdict(verdict)) for verdict in shown]
        if len(shown) < len(verdicts):
            row.append(("…", self.muted))
        return [*row, (" " * (cells - len(row) + 1), Style())]

    def _verdicts(self, candidate: protocol.Candidate) -> list[protocol.Verdict]:
        """Token by token: after those that matched, what the draft tree says of the next; none further was judged."""
        after_match: list[protocol.Verdict] = ["untested"] * (len(candidate.token_ids) - candidate.matched)
        if after_match and self._step is not None and self._step.draft is not None:
            after_match[0] = _verdict(self._step.draft, candidate.token_ids[: candidate.matched + 1])
        matched: list[protocol.Verdict] = ["accepted"] * candidate.matched
        return matched + after_match

    def _tally(self, pool: protocol.PoolView, width: int) -> Row:
        return [(longest(width, self._tallies((f"+{pool.added} n-grams",))), self.muted)]

    def _tallies(self, more: tuple[str, ...]) -> tuple[str, ...]:
        """How many drafts were accepted, the most telling wording first."""
        accepted, tested = self._accepted.total(), self._tested.total()
        tally = f"{accepted} of {tested} tested draft tokens accepted" if tested else "no draft tested yet"
        by_source = ", ".join(f"{name} {self._accepted[name]}/{count}" for name, count in self._tested.items() if count)
        short = f"{accepted}/{tested} tested drafts accepted"
        whole = (f"{tally}: {by_source}",) if tested else ()
        return *whole, " · ".join((tally, *more)), tally, short


def _verdict(draft: protocol.DraftTree, path: list[int]) -> protocol.Verdict:
    """What became of the node at the end of a path of tokens from the root; `untested` if it was not in the tree."""
    node = -1
    children = {
        (parent, token): i for i, (parent, token) in enumerate(zip(draft.parents, draft.token_ids, strict=True))
    }
    for token in path:
        if (node, token) not in children:
            return "untested"
        node = children[node, token]
    return draft.verdicts[node]


def _filled(rows: list[Row], height: int) -> list[Row]:
    return [*rows[:height], *([[]] * (height - len(rows)))]
