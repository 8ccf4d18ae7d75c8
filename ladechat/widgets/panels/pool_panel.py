"""The guesses of one step, from the n-gram pool and other drafters, the model's answers, and what enters the pool."""

from collections import Counter

from rich.style import Style
from textual import events
from textual.reactive import reactive

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.cells import cell_len, printable, shorten, visible
from ladechat.widgets.formatting import counted, percent
from ladechat.widgets.panels.panel import FEW_ROWS, LEAST_ROWS, Needs, Row, StepPanel, longest
from ladechat.widgets.steps.answer_steps import StepPointedAt
from ladechat.widgets.steps.births import Birth, Births, diagonal_pieces
from ladechat.widgets.steps.draft_tree import slots_of
from ladechat.widgets.steps.explained import format_explained, source_of, sources_explained
from ladechat.widgets.steps.guesses import (
    WINDOW,
    GuessLine,
    counts,
    first_lines,
    guesses_of,
    numbers_of,
    other_guesses,
    verdicts_of,
)

WIDE = 44
"""Minimum width, in cells, at which the source of a guess says in which pass it was born."""
MOST_SOURCE_CELLS = 16
NARROW_PART = 3
"""In narrower panels, the source's name (or its first word) takes at most 1 / `NARROW_PART` of the width."""
LEAST_TOKEN_CELLS = 5
"""Minimum cells for a token and its mark at a fork; with less room, the guess is drawn in full on a line of its own."""
LEGEND_ROWS = 7
"""Minimum height at which a line counts the verdicts of the pass."""
LEAST_NEW_ROWS = 3
"""The fewest free rows in which new n-grams of this pass are shown: a heading and two n-grams."""
FRAME_ROWS = 5
"""Rows without the guesses: header, the token before, the model's answers, and two of counts."""
NO_ROOM = "no room"
NOT_REACHED_FADED = 0.33


