"""Counting, number tables, the alphabet, days and months, and small sums. One form of answer for each kind of task."""

from collections.abc import Callable, Sequence
from random import Random

from tools.demo_model.dialogue import Exchange, ask, forms, markdown
from tools.demo_model.words import DAYS, MONTHS

FORMS = forms("counting")
SAID = {2: "twos", 3: "threes", 4: "fours", 5: "fives", 6: "sixes", 7: "sevens", 8: "eights", 9: "nines", 10: "tens"}
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write(rng: Random) -> list[Exchange]:
    """A task with numbers and what follows from it."""
    return rng.choices(TASKS, WEIGHTS)[0](rng)


def row(items: Sequence[int] | Sequence[str]) -> str:
    """Numbers, letters or names in one line."""
    return ", ".join(map(str, items)) + "."


def times_table(k: int, to: int = 10) -> str:
    lines = "\n".join(f"{i} x {k} = {i * k}" for i in range(1, to + 1))
    return f"Here is the multiplication table of {k}:\n{lines}"


def _count(rng: Random) -> list[Exchange]:
    a = 1 if rng.random() < 0.4 else rng.randint(0, 200)
    b = a + rng.randint(4, 39 if rng.random() < 0.4 else 24)
    wordings = FORMS.count_to + FORMS.count if a == 1 else FORMS.count
    return [ask(rng, wordings, row(range(a, b + 1)), a=a, b=b), *_after_count(rng, a, b)]


def _after_count(rng: Random, a: int, b: int) -> list[Exchange]:
    """At times a request that follows from the numbers from `a` to `b`, and another from that."""
    kind = rng.random()
    if kind < 0.12:
        return [ask(rng, FORMS.backwards, row(range(b, a - 1, -1)))]
    if kind < 0.25:
        dialogue = [ask(rng, FORMS.go_on, row(range(b + 1, b + 11)))]
        if rng.random() < 0.3:
            dialogue.append(ask(rng, FORMS.go_on, row(range(b + 11, b + 21))))
        return dialogue
    if kind < 0.37 and b - a < 28:
        further = b + rng.randint(2, 12)
        return [ask(rng, FORMS.up_to, row(range(a, further + 1)), b=further)]
    if kind < 0.42 and a == 1:
        return [ask(rng, FORMS.how_many, f"These are {b} numbers.")]
    return []


def _down(rng: Random) -> list[Exchange]:
    form = rng.choice(FORMS.down)
    if "{b}" in form:
        a = rng.randint(5, 200)
        b = rng.randint(max(0, a - 34), a - 4)
    else:
        a, b = rng.randint(5, 35), 1
    dialogue = [ask(rng, (form,), row(range(a, b - 1, -1)), a=a, b=b)]
    if b > 12 and rng.random() < 0.3:
        dialogue.append(ask(rng, FORMS.go_on, row(range(b - 1, b - 11, -1))))
    return dialogue


def _steps(rng: Random) -> list[Exchange]:
    k = rng.choice((*range(2, 13), 2, 3, 4, 5, 10, 15, 20, 25, 50, 100))
    a = rng.choice((0, k, k * rng.randint(1, 9), rng.randint(0, 60)))
    b = a + k * rng.randint(4, 14)
    if rng.random() < 0.2:
        return [ask(rng, FORMS.steps_down, row(range(b, a - 1, -k)), a=b, b=a, k=k)]
    wordings = FORMS.by_word if k in SAID and rng.random() < 0.25 else FORMS.steps
    dialogue = [ask(rng, wordings, row(range(a, b + 1, k)), a=a, b=b, k=k, ks=SAID.get(k))]
    after = rng.random()
    if after < 0.15:
        dialogue.append(ask(rng, FORMS.go_on, row(range(b + k, b + 6 * k, k))))
    elif after < 0.3:
        dialogue.append(ask(rng, FORMS.backwards, row(range(b, a - 1, -k))))
    return dialogue


def _multiples(rng: Random) -> list[Exchange]:
    k, n = rng.randint(2, 20), rng.randint(4, 12)
    dialogue = [ask(rng, FORMS.multiples, row([k * i for i in range(1, n + 1)]), k=k, n=n)]
    if rng.random() < 0.3:
        k = rng.randint(2, 20)
        dialogue.append(ask(rng, FORMS.other, row([k * i for i in range(1, n + 1)]), k=k))
    return dialogue


def _even_or_odd(rng: Random) -> list[Exchange]:
    a, kind = rng.randint(0, 150), rng.choice(("even", "odd"))
    b = a + rng.randint(6, 36)
    dialogue = [ask(rng, FORMS.even, row(_of_kind(kind, a, b)), a=a, b=b, kind=kind)]
    if rng.random() < 0.25:
        kind = "odd" if kind == "even" else "even"
        dialogue.append(ask(rng, FORMS.other_kind, row(_of_kind(kind, a, b)), kind=kind))
    return dialogue


