"""The guesses of one step: those of the n-gram pool and of other drafters, and how far the model agreed with each."""

from collections import Counter

from rich.style import Style

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.cells import cell_len, printable, shorten, visible
from ladechat.widgets.panel import Row, StepPanel, longest

WIDE = 44
"""From this many cells on, a candidate's source is written out, and whether it was tried."""
MOST_SOURCE_CELLS = 16
NARROW_PART = 5
"""In fewer cells, one of so many is for the beginning of the source: window, prompt, accept, recycl …"""
WINDOW = "window"
"""The source of the window's own branches."""


class PoolPanel(StepPanel):
    """One guess a line: a mark for each of its tokens, the tokens, and where they came from.

    Guesses are what the n-gram pool holds after the last token, and the branches of the draft tree that other drafters
    have brought; for a decoder without a pool, all branches.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._accepted: Counter[str] = Counter()
        self._tested: Counter[str] = Counter()

    def show_step(self, step: protocol.Step) -> None:
        super().show_step(step)
        if step.draft is not None:
            for source, verdict in zip(step.draft.sources, step.draft.verdicts, strict=True):
                self._accepted[source] += verdict == "accepted"
                self._tested[source] += verdict != "untested"

    def clear(self) -> None:
        super().clear()
        self._accepted.clear()
        self._tested.clear()

    def rows(self, width: int, height: int) -> list[Row]:
        step = self._step
        if step is None:
            return [self.header(width, ("drafts",), [""]), *self.sentence("Fills with the first step.", width)]
        plain = step.draft is None and step.pool is None and not self._tested
        footer: list[Row] = [[(longest(width, self._tallies()), self.muted)]] if height >= 5 and not plain else []
        room = height - 1 - len(footer)
        pool = step.pool
        if pool is None:
            branches = [] if step.draft is None else _branches(step.draft, [])
            header = self.header(width, self.titles("drafts"), [_more(len(branches) - room)])
            if step.draft is None:
                return [header, *_filled(self.sentence("Plain decoding: nothing is drafted.", width), room), *footer]
            return [header, *self._guesses("", branches, room, width), *footer]
        rate = f"{pool.hits / pool.lookups:.0%}".replace("%", " %") if pool.lookups else "–"
        facts = [f"{pool.ngrams:,} n-grams · hit {rate}", f"{pool.ngrams:,} · hit {rate}", f"hit {rate}"]
        others = [] if step.draft is None else _branches(step.draft, pool.candidates)
        if step.window is not None:  # its branches are seen where it is drawn
            others = [branch for branch in others if branch.source != WINDOW]
        titles = ("n-gram pool and other drafts", "pool and drafts") if others else ("n-gram pool", "pool")
        guesses = [*pool.candidates, *others]
        header = self.header(width, self.titles(*titles), facts)
        return [header, *self._guesses(visible(pool.after), guesses, room, width), *footer]

    def _guesses(self, after: str, guesses: list[protocol.Candidate], height: int, width: int) -> list[Row]:
        """The guesses, as many as fit. `after` is the token that they follow, as it is shown; "" is not shown."""
        after = f" after ‹{after}›" if after else ""
        if not guesses:
            return _filled([[(shorten(f"nothing known{after}", width), self.muted)]], height)
        shown = guesses[: max(height - bool(after), 0)]
        more = _more(len(guesses) - len(shown))
        key = shorten(f"{after[1:]}:", width - len(more) - 1)
        title: Row = [(key, self.muted), (more.rjust(width - cell_len(key)), self.muted)]
        marks = min(max((len(each.pieces) for each in shown), default=0), width // 3)
        rows = [self._candidate(each, marks, width) for each in shown]
        return _filled([*([title] if after else []), *rows], height)

    def _candidate(self, candidate: protocol.Candidate, marks: int, width: int) -> Row:
        """One line: a mark for each token, in `marks` cells; the tokens; where they came from."""
        source = _in_words(candidate.source)
        source = (
            shorten(source, MOST_SOURCE_CELLS)
            if width >= WIDE
            else visible(source[: max(1, width // NARROW_PART)].strip())
        )
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

    def _tallies(self) -> tuple[str, ...]:
        """How many drafts were accepted in this answer, the most detailed form first."""
        accepted, tested = self._accepted.total(), self._tested.total()
        if not tested:
            return ("no draft tested yet",)
        tally = f"{accepted} of {tested} tested draft tokens accepted"
        of_each = [f"{_in_words(name)} {self._accepted[name]}/{count}" for name, count in self._tested.items() if count]
        return f"{tally}: {printable(', '.join(of_each))}", tally, f"{accepted}/{tested} tested drafts accepted"


def _more(hidden: int) -> str:
    """How many guesses there is no room for."""
    return f"+{hidden} more" if hidden > 0 else ""


def _in_words(source: str) -> str:
    """A source as it is shown: hidden transfer."""
    return source.replace("_", " ")


def _branches(draft: protocol.DraftTree, known: list[protocol.Candidate]) -> list[protocol.Candidate]:
    """The branches of a draft tree from the last token to each leaf, but for those that are a part of `known` ones."""
    inner = set(draft.parents)
    shown = {tuple(each.token_ids[:end]) for each in known if each.tried for end in range(1, len(each.token_ids) + 1)}
    branches: list[protocol.Candidate] = []
    for leaf in range(len(draft.token_ids)):
        if leaf in inner:
            continue
        path = [leaf]
        while 0 <= (parent := draft.parents[path[0]]) < path[0]:
            path.insert(0, parent)
        ids = [draft.token_ids[node] for node in path]
        if tuple(ids) not in shown:
            branches.append(
                protocol.Candidate(
                    token_ids=ids,
                    pieces=[draft.pieces[node] for node in path],
                    source=draft.sources[leaf],
                    tried=True,
                    matched=sum(draft.verdicts[node] == "accepted" for node in path),
                )
            )
    return branches


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
