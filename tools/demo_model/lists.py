"""Lists, pairs and small tables with as many items as asked for, and what can be asked of a list.

A category is listed in one order only: a tiny model that may continue with any item soon repeats one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tools.demo_model import dialogue
from tools.demo_model.dialogue import Exchange, ask, capitalised, forms, markdown, read

FORMS = forms("lists")
_read = read("lists")
THINGS = {name: tuple(items.split(", ")) for name, items in _read["things"].items()}
ORDERED = {name: tuple(items.split(", ")) for name, items in _read["ordered"].items()}
CAPITALS: dict[str, str] = _read["capitals"]
PAIRS: list[dict[str, Any]] = _read["pairs"]
for _pairs in PAIRS:
    if _pairs["items"] == "capitals":
        _pairs["items"] = CAPITALS
    THINGS[_pairs["told"]] = tuple(f"{one}: {other}" for one, other in _pairs["items"].items())
ASKED: dict[str, list[str]] = {pairs["told"]: pairs["ask"] for pairs in PAIRS}
"""What people may call a category, where it has several names."""
TABLES: list[dict[str, Any]] = _read["tables"]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PLACES = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]


def numbered(items: Sequence[str]) -> str:
    """Items, one a line, each with a capital."""
    return dialogue.numbered(map(capitalised, items))


def line(items: Sequence[str]) -> str:
    """Items in one line."""
    return capitalised(", ".join(items)) + "."


def table(heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table in Markdown. A row is a line of cells with commas between them."""
    return markdown(heads, [row.split(", ") for row in rows])


@dataclass(frozen=True)
class Listed:
    """What was listed: the items of the last answer, how many there are with those before, and what could follow."""

    name: str
    items: tuple[str, ...]
    told: int
    left: tuple[str, ...]


def write(rng: Random) -> list[Exchange]:
    """A list or a table and at most two requests that follow from it."""
    kind = rng.random()
    if kind < 0.06:
        return pair(rng)
    if kind < 0.14:
        return _table(rng)
    if kind < 0.3:
        dialogue, listed = _all_of(rng)
    else:
        dialogue, listed = _some_of(rng)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 2))):
        exchange, listed = _follow_up(listed, rng)
        if exchange.answer != dialogue[-1].answer:
            dialogue.append(exchange)
    return dialogue


def _told(count: int, rng: Random) -> str:
    """A number as somebody types it."""
    return rng.choice((str(count), NUMBERS[count]))


def _all_of(rng: Random) -> tuple[list[Exchange], Listed]:
    """All there are of a kind, in their order."""
    name, items = rng.choice(list(ORDERED.items()))
    exchange = ask(rng, FORMS.all, f"Here are the {name}:\n{numbered(items)}", things=name)
    return [exchange], Listed(name, items, len(items), ())


def _some_of(rng: Random) -> tuple[list[Exchange], Listed]:
    """The first few of a kind."""
    name = rng.choice(list(ASKED if rng.random() < 0.12 else THINGS))
    whole, things = THINGS[name], rng.choice(ASKED.get(name, [name]))
    count = rng.randint(3, 10)
    wordings = FORMS.some if count == 5 and rng.random() < 0.4 else FORMS.ask
    answer = f"Here are {NUMBERS[count]} {name}:\n{numbered(whole[:count])}"
    return [ask(rng, wordings, answer, n=_told(count, rng), things=things)], Listed(
        name, whole[:count], count, whole[count:]
    )


def pair(rng: Random) -> list[Exchange]:
    """What belongs to one thing, and to another; half of the time a country and its capital."""
    pairs = PAIRS[-1] if rng.random() < 0.5 else rng.choice(PAIRS)
    (one, other), (next_one, next_other) = rng.sample(list(pairs["items"].items()), 2)
    dialogue = [ask(rng, pairs["one"], pairs["answer"].format(a=one, b=other), a=one)]
    if rng.random() < 0.4:
        dialogue.append(ask(rng, pairs["again"], pairs["answer"].format(a=next_one, b=next_other), a=next_one))
    return dialogue