class PoolPanel(StepPanel):
    """One guess per line: its number, its tokens, each after the model's verdict on it, and the source.

    The first line has the model's own answers, above the tokens that they confirm. The prefix that a guess shares with
    the lines above is not repeated: the guess forks off below the last shared token.

    Guesses are what the n-gram pool holds after the last token, and the branches of the draft tree from other drafters;
    for a decoder without a pool, all branches. In rows that are left, the n-grams that this pass adds to the pool.

    Args:
        births: where n-grams were born; the panel of the window adds to it.
    """

    NAME = "drafts"
    SHOWS = "Guesses for this pass, each token with its verdict: accepted ✓, wrong ✗, not reached –."
    COMES = "It comes with any decoder that drafts."
    NEEDS = Needs(LEAST_ROWS, FEW_ROWS, FEW_ROWS)

    diagonal: reactive[int | None] = reactive(None)
    """The diagonal of the window whose n-gram is marked; None for none."""

    def __init__(self, births: Births | None = None, *, id: str | None = None) -> None:
        self._births = births or Births()
        self._born: dict[int, Birth] = {}  # by line of the panel, for a click there
        super().__init__(id=id)

    def forget(self) -> None:
        super().forget()
        self._accepted: Counter[str] = Counter()
        self._reached: Counter[str] = Counter()
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
                self._reached[source] += verdict != "untested"

    def count(self, step: protocol.Step) -> None:
        window = step.window if step.pool is not None and step.decision is None else None  # auto has some now and then
        new = 0 if window is None else 1 + len(window.fresh)
        self.count_rows(FRAME_ROWS + len(guesses_of(step)), new)

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
        pool_alone = step is not None and step.pool is not None and step.decision is None and not other_guesses(step)
        return "n-gram pool" if pool_alone else self.NAME

    def on_click(self, event: events.Click) -> None:
        """Show the pass in which a guess was born, with its diagonal, when the guess is clicked."""
        birth = self._born.get(event.y)
        if birth is not None and self._step is not None:
            self.post_message(StepPointedAt(self._step.turn, birth.step, diagonal=birth.column))

    def explain(self) -> str:
        step = self._step
        if step is None:
            return "Shows what is guessed, from the first pass on."
        if step.draft is None and step.pool is None:
            return "Nothing was guessed for this pass: it took the last token alone."
        verdicts = [] if step.draft is None else step.draft.verdicts
        parts = [f"This pass checked {counts(verdicts)[0]}."]
        pool, guesses = step.pool, guesses_of(step)
        sources = [*([] if step.draft is None else step.draft.sources), *(one.source for one in guesses)]
        if pool is None and step.window is not None:
            parts.append("They are the row that went in.")
            sources = []
        elif pool is not None:
            parts.append(_in_the_window(step))
        if "untested" in verdicts:
            parts.append("Not reached: it follows a wrong draft.")
        if pool is not None:
            parts.append(
                f"The pool holds {counted(pool.ngrams, 'n-gram')}, and had a guess in {self._hits:,} of "
                f"{counted(self._lookups, 'pass')}: what followed the last tokens, longest match first (four "
                "at most), of equals the latest."
            )
            if untried := sum(not one.tried for one in pool.candidates):
                parts.append(f"It has {counted(untried, 'guess')} more than G lets in.")
        parts.append(sources_explained(sources))
        parts.append(format_explained([*step.pieces, *(piece for guess in guesses for piece in guess.pieces)]))
        reached, accepted = self._reached.total(), self._accepted.total()
        usual = "; most being wrong is normal" if 2 * accepted < reached else ""
        parts.append(f"In this answer {accepted:,} of {counted(reached, 'reached draft')} were accepted{usual}.")
        return " ".join(part for part in parts if part)

    def rows(self, width: int, height: int) -> list[Row]:
        step, self._born = self._step, {}
        if step is None:
            return self.only(width, ("drafts",), "Fills with the first pass.")
        plain = step.draft is None and step.pool is None and not self._reached
        footer: list[Row] = [[(longest(width, self._tallies()), self.muted)]] if height >= 5 and not plain else []
        if height >= LEGEND_ROWS and step.draft is not None:
            footer.insert(0, [(longest(width, counts(step.draft.verdicts)), self.muted)])
        room = height - 1 - len(footer)
        pool, guesses = step.pool, guesses_of(step)
        if pool is None:
            header = self.header(width, self.titles(self.title), [_more(len(guesses) - room)])
            if step.draft is None:
                return [header, *_filled(self.sentence("Plain decoding: nothing is drafted.", width), room), *footer]
            return [header, *_filled(self._guesses("", guesses, room, width), room), *footer]
        header = self.header(width, self.titles(self.title), self._facts(pool))
        rows = self._guesses(visible(pool.after), guesses, room, width)
        if step.window is not None and room - len(rows) >= LEAST_NEW_ROWS:
            rows += self._new(step.window, room - len(rows), width)
        return [header, *_filled(rows, room), *footer]

    def _facts(self, pool: protocol.PoolView) -> list[str]:
        """Return what the pool holds, and in how many passes it had a guess, from long to short."""
        held = f"{pool.ngrams:,} n-grams"
        grown = [f"{held}, {pool.added:,} new", held] if pool.added else [held]
        rate = f"a guess in {percent(self._hits / self._lookups)}" if self._lookups else ""
        if self.moment:  # the title names the pass
            return [rate, ""]
        both = [f"{text} · {rate}{of}" for text in grown for of in (" of passes", "")] if rate else []
        return [*both, *grown, rate, ""]

    def _guesses(self, after: str, guesses: list[protocol.Candidate], height: int, width: int) -> list[Row]:
        """Return as many guesses as fit. `after` is the printable token that they follow; "" is not shown."""
        after = f" after ‹{after}›" if after else ""
        if not guesses:
            return [[(shorten(f"no guess{after}", width), self.muted)]]
        # In a narrow panel the lines above may cut the tokens that a line shares with them.
        lines = first_lines(guesses, max(height - bool(after), 0), best_first=width < WIDE)
        numbers = len(str(max((line.number for line in lines), default=0))) + 1
        more = _more(len(guesses) - len(lines))
        key = shorten(f"{after[1:]}:", width - len(more) - 1)
        rows: list[Row] = [[(key, self.muted), (more.rjust(width - cell_len(key)), self.muted)]] if after else []
        if len(rows) + len(lines) < height:
            rows.append(self._answers(numbers, width))
        starts: list[int] = []
        for line in lines:
            row, starts = self._line(line, starts, numbers, width)
            if (birth := self._birth(line.guess)) is not None:
                self._born[1 + len(rows)] = birth
            rows.append(row)
        return rows

    def _answers(self, numbers: int, width: int) -> Row:
        """Return the row of what the model says, its tokens above those of the guess that said the same."""
        step = self._step
        assert step is not None
        says = "the model says" if width >= WIDE else "model"
        room = width - numbers - cell_len(says) - 1
        row: Row = [(" " * numbers, Style())]
        used = 0
        for index, piece in enumerate(step.pieces):
            text = shorten(visible(piece), room - used - 1)
            if room - used < 2:
                break
            row += [(" ", Style()), *self.token(text, self.step_style(step, index)), (" ", Style())]
            used += cell_len(text) + 2
        return [*row, (" " * (room - used + 1), Style()), (says, self.muted)]

    def _line(self, line: GuessLine, above: list[int], numbers: int, width: int) -> tuple[Row, list[int]]:
        """Return one line: the number in `numbers` cells, the tokens with their verdicts, and the source.

        `above` holds the cells at which the tokens of the line above begin, and the one after its last token. The
        second value returned is the same for the line below.
        """
        guess, shared = line.guess, line.shared
        source = self._source(guess, width)
        room = width - numbers - cell_len(source) - 1
        if shared >= len(above) or above[shared] + LEAST_TOKEN_CELLS > room:
            shared = 0
        starts = [*above[:shared], above[shared] if shared else 0]
        number = str(line.number) if line.number else ""
        row: Row = [(number.ljust(numbers), self.muted), (_branch(line, shared, starts), self.muted)]
        used = starts[-1]
        verdicts = verdicts_of(self._step.draft, guess) if guess.tried and self._step is not None else None
        for index, piece in enumerate(guess.pieces[shared:], shared):
            gap = " " if index > shared else ""
            more = " …" if index < len(guess.pieces) - 1 else ""
            mark = VERDICT_MARKS[verdicts[index]] if verdicts else " "
            text = gap + mark + visible(piece)
            whole = cell_len(text + more) <= room - used
            text = text if whole else shorten(text + more, room - used)
            verdict = verdicts[index] if verdicts else ""
            head = len(gap) + 1
            row += [(gap, Style()), (text[len(gap) : head], self.palette.verdict(verdict))]
            row += self.token(text[head:], self._token_style(verdict))
            used += cell_len(text)
            if not whole:
                break
            starts.append(used + 1)
        row.append((" " * (room - used + 1), Style()))
        return [*row, (source, self.muted)], starts

    def _source(self, guess: protocol.Candidate, width: int) -> str:
        """Return the source of a guess, or that it had no room. If there is little room, tokens are cut instead."""
        if not guess.tried:
            return NO_ROOM
        source = source_of(guess.source).name
        if width < WIDE:
            most = max(1, width // NARROW_PART)
            return shorten(source if cell_len(source) <= most else source.partition(" ")[0], most)
        birth = self._birth(guess)
        return shorten(source, MOST_SOURCE_CELLS) if birth is None else f"{source}, pass {birth.step + 1}"

    def _birth(self, guess: protocol.Candidate) -> Birth | None:
        """Return when the window first formed a guess; None if it comes from elsewhere."""
        step = self._step
        if step is None or step.window is None or not step.window.row_ids[:1] or guess.source != WINDOW:
            return None
        return self._births.of((step.window.row_ids[0][0], *guess.token_ids), step.index)

    def _token_style(self, verdict: str) -> Style:
        if self._step is None or not verdict:
            return self.muted
        if verdict == "accepted":
            return self.palette.style_of_step(self._step.index, len(self._step.token_ids))
        return self.faded_text(NOT_REACHED_FADED) if verdict == "untested" else Style()

    def _new(self, window: protocol.WindowView, height: int, width: int) -> list[Row]:
        """Return the n-grams of the window's diagonals, which go into the pool; that of the marked one with its ends.

        The pool may know some of them, and gets ends and accepted text too: it grows by another number.
        """
        found = diagonal_pieces(window)
        marked = self.diagonal if self.diagonal is not None and self.diagonal < len(found) else None
        lines: list[tuple[tuple[str, ...], bool]] = []
        if marked is not None:
            lines = [(found[marked][start:], True) for start in range(len(found[marked]) - 1)]
        shown = {ngram for ngram, _ in lines}
        lines += [(ngram, False) for ngram in dict.fromkeys(found) if ngram not in shown]
        more = _more(len(lines) - height + 1)
        rows: list[Row] = [self.legend(("diagonals into the pool:", "into the pool:"), more, width)]
        quiet = Style() if marked is None else self.muted
        for ngram, of_marked in lines[: height - 1]:
            key, *tail = map(visible, ngram)
            text = shorten(f"{key} → {' '.join(tail)}", width - 2)
            rows.append([("+ ", self.muted), (text, Style(reverse=True) if of_marked else quiet)])
        return rows

    def _tallies(self) -> tuple[str, ...]:
        """Return how many drafts were accepted in this answer, in versions from long to short."""
        accepted, reached = self._accepted.total(), self._reached.total()
        if not reached:
            return ("no draft reached yet",)
        tally = f"answer: {accepted} of {reached} reached drafts accepted"
        of_each = [
            f"{source_of(name).name} {self._accepted[name]}/{count}" for name, count in self._reached.items() if count
        ]
        return f"{tally}: {printable(', '.join(of_each))}", tally, f"{accepted}/{reached} reached drafts accepted"


def _in_the_window(step: protocol.Step) -> str:
    """Return how many drafts of a pass are cells of the window, and how many of those begin a guess too."""
    cells = {index - 1 for index, slot in enumerate(slots_of(step)) if slot.row is not None}
    both = len(cells & numbers_of(step).keys())
    also = f", {both} of them in a guess too" if both else ""
    return f"{len(cells)} {'is a cell' if len(cells) == 1 else 'are cells'} of the window{also}." if cells else ""


def _more(hidden: int) -> str:
    """Return the number of lines that do not fit, in words."""
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
