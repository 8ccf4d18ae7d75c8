"""The guesses of one step, from the n-gram pool and other drafters, and how many of their tokens the model accepted."""

from collections import Counter
from collections.abc import Sequence

from rich.style import Style

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.cells import cell_len, printable, shorten, visible
from ladechat.widgets.formatting import counted, percent
from ladechat.widgets.panels.panel import Row, StepPanel, longest
from ladechat.widgets.steps.draft_tree import GuessLine, branches, in_lines, slots_of, verdict_of
from ladechat.widgets.steps.explained import format_explained, source_of, sources_explained

WIDE = 44
"""Minimum width, in cells, at which lines say whether a guess was tried."""
MOST_SOURCE_CELLS = 16
NARROW_PART = 3
"""In narrower panels, the source's name (or its first word) takes at most 1 / `NARROW_PART` of the width."""
LEAST_TOKEN_CELLS = 4
"""Minimum cells for a token at a fork; with less room, the guess is drawn in full on a line of its own."""
LEGEND_ROWS = 10
"""Minimum height at which a line explains the marks."""
LEGENDS = (
    "✓ accepted · ✗ refused · – not judged",
    "✓ accepted ✗ refused – not judged",
    "✓ yes ✗ no – not judged",
)
WINDOW = "window"
"""The source name of the window's own branches."""