def _table(rng: Random) -> list[Exchange]:
    """A small table, and at times a question about a cell, more rows, or its first column as a list."""
    of = rng.choice(TABLES)
    count = rng.randint(3, min(6, len(of["rows"])))
    rows = of["rows"][:count]
    columns = " and ".join(of["heads"][1:])
    dialogue = [
        ask(rng, FORMS.make_table, table(of["heads"], rows), n=_told(count, rng), things=of["things"], columns=columns)
    ]
    after = rng.random()
    if after < 0.35:
        cells, column = rng.choice(rows).split(", "), rng.randint(0, 1)
        question, answer = of["ask"][column]
        dialogue.append(ask(rng, (question,), answer.format(a=cells[0], b=cells[column + 1]), a=cells[0]))
    elif after < 0.5 and len(of["rows"]) >= count + 2:
        dialogue.append(ask(rng, FORMS.rows, table(of["heads"], of["rows"][: count + 2]), n="two"))
    elif after < 0.65:
        dialogue.append(ask(rng, FORMS.as_list, numbered([row.split(", ")[0] for row in rows]), things=of["things"]))
    return dialogue


def then_sorted(rng: Random) -> list[Exchange]:
    """A list of a few things that are not in the order of the alphabet, and that order, of all of them."""
    dialogue, listed = _some_of(rng)
    while listed.items == _in_order(listed.items) or len(listed.items) > 8:
        dialogue, listed = _some_of(rng)
    return [*dialogue, ask(rng, FORMS.sorted, numbered(_in_order(listed.items)))]


def _in_order(items: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(items, key=str.lower))


def _follow_up(listed: Listed, rng: Random) -> tuple[Exchange, Listed]:
    """A request about what was listed last, and what is listed after it."""
    name, items, count = listed.name, listed.items, len(listed.items)
    # After "three more" it would not be clear which of the two lists "the first one" belongs to.
    kinds = ("fewer", "line", "which", "how many", "more", "more", "sorted", "sorted", "sorted", "backwards")
    kind = rng.choice(kinds if listed.told == count else ("how many", "more"))
    if kind == "fewer" and count > 3:
        fewer = rng.randint(2, min(count - 1, 10))
        rest = Listed(name, items[:fewer], fewer, ())
        return ask(rng, FORMS.fewer, numbered(items[:fewer]), n=_told(fewer, rng)), rest
    if kind == "line":
        return ask(rng, FORMS.in_a_line, line(items)), listed
    if kind == "sorted" and items != tuple(sorted(items)):
        return ask(rng, FORMS.sorted, numbered(_in_order(items))), replace(listed, items=_in_order(items))
    if kind == "backwards":
        return ask(rng, FORMS.backwards, numbered(items[::-1])), replace(listed, items=items[::-1])
    if kind == "more" and len(listed.left) >= 2:
        more = rng.randint(2, min(4, len(listed.left)))
        new, left = listed.left[:more], listed.left[more:]
        answer = f"Here are {NUMBERS[more]} more:\n{numbered(new)}"
        return ask(rng, FORMS.more, answer, n=_told(more, rng)), Listed(name, new, listed.told + more, left)
    if kind in ("fewer", "which", "sorted"):
        place = rng.randrange(min(count, 10))
        if place == count - 1:
            return ask(rng, FORMS.last, f"The last one is {items[-1]}."), listed
        return ask(rng, FORMS.which, f"The {PLACES[place]} one is {items[place]}.", place=PLACES[place]), listed
    number = NUMBERS[listed.told] if listed.told <= 10 else listed.told
    wordings = FORMS.how_many if listed.told == count else FORMS.together
    return ask(rng, wordings, f"There are {number} {name} {'in the list' if listed.told == count else 'now'}."), listed