def _of_kind(kind: str, a: int, b: int) -> list[int]:
    """The even or the odd numbers from `a` to `b`, both included."""
    return [number for number in range(a, b + 1) if number % 2 == (kind == "odd")]


def _times_table(rng: Random) -> list[Exchange]:
    k, to = rng.randint(2, 25), 10
    if rng.random() < 0.25:
        to = rng.choice((5, 12, 12, 12, 15))
        dialogue = [ask(rng, FORMS.table_to, times_table(k, to), k=k, n=to)]
    else:
        dialogue = [ask(rng, FORMS.table, times_table(k), k=k)]
    after = rng.random()
    if after < 0.35:
        k = rng.randint(2, 20)
        dialogue.append(ask(rng, FORMS.other, times_table(k, to), k=k))
    elif after < 0.45 and to != 12:
        dialogue.append(ask(rng, FORMS.up_to, times_table(k, 12), b=12))
    elif after < 0.6:
        i = rng.randint(1, to)
        dialogue.append(ask(rng, FORMS.times, f"{i} x {k} = {i * k}.", i=i, k=k))
    return dialogue


def _number_table(rng: Random) -> list[Exchange]:
    a = rng.choice((1, 1, rng.randint(1, 9)))
    kind = rng.random()
    b = a + rng.randint(3, 6 if kind < 0.3 else 9)
    numbers = range(a, b + 1)
    if kind < 0.3:
        answer = markdown(("number", "square", "cube"), [(i, i * i, i**3) for i in numbers])
        return [ask(rng, FORMS.cubes, answer, a=a, b=b)]
    if kind < 0.7:
        answer = markdown(("number", "square"), [(i, i * i) for i in numbers])
        return [ask(rng, FORMS.squares, answer, a=a, b=b)]
    answer = markdown(("number", "double"), [(i, 2 * i) for i in numbers])
    return [ask(rng, FORMS.doubles, answer, a=a, b=b)]


def _letters(rng: Random) -> list[Exchange]:
    if rng.random() < 0.4:
        letters = ALPHABET
        dialogue = [ask(rng, FORMS.letters, row(letters))]
    else:
        first = rng.randrange(20)
        letters = ALPHABET[first : rng.randint(first + 3, 25) + 1]
        dialogue = [ask(rng, FORMS.letters_from, row(letters), a=letters[0], b=letters[-1])]
    if rng.random() < 0.2:
        dialogue.append(ask(rng, FORMS.backwards, row(letters[::-1])))
    return dialogue


def _days_or_months(rng: Random) -> list[Exchange]:
    name = rng.choice(("day", "month"))
    all_names = DAYS if name == "day" else MONTHS
    if rng.random() < 0.5:
        first = rng.randrange(len(all_names) - 2)
        names = all_names[first : rng.randint(first + 2, len(all_names) - 1) + 1]
        dialogue = [ask(rng, FORMS.names_from, row(names), names=f"{name}s", a=names[0], b=names[-1])]
        if rng.random() < 0.3:
            dialogue.append(ask(rng, FORMS.backwards, row(names[::-1])))
        return dialogue
    place = rng.randrange(len(all_names))
    one, after, before = (all_names[(place + step) % len(all_names)] for step in (0, 1, -1))
    if rng.random() < 0.5:
        return [ask(rng, FORMS.name_after, f"{after} comes after {one}.", name=name, a=one)]
    return [ask(rng, FORMS.name_before, f"{before} comes before {one}.", name=name, a=one)]


def _neighbour(rng: Random) -> list[Exchange]:
    a = rng.randint(1, 200)
    if rng.random() < 0.6:
        return [ask(rng, FORMS.after, f"{a + 1} comes after {a}.", a=a)]
    return [ask(rng, FORMS.before, f"{a - 1} comes before {a}.", a=a)]


def _sum(rng: Random) -> list[Exchange]:
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    if rng.random() < 0.4:
        a, b = max(a, b), min(a, b)
        return [ask(rng, FORMS.difference, f"{a} - {b} = {a - b}.", a=a, b=b)]
    dialogue = [ask(rng, FORMS.sum, f"{a} + {b} = {a + b}.", a=a, b=b)]
    after = rng.random()
    if after < 0.2 and a + b <= 20:
        a, b = a + b, rng.randint(1, 10)
        dialogue.append(ask(rng, FORMS.plus_more, f"{a} + {b} = {a + b}.", b=b))
    elif after < 0.4:
        a, b = rng.randint(0, 20), rng.randint(0, 20)
        dialogue.append(ask(rng, FORMS.next_sum, f"{a} + {b} = {a + b}.", a=a, b=b))
    return dialogue


_WEIGHTED: dict[Callable[[Random], list[Exchange]], int] = {
    _count: 8,
    _down: 4,
    _steps: 11,
    _multiples: 2,
    _even_or_odd: 3,
    _times_table: 8,
    _number_table: 3,
    _letters: 2,
    _days_or_months: 1,
    _neighbour: 1,
    _sum: 3,
}
TASKS, WEIGHTS = tuple(_WEIGHTED), tuple(_WEIGHTED.values())