class PoolPanel(StepPanel):
    """One guess per line: a mark for each of its tokens, the tokens, and the source.

    The prefix that a guess shares with the lines above is not repeated: the guess forks off below the last shared
    token.

    Guesses are what the n-gram pool holds after the last token, and the branches of the draft tree from other drafters;
    for a decoder without a pool, all branches.
    """

    NAME = "drafts"
    SHOWS = "Guesses for this pass: ✓ the model agreed, ✗ it did not, – it was not asked."
    COMES = "It comes with any decoder that drafts."

    def forget(self) -> None:
        super().forget()
        self._accepted: Counter[str] = Counter()
        self._tested: Counter[str] = Counter()
        self._lookups = self._hits = 0  # totals of the answer
        self._counted = (0, 0)  # the pool's own counts at the latest step

    def show_step(self, step: protocol.Step) -> None:
        resumed = self._step is not None and self._step.pool is None
        super().show_step(step)
        if step.pool is not None:
            self._count(step.pool, resumed)
        if step.draft is not None:
            for source, verdict in zip(step.draft.sources, step.draft.verdicts, strict=True):
                self._accepted[source] += verdict == "accepted"
                self._tested[source] += verdict != "untested"

    def _count(self, pool: protocol.PoolView, resumed: bool) -> None:
        """Add the lookups and hits since the last step. The pool's own counts restart after another decoder."""
        anew = pool.lookups < self._counted[0] or (resumed and pool.lookups == self._counted[0])
        lookups, hits = (0, 0) if anew else self._counted
        self._lookups += pool.lookups - lookups
        self._hits += pool.hits - hits
        self._counted = (pool.lookups, pool.hits)

    @property
    def title(self) -> str:
        """The panel's name: "n-gram pool" if the pool is the only source of guesses."""
        step = self._step
        pool_alone = step is not None and step.pool is not None and step.decision is None and not self._others(step)
        return "n-gram pool" if pool_alone else self.NAME

    @staticmethod
    def _others(step: protocol.Step) -> list[protocol.Candidate]:
        """Return the branches of the draft tree that are not the pool's."""
        if step.draft is None:
            return []
        others = branches(step.draft, [] if step.pool is None else step.pool.candidates)
        # The window panel shows the window's branches.
        return [one for one in others if step.pool is None or step.window is None or one.source != WINDOW]

    def explain(self) -> str:
        """Return what was guessed, and how often guesses came true."""
        step = self._step
        if step is None:
            return "Shows what is guessed, from the first pass on."
        if step.draft is None and step.pool is None:
            return "Nothing was guessed for this pass: it took the last token alone."
        draft = step.draft
        nodes = 0 if draft is None else len(draft.token_ids)
        cells = sum(slot.row is not None for slot in slots_of(step))
        own = f", {cells} of them in cells of the Jacobi window" if cells else ""
        judged = _judged([] if draft is None else draft.verdicts)
        parts = [f"This pass tried {counted(nodes, 'drafted token')}{own}; the model {judged}."]
        pool = step.pool
        if pool is not None:
            parts.append(
                f"The n-gram pool holds {counted(pool.ngrams, 'n-gram')}, and had a guess in "
                f"{self._hits:,} of {counted(self._lookups, 'pass')} of this answer: an n-gram that begins with the "
                "last token."
            )
            untried = sum(not one.tried for one in pool.candidates)
            if untried:
                parts.append(f"It knows {counted(untried, 'guess')} more, for which this pass had no room: see G.")
        shown = [] if pool is None else pool.candidates
        parts.append(sources_explained([*([] if draft is None else draft.sources), *(one.source for one in shown)]))
        guesses = [*shown, *self._others(step)]
        parts.append(format_explained([piece for guess in guesses for piece in guess.pieces]))
        tested, accepted = self._tested.total(), self._accepted.total()
        parts.append(
            f"In this answer the model judged {counted(tested, 'drafted token')} and agreed with {accepted:,}."
        )
        return " ".join(part for part in parts if part)

    def rows(self, width: int, height: int) -> list[Row]:
        step = self._step
        if step is None:
            return self.only(width, ("drafts",), "Fills with the first pass.")
        plain = step.draft is None and step.pool is None and not self._tested
        pool = step.pool
        guesses = [*([] if pool is None else pool.candidates), *self._others(step)]
        guesses.sort(key=lambda guess: not guess.matched)  # accepted guesses come first, since not all may fit
        footer: list[Row] = [[(longest(width, self._tallies()), self.muted)]] if height >= 5 and not plain else []
        if height >= LEGEND_ROWS and not plain:
            footer.insert(0, [(longest(width, LEGENDS), self.muted)])
        room = height - 1 - len(footer)
        if pool is None:
            header = self.header(width, self.titles(self.title), [_more(len(guesses) - room)])
            if step.draft is None:
                return [header, *_filled(self.sentence("Plain decoding: nothing is drafted.", width), room), *footer]
            return [header, *self._guesses("", guesses, room, width), *footer]
        rate = percent(self._hits / self._lookups) if self._lookups else "–"
        facts = [f"{pool.ngrams:,} n-grams · hit {rate}", f"{pool.ngrams:,} n-grams", f"hit {rate}", ""]
        header = self.header(width, self.titles(self.title), facts)
        return [header, *self._guesses(visible(pool.after), guesses, room, width), *footer]

    def _guesses(self, after: str, guesses: list[protocol.Candidate], height: int, width: int) -> list[Row]:
        """Return as many guesses as fit. `after` is the printable token that they follow; "" is not shown."""
        after = f" after ‹{after}›" if after else ""
        if not guesses:
            return _filled([[(shorten(f"nothing known{after}", width), self.muted)]], height)
        shown = in_lines(guesses)[: max(height - bool(after), 0)]
        more = _more(len(guesses) - len(shown))
        key = shorten(f"{after[1:]}:", width - len(more) - 1)
        title: Row = [(key, self.muted), (more.rjust(width - cell_len(key)), self.muted)]
        marks = min(max((len(line.guess.pieces) for line in shown), default=0), width // 3)
        rows: list[Row] = []
        starts: list[int] = []
        for line in shown:
            row, starts = self._line(line, starts, marks, width)
            rows.append(row)
        return _filled([*([title] if after else []), *rows], height)

    def _line(self, line: GuessLine, above: list[int], marks: int, width: int) -> tuple[Row, list[int]]:
        """Return one line: a mark for each token, in `marks` cells, the tokens, and the source.

        `above` holds the cells at which the tokens of the line above begin, and the one after its last token. The
        second value returned is the same for the line below.
        """
        candidate, shared = line.guess, line.shared
        source = self._source(candidate, width)
        room = width - marks - 1 - cell_len(source) - 1
        if shared >= len(above) or above[shared] + LEAST_TOKEN_CELLS > room:
            shared = 0
        starts = [*above[:shared], above[shared] if shared else 0]
        row = [*self._marks(candidate, shared, marks), (_branch(line, shared, starts), self.muted)]
        used = starts[-1]
        for index, piece in enumerate(candidate.pieces[shared:], shared):
            gap = " " if index > shared else ""
            more = " …" if index < len(candidate.pieces) - 1 else ""
            text = gap + visible(piece)
            whole = cell_len(text + more) <= room - used
            text = text if whole else shorten(text + more, room - used)
            row += [(gap, Style()), *self.token(text[len(gap) :], self._token_style(candidate, index))]
            used += cell_len(text)
            if not whole:
                break
            starts.append(used + 1)
        row.append((" " * (room - used + 1), Style()))
        return [*row, (source, self.muted)], starts

    def _source(self, candidate: protocol.Candidate, width: int) -> str:
        """Return the source of a guess, and whether it was tried. If there is little room, tokens are cut instead."""
        source = source_of(candidate.source).name
        if width < WIDE:
            most = max(1, width // NARROW_PART)
            return shorten(source if cell_len(source) <= most else source.partition(" ")[0], most)
        source = shorten(source, MOST_SOURCE_CELLS)
        return source if candidate.tried else f"not tried · {source}"

    def _token_style(self, candidate: protocol.Candidate, index: int) -> Style:
        if self._step is None or not candidate.tried:
            return self.muted
        if index < candidate.matched:
            return self.palette.style_of_step(self._step.index, len(self._step.token_ids))
        return Style()

    def _marks(self, candidate: protocol.Candidate, shared: int, cells: int) -> Row:
        """Return the verdicts on the tokens as marks; the shared prefix has its marks in the lines above."""
        verdicts = self._verdicts(candidate)
        shown = verdicts if len(verdicts) <= cells else verdicts[: max(cells - 1, 0)]
        row: Row = [(VERDICT_MARKS[verdict], self.palette.verdict(verdict)) for verdict in shown]
        row[:shared] = [(" ", Style())] * min(shared, len(row))
        if len(shown) < len(verdicts):
            row.append(("…", self.muted))
        return [*row, (" " * (cells - len(row) + 1), Style())]

    def _verdicts(self, candidate: protocol.Candidate) -> list[protocol.Verdict]:
        """Return the verdict on each token: accepted ones, then the draft tree's verdict on the next, and `untested`
        for the others. Tokens of a guess that was not tried are all `untested`.
        """
        after_match: list[protocol.Verdict] = ["untested"] * (len(candidate.token_ids) - candidate.matched)
        if candidate.tried and after_match and self._step is not None and self._step.draft is not None:
            after_match[0] = verdict_of(self._step.draft, candidate.token_ids[: candidate.matched + 1])
        matched: list[protocol.Verdict] = ["accepted"] * candidate.matched
        return matched + after_match

    def _tallies(self) -> tuple[str, ...]:
        """Return how many drafts were accepted in this answer, in versions from long to short."""
        accepted, tested = self._accepted.total(), self._tested.total()
        if not tested:
            return ("no draft tested yet",)
        tally = f"{accepted} of {tested} tested draft tokens accepted"
        of_each = [
            f"{source_of(name).name} {self._accepted[name]}/{count}" for name, count in self._tested.items() if count
        ]
        return f"{tally}: {printable(', '.join(of_each))}", tally, f"{accepted}/{tested} tested drafts accepted"


def _judged(verdicts: Sequence[protocol.Verdict]) -> str:
    """Return the counts of the model's verdicts on drafted tokens, with their marks."""
    found = Counter(verdicts)
    parts = [f"accepted {found['accepted']} (✓)" if found["accepted"] else "accepted none"]
    parts += [f"refused {found['rejected']} (✗)"] if found["rejected"] else []
    parts += [f"did not judge {found['untested']} (–)"] if found["untested"] else []
    return ", ".join(parts)


def _more(hidden: int) -> str:
    """Return the number of guesses that do not fit, in words."""
    return f"+{hidden} more" if hidden > 0 else ""


def _branch(line: GuessLine, shared: int, starts: list[int]) -> str:
    """Return the branch before a line's first token: where it forks off, and where later lines will."""
    cells = [" "] * starts[-1]
    for depth in range(1, shared):
        if line.forks[depth]:
            cells[starts[depth] - 1] = "│"
    if shared:
        cells[starts[shared] - 1] = "├" if line.forks[shared] else "└"
    return "".join(cells)


def _filled(rows: list[Row], height: int) -> list[Row]:
    return [*rows[:height], *([[]] * (height - len(rows)))]
